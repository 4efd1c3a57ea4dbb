"""Shifts that a rule took out of products are taken back, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import call
from blockbuster.ir.graph import Value
from blockbuster.ir.ops import Accumulate, Functional, Map
from blockbuster.ir.origin import Origin
from blockbuster.ir.parse import parse
from blockbuster.ir.show import show
from blockbuster.ir.verify import verify
from blockbuster.rules.base import hint_of, maker_of
from blockbuster.rules.loop_again import summed_again
from blockbuster.rules.shifts_back import with_shifts_back

SIZES = {"M": 6, "K": 48, "N": 5}
BLOCKS = {"M": 2, "K": 7, "N": 2}


def norm(x, w):
    return bb.layer_norm(x) @ w


def weighted(x, w, g, b):
    return bb.layer_norm(x, g, b) @ w


def of_two(x, w, v):
    n = bb.layer_norm(x)
    return bb.silu(n @ w) * (n @ v)


def unscaled(x, w):
    mean = bb.mean(x, axis=-1, keepdims=True)
    return (x + -mean) @ w, bb.mean(x * x, axis=-1)


FUNCTIONS = {
    norm: {"x": "M K", "w": "K N"},
    weighted: {"x": "M K", "w": "K N", "g": "K", "b": "K"},
    of_two: {"x": "M K", "w": "K N", "v": "K N"},
    unscaled: {"x": "M K", "w": "K N"},
}


def final(function):
    return bb.fuse(bb.lower(bb.trace(function, **FUNCTIONS[function]))).final


def drawn(function, mean=0.0):
    random = np.random.default_rng(0)
    arrays = {
        name: random.standard_normal([SIZES[dim] for dim in dims.split()])
        for name, dims in FUNCTIONS[function].items()
    }
    return {**arrays, "x": arrays["x"] + mean}


def results(graph, arrays, semantics=Float64):
    return list(evaluate(graph, arrays, blocks=BLOCKS, semantics=semantics).values())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_product_is_shifted_afterwards_and_the_values_stay(function):
    graph = final(function)
    made = with_shifts_back(graph)

    verify(made)
    assert "outer(" in show(graph)
    assert "outer(c" not in show(made)
    arrays = drawn(function)
    for ours, theirs in zip(results(made, arrays), results(graph, arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("function", [norm, of_two])
def test_digits_stay_where_the_mean_is_large(function):
    graph = final(function)
    arrays = {n: a.astype(np.float32) for n, a in drawn(function, mean=3e4).items()}
    exact = results(graph, {n: a.astype(float) for n, a in arrays.items()})[0]

    def error(form):
        return np.abs(results(form, arrays, Float32)[0] - exact).max()

    assert error(bb.safe(graph)) < 0.1 * np.abs(exact).max()
    assert error(graph) > 20 * error(bb.safe(graph))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_done_once(function):
    made = with_shifts_back(final(function))

    assert with_shifts_back(made) == made


def test_products_that_share_a_loop_and_a_shift_get_one_loop_and_read_one_row():
    text = show(with_shifts_back(final(of_two)))

    assert text.count(" over [M,K]") == 1
    assert text.count("= dot(y") == 2


SHIFTED = """graph(X: M,K[M,K], W: K[N,K]) {
  Y = map M (x in !X, w = !W) {
    p, t, s = map K (b in !x, v in !w) {
      q = dot(b, v) z = row_sum(v) a = row_sum(b)
      yield +q yield +z yield +a
    }
    c = -(s / |K|)
    o = outer(c, t)
    y = add(o, p)
    LAST
  }
  return Y
}"""


def shifted(last="yield y", *changes):
    text = SHIFTED.replace("LAST", last)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse(text)


CHANGED = {
    "as it is": shifted(),
    "the product first": shifted("yield y", ("add(o, p)", "add(p, o)")),
    "scaled": shifted("r = rsqrt(c) z = row_scale(y, r) yield z"),
    "read by two": shifted("r = rsqrt(c) z = row_scale(y, r) e = add(z, y) yield e"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_product_that_is_shifted_afterwards_reads_shifted_rows(name):
    graph = CHANGED[name]
    made = with_shifts_back(graph)
    random = np.random.default_rng(1)
    arrays = {"X": random.standard_normal((6, 48)) - 5, "W": random.standard_normal((48, 5))}

    verify(made)
    assert "outer" not in show(made)
    np.testing.assert_allclose(
        *(results(g, arrays)[0] for g in (graph, made)), rtol=1e-9, atol=1e-9
    )


KEPT = {
    "a largest one of the products of blocks": [("yield +q", "yield max q")],
    "the product less it": [("add(o, p)", "sub(p, o)")],
    "a sum of other elements": [("z = row_sum(v)", "u = v * 2 z = row_sum(u)")],
    "a product of other elements": [("q = dot(b, v)", "u = v * 2 q = dot(b, u)")],
    "a largest element of the factor": [("row_sum(v)", "row_max(v)"), ("yield +z", "yield max z")],
    "the sums of another loop": [
        ("c = -", "t2 = map K (v in !w) { z = row_sum(v) yield +z } c = -"),
        ("outer(c, t)", "outer(c, t2)"),
    ],
    "a shift that another kernel stored": [
        ("W: K[N,K])", "W: K[N,K], C: M[M])"),
        ("(x in !X,", "(x in !X, c in !C,"),
        ("c = -(s / |K|)", ""),
    ],
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_no_shift_of_the_product_stays(name):
    graph = shifted("yield y", *KEPT[name])

    assert "outer(" in show(graph)
    assert with_shifts_back(graph) == graph


# the loop that is made again --------------------------------------------------------


def test_what_makes_a_value_is_its_node_and_an_input_has_none():
    body = CHANGED["as it is"].nodes[0].op.body
    (output,) = body.outputs

    assert maker_of(body, output.value) is body.nodes[output.value.node]
    assert maker_of(body, Value(-1, 0)) is None


def test_a_value_is_called_by_the_users_word_or_by_none():
    body = CHANGED["as it is"].nodes[0].op.body

    assert [hint_of(body, Value(-1, port)) for port in (0, 1)] == ["x", "w"]
    assert hint_of(body, body.outputs[0].value) == "y"
    nameless = replace(body.nodes[-1], hints=("",))
    assert hint_of(replace(body, nodes=(*body.nodes[:-1], nameless)), body.outputs[0].value) == ""


def test_a_loop_is_made_again_over_the_same_lists_with_the_ends_it_is_given():
    body = CHANGED["as it is"].nodes[0].op.body
    at, loop = next((p, n) for p, n in enumerate(body.nodes) if isinstance(n.op, Map))
    edit = Builder(body)
    rows = loop.op.body.outputs[2].value  # the sums of rows
    shift = next(Value(p) for p, n in enumerate(body.nodes) if n.hints == ("c",))

    def ends(to, computed, given):
        return [to.emit(call("mul", to.leaf(computed[0]), to.leaf(given[0])))]

    made = summed_again(edit, loop, [rows], [(shift, "c")], ends, ("z",), Origin("test"))
    edit.redirect(body.outputs[0].value, edit.add(Functional("outer"), *made, Value(at, 1))[0])
    again = edit.finish()

    verify(again)
    first, last = (node for node in again.nodes if isinstance(node.op, Map))
    assert first.op.dim == last.op.dim == "K"
    assert last.op.results == (Accumulate("+"),)
    assert "dot" not in show(last.op.body)
    assert [again.type_of(value) for value in last.operands] == [
        *(body.type_of(value) for value in loop.operands[:1]), body.type_of(shift)
    ]  # fmt: skip
