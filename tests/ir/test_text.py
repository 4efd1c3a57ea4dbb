"""The text form: what is printed reads back as the same graph."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import FUNCTIONS, Arg, Call, Const, Size, arguments, substitute
from blockbuster.ir.graph import Graph, Index, Input, Node, Output, Read, Value
from blockbuster.ir.ops import Elementwise
from blockbuster.ir.origin import Origin
from blockbuster.ir.parse import parse
from blockbuster.ir.show import KEYWORDS, RESERVED, show
from blockbuster.ir.types import Type
from tests.random_programs.strategies import block_graphs

PROGRAMS = {
    "functional": "graph(a: [M,K], b: [N,K]) { t = dot(a, b) return t }",
    "elementwise": "graph(a: [M], b: [M]) { t = exp(a * |M| ** -0.5) + b return t }",
    "pointwise": "graph(a: [M,K], b: [K], c: []) { t = a * b - c over [M,K] return t }",
    "pointwise without operands of all axes": "graph(a: [M]) { t = a + 1 over [M,K] return t }",
    "cast": "graph(a: [M]) { t = cast bfloat16 (a) return t }",
    "transpose": "graph(X: M,K[M,K]) { T = transpose K,M[K,M] (!X) return T }",
    "transpose of an item": "graph(a: [M,K]) { t = transpose [K,M] (a) return t }",
    "relabel": "graph(X: M,K[M,K]) { T = relabel M -> M' (!X) return T }",
    "reduce": "graph(X: M[K] = port) { s = reduce max M (!X) return s }",
    "misc": 'graph(X: M[M]) { A, b = misc "lib.sort" : M[M] [M] (!X) return A, b }',
    "views": "graph(XT: K,M[K,M] = X(M,K), Z: M[M] = Y(1,M,1), i: M[M] = index(M)) "
             "{ A = map M (z in !Z, j in !i) { t = z + j yield t } return A, XT }",
    "two views of one source": "graph(X: M,K[M,K], X2: M',K[M',K] = X(M',K)) { return X, X2 }",
    "named outputs": "graph(X: M,K[M,K]) { return first = X(K,1,M), second = X }",
    "an output that is an input": "graph(a: [M]) { return a }",
    "no inputs of a map": "graph(i: M[M] = index(M)) { A = map M (j in !i) { yield j } return A }",
    "accumulators": "graph(X: M[K] = port) { A, s, m, n = map M (x in !X) "
                    "{ y = exp(x) yield y yield +y yield max y yield min x } return A, s, m, n }",
    "groups": "graph(X: M[K] = port) { t, s, u = map M (x in !X) { y = exp(x) "
              "yield max t = x yield +y by t: x * exp(sub0(r, r2)) "
              "yield max y by t: x * exp(r - r2) } return t, s, u }",
    "two groups": "graph(X: M[K] = port) { t, s, u, v = map M (x in !X) { y = exp(x) "
                  "yield max t = x yield +y by t: x * exp(r - r2) "
                  "yield min u = y yield +x by u: x * exp(r - r2) } return t, s, u, v }",
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_and_reads_back(name):
    functions = {"lib.sort": sorted}
    graph = parse(PROGRAMS[name], functions)
    text = graph.show()

    assert parse(text, functions) == graph
    assert parse(text, functions).show() == text
    assert text.isascii()
    assert text.endswith("}\n")
    assert not re.search(r"[ \t]+\n|\n\n", text)


def test_every_kind_of_operator_is_printed_in_these_tests():
    kinds = {
        type(node.op).__name__
        for text in PROGRAMS.values()
        for _, level in parse(text, {"lib.sort": sorted}).walk()
        for node in level.nodes
    }

    assert kinds == {
        "Functional", "Elementwise", "Pointwise", "Cast", "Transpose", "Relabel", "Reduce",
        "Misc", "Map",
    }  # fmt: skip


@settings(max_examples=150)
@given(graph=block_graphs(whole=False))
def test_random_programs_print_and_read_back(graph):
    text = show(graph)

    assert parse(text) == graph
    assert parse(text).show() == text


# expressions ------------------------------------------------------------------------------

numbers = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(width=32, allow_nan=False),
    st.sampled_from([math.inf, -math.inf, -0.0, 1e-300, 1e16, 0.1]),
)
leaves = st.one_of(
    st.integers(0, 2).map(Arg), numbers.map(Const),
    st.sampled_from(["M", "K'"]).map(Size),
)  # fmt: skip
expressions = st.recursive(
    leaves,
    lambda inner: st.sampled_from(list(FUNCTIONS)).flatmap(
        lambda fn: st.tuples(*[inner] * FUNCTIONS[fn]).map(lambda args: Call(fn, args))
    ),
    max_leaves=8,
)


def repr_of(expr: object) -> str:
    """Tells -0.0 from 0.0, which compare equal."""
    return repr(expr)


@settings(max_examples=300)
@given(expr=expressions)
def test_random_expressions_print_and_read_back(expr):
    expr = Call("add", (Call("add", (Arg(0), expr)), Call("mul", (Arg(1), Arg(2)))))
    used = arguments(expr)
    expr = substitute(expr, [Arg(used.index(i)) for i in range(3)])
    builder = Builder()
    operands = [builder.input(Type((), ("M", "K'")), hint=hint) for hint in "abc"]
    graph = builder.finish(*builder.add(Elementwise(expr), *operands))

    again = parse(graph.show())

    assert again == graph
    assert repr_of(again.nodes[0].op.expr) == repr_of(expr)


def test_numbers_print_shortly():
    graph = parse("graph(a: [M]) { t = a * 2.0 + 0.5 - 1e20 + 1e-7 return t }")

    assert "t = a * 2 + 0.5 - 1e+20 + 1e-07" in graph.show()


# names ------------------------------------------------------------------------------------


def named(*hints: str) -> Graph:
    """exp(exp(...)) of one input, results named by hints."""
    nodes = tuple(
        Node(
            Elementwise(Call("exp", (Arg(0),))),
            (Value(at - 1),),
            (Type((), ("M",)),),
            (hint,),
            Origin("made-up"),
        )
        for at, hint in enumerate(hints)
    )
    return Graph((Input(Type((), ("M",)), None, "x"),), nodes, (Output(Value(len(hints) - 1)),))


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_are_no_names(word):
    graph = named(word, word)

    assert parse(graph.show()) == graph


@pytest.mark.parametrize("hint", ["x", "a b", "1st", "é", "", "t1", "x_1", "x_", "_", "a\n}"])
def test_any_hint_prints_as_a_name_of_its_own(hint):
    graph = named(hint, hint, "x")

    assert parse(graph.show()) == graph
    assert graph.show().isascii()


def test_names_are_unique_across_bodies():
    graph = parse("""graph(X: M,K[M,K]) {
      x = map M (x_1 in !X) {
        y = map K (x_2 in !x_1) { z = exp(x_2) yield z }
        yield y
      }
      return x
    }""")
    names = re.findall(r"(\w+) (?:in|=) ", graph.show())

    assert len(names) == len(set(names))


def test_only_buffered_operands_are_marked():
    text = parse("""graph(X: M,K[M,K], c: [K]) {
      Y = map M (x in !X, v = c) {
        y = map K (b in !x, w = v) { z = row_sum(b) yield z }
        yield y
      }
      return Y
    }""").show()

    assert "in !X" in text
    assert "in !x" in text
    assert "= !c" not in text
    assert "row_sum(b)" in text


def test_types_and_origins_are_shown_on_request():
    graph = named("y")

    assert "y: [M] = exp(x)" in show(graph, types=True)
    assert "y = exp(x)  # made-up" in show(graph, origin=True)
    assert parse(show(graph, origin=True)) == graph


def test_views_are_part_of_a_program_and_names_are_not():
    type = Type(("M",), ("M",))

    def program(view: object, hint: str) -> Graph:
        return Graph((Input(type, view, hint),), (), (Output(Value(-1)),))

    assert program(Read("X", ("M",)), "a") == program(Read("X", ("M",)), "b")
    assert program(Read("X", ("M",)), "a") != program(Read("Y", ("M",)), "a")
    assert program(Index("M"), "a") != program(Read("X", ("M",)), "a")
    assert parse(program(Read("X", ("M",)), "a").show()) == program(Read("X", ("M",)), "b")


@pytest.mark.parametrize("name", ["index", "port", "größe", "weiß_2", "हिन्दी", "x·y"])
def test_arrays_of_any_name_read_back(name):
    type = Type(("M",), ("M",))
    whole, part = (Input(type, Read(name, axes), name) for axes in (("M",), (None, "M")))
    plain = Input(type, Index("M"), "")
    outputs = tuple(Output(Value(-1, port)) for port in range(3))
    graph = Graph((whole, part, plain), (), outputs)

    assert parse(graph.show()) == graph


@pytest.mark.parametrize("dim", [*KEYWORDS, "of", "step", "größe"])
def test_dims_of_any_name_read_back(dim):
    text = f"""graph(x: {dim}[{dim}] = X(D[{dim} = 2 from 1 of |{dim}|]), y: {dim}[{dim}]) {{
      z = map {dim} (a in !x, b in !y) {{ c = a * |{dim}| + b yield c }}
      return one = z(D[{dim} of 2 * |{dim}|]), two = z(D[{dim} from |{dim}| of 2 * |{dim}|])
    }}"""
    graph = parse(text)

    assert parse(graph.show()) == graph
    assert graph.outputs[0].axes[0].runs[0].dim == dim
