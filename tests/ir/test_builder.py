"""Canonical form: graphs that mean the same equations come out equal, whatever order made them."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster.errors import VerifyError
from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Accumulate, Collect, Elementwise, Functional, Map, Rescale
from blockbuster.ir.parse import parse
from blockbuster.ir.types import Type
from blockbuster.ir.verify import verify
from tests.random_programs.strategies import block_graphs

BLOCK = Type((), ("M", "K"))
ROWS = Type(("M",), ("K",))
EXP = Elementwise(call("exp", Arg(0)))
FACTOR = call("mul", Arg(0), call("exp", call("sub0", Arg(1), Arg(2))))


def body_of(*items: str, outputs: tuple[int, ...]) -> Graph:
    """The body of a map: its inputs, and which of them it gives back."""
    body = Builder()
    values = [body.input(Type((), ("K",)), hint=hint) for hint in items]
    return body.finish(*(values[i] for i in outputs))


def test_build_order_does_not_matter():
    first, second = Builder(), Builder()
    a, b = (first.input(BLOCK, hint=h) for h in "ab")
    (x,) = first.add(EXP, a)
    (y,) = first.add(Functional("mul"), b, b)
    (z,) = first.add(Functional("add"), x, y)
    c, d = (second.input(BLOCK, hint=h) for h in "cd")
    (v,) = second.add(Functional("mul"), d, d, hints=("v",))
    second.add(EXP, d)
    (u,) = second.add(EXP, c)
    (w,) = second.add(Functional("add"), u, v)

    assert first.finish(z) == second.finish(w)
    assert hash(first.finish(z)) == hash(second.finish(w))


def test_names_and_origins_do_not_matter_for_equality():
    text = "graph({a}: [M,K]) {{ {t} = exp({a}) return {t} }}"

    assert parse(text.format(a="a", t="t")) == parse(text.format(a="q", t="long"))


def test_dead_nodes_are_dropped():
    graph = parse("graph(a: [M,K], b: [M,K]) { t = exp(a) u = exp(b) v = add(u, u) return t }")

    assert len(graph.nodes) == 1
    assert len(graph.inputs) == 2


def test_unused_results_and_the_operands_only_they_need_are_dropped():
    graph = parse("""graph(X: M[M], Z: M[M]) {
      A, B = map M (z in !Z, x in !X) { a = exp(x) b = exp(z) yield a yield b }
      return A
    }""")

    assert graph == parse(
        "graph(X: M[M], Z: M[M]) { A = map M (x in !X) { a = exp(x) yield a } return A }"
    )


def test_equal_operands_are_merged():
    graph = parse("""graph(X: M[M]) {
      A = map M (x in !X, y in !X) { a = mul(x, y) yield a }
      return A
    }""")

    assert graph == parse(
        "graph(X: M[M]) { A = map M (x in !X) { a = mul(x, x) yield a } return A }"
    )


def test_equal_results_are_merged_but_lists_and_sums_stay_apart():
    graph = parse("""graph(X: M[K] = port) {
      A, B, s, m = map M (x in !X) { a = exp(x) yield a yield a yield +a yield max a }
      return A, B, s, m
    }""")

    assert graph.nodes[0].op.results == (Collect(), Accumulate("+"), Accumulate("max"))
    assert [o.value.port for o in graph.outputs] == [0, 0, 1, 2]


def test_equal_nodes_are_not_merged():
    graph = parse("graph(a: [M,K]) { t = exp(a) u = exp(a) v = add(t, u) return v }")

    assert len(graph.nodes) == 3


def test_expression_operands_are_merged_and_numbered_by_first_appearance():
    builder = Builder()
    a, b = builder.input(BLOCK), builder.input(BLOCK)
    swapped = Elementwise(call("sub", Arg(1), call("mul", Arg(0), Arg(2))))
    (t,) = builder.add(swapped, a, b, b)
    graph = builder.finish(t)

    assert graph.nodes[0].op == Elementwise(call("sub", Arg(0), call("mul", Arg(1), Arg(0))))
    assert graph.nodes[0].operands == (b, a)


def test_results_stand_in_order_of_first_use():
    graph = parse("""graph(X: M[M]) {
      A, B = map M (x in !X) { a = exp(x) b = neg(x) yield a yield b }
      return B, A
    }""")

    assert [o.value.port for o in graph.outputs] == [0, 1]
    assert [n.op.expr.fn for n in graph.nodes[0].op.body.nodes] == ["neg", "exp"]


def test_operands_stand_in_order_of_first_use_in_the_body():
    graph = parse("""graph(X: M[M], Z: M[M]) {
      A = map M (x in !X, z in !Z) { a = sub(z, x) yield a }
      return A
    }""")

    assert graph.nodes[0].operands == (Value(-1, 1), Value(-1, 0))


def test_the_lead_of_a_group_stands_before_its_members():
    body = body_of("s", "t", outputs=(0, 1))
    results = (Rescale("+", (1,), FACTOR), Accumulate("max"))
    builder = Builder()
    operands = (builder.input(ROWS), builder.input(ROWS))
    s, t = builder.add(Map("M", body, (True, True), results), *operands)

    both = builder.finish(s, t)
    assert both.nodes[0].op.results == (Accumulate("max"), Rescale("+", (0,), FACTOR))
    assert [o.value.port for o in both.outputs] == [1, 0]
    verify(both)

    member = builder.finish(s)
    assert member.nodes[0].op.results == (Accumulate("max"), Rescale("+", (0,), FACTOR))
    assert [o.value.port for o in member.outputs] == [1]
    verify(member)


def test_members_of_merged_leads_share_the_lead():
    body = body_of("s", "t", outputs=(1, 0, 1, 0))
    results = (
        Accumulate("max"),
        Rescale("+", (0,), FACTOR),
        Accumulate("max"),
        Rescale("max", (2,), FACTOR),
    )
    builder = Builder()
    operands = (builder.input(ROWS), builder.input(ROWS))
    graph = builder.finish(*builder.add(Map("M", body, (True, True), results), *operands))

    assert graph.nodes[0].op.results == (
        Accumulate("max"),
        Rescale("+", (0,), FACTOR),
        Rescale("max", (0,), FACTOR),
    )
    verify(graph)


def test_edits_keep_what_they_do_not_touch():
    graph = parse("graph(a: [M,K]) { t = exp(a) u = neg(t) v = add(t, u) return v }")
    edit = Builder(graph)
    (new,) = edit.add(Elementwise(call("tanh", Arg(0))), Value(1))
    edit.redirect(Value(1), new)

    assert edit.finish() == parse(
        "graph(a: [M,K]) { t = exp(a) u = neg(t) w = tanh(u) v = add(t, w) return v }"
    )
    assert len(graph.nodes) == 3


def test_an_edit_that_makes_a_cycle_is_refused():
    graph = parse("graph(a: [M,K]) { t = exp(a) u = neg(t) return u }")
    edit = Builder(graph)
    edit.set_operand(0, 0, Value(1))

    with pytest.raises(VerifyError, match="the graph has a cycle"):
        edit.finish()


def test_operands_that_do_not_fit_are_refused_at_once():
    builder = Builder()
    a = builder.input(BLOCK)

    with pytest.raises(VerifyError, match="dot takes 2 operands, got 1"):
        builder.add(Functional("dot"), a)


def shuffled(graph: Graph, random: Random) -> Graph:
    """The same equations, added to a builder in another order where they permit it."""
    builder = Builder()
    for item in graph.inputs:
        builder.input(item.type, item.view)
    places: dict[Value, Value] = {Value(-1, p): Value(-1, p) for p in range(len(graph.inputs))}
    waiting = list(range(len(graph.nodes)))
    while waiting:
        ready = [p for p in waiting if all(v in places for v in graph.nodes[p].operands)]
        position = random.choice(ready)
        waiting.remove(position)
        node = graph.nodes[position]
        made = builder.add(node.op, *(places[v] for v in node.operands))
        places |= {Value(position, port): value for port, value in enumerate(made)}
    return builder.finish(*(places[o.value] for o in graph.outputs))


@settings(max_examples=60)
@given(graph=block_graphs(whole=False), random=st.randoms(use_true_random=False))
def test_any_order_of_building_gives_the_same_graph(graph, random):
    plain = Builder(graph).finish(*(o.value for o in graph.outputs))

    assert shuffled(graph, random) == plain


@settings(max_examples=60)
@given(graph=block_graphs(whole=False))
def test_finishing_again_changes_nothing(graph):
    again = Builder(graph).finish()

    assert again == graph
    assert again.show() == graph.show()
    verify(graph)
