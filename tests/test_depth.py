"""Long programs: no public function recurses over a chain of operators, and none is quadratic.

A thousand operators in a row exceed Python's recursion limit wherever a function calls itself once
an operator; ten thousand are what a training loop written out in full comes to.
"""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import time
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.ir.expr import DEEPEST, Arg, Call, Const, calls
from blockbuster.ir.lengths import Length
from blockbuster.ir.ops import Elementwise
from blockbuster.ir.origin import Origin
from blockbuster.rules import centering
from blockbuster.rules.fuse_elementwise import MOST
from blockbuster.view.draw import draw

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -3.0]])


def chain(length):
    """Operators of one operand in a row: fusion puts them into expressions."""

    def function(x):
        for position in range(length):
            x = bb.relu(x) if position % 2 else x * -1.0
        return x

    return function


def sums(length):
    """Operators of two operands, each leaning on the left or the right of the one before."""

    def function(x):
        y = x
        for position in range(length):
            y = x - y if position % 2 else y + x
        return y

    return function


def tree(length):
    """A sum of as many pieces, paired off."""

    def function(x):
        items = [x * float(position) for position in range(length)]
        while len(items) > 1:
            pairs = [a + b for a, b in zip(items[::2], items[1::2], strict=False)]
            items = pairs + items[2 * len(pairs) :]
        return items[0]

    return function


def reductions(length):
    def function(x):
        for _ in range(length):
            x = x - bb.max(x, axis=-1, keepdims=True)
        return x

    return function


@cache
def lowered(make, length):
    return bb.lower(bb.trace(make(length), x="M N"))


@cache
def fused(make, length):
    return bb.fuse(lowered(make, length))


def last(make, length):
    return fused(make, length).snapshots[-1]


PUBLIC = {
    "str": str,
    "repr": repr,
    "hash": hash,
    "equal": lambda g: g == pickle.loads(pickle.dumps(g)),
    "deepcopy": copy.deepcopy,
    "parse": lambda g: bb.parse(str(g)) == g or pytest.fail("another program"),
    "verify": bb.verify,
    "evaluate": lambda g: bb.evaluate(g, {"x": X}),
    "listing": lambda g: g.listing(),
    "shown": lambda g: g.show(types=True, origin=True),
    "networkx": lambda g: g.to_networkx(),
    "traffic": lambda g: bb.traffic(g, {"M": 64, "N": 64}),
    "overflowing": bb.overflowing,
    "safe": bb.safe,
}
AFTER = {
    **PUBLIC,
    "explain": bb.explain,
    "emit": lambda g: bb.emit(g, {"M": 64, "N": 64}, "float16", "sm_90").source,
    "prove": lambda g: bb.prove_equal(g, g),
}
TO_DERIVATION = {
    "text": str,
    "repr": repr,
    "json": lambda d: json.dumps(d.to_json()),
    "pickle": lambda d: pickle.loads(pickle.dumps(d)),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_thousand_operators_as_they_are(name):
    PUBLIC[name](lowered(chain, 1000))


@pytest.mark.parametrize("name", AFTER)
def test_a_thousand_operators_fused(name):
    AFTER[name](last(chain, 1000))


@pytest.mark.parametrize("name", TO_DERIVATION)
def test_the_derivation_of_a_thousand_operators(name):
    TO_DERIVATION[name](fused(chain, 1000))


def test_the_array_program_of_a_thousand_operators():
    program = bb.trace(chain(1000), x="M N")
    assert str(program).count("\n") > 1000
    np.testing.assert_array_equal(program.numpy({"x": X})["out"], chain(1000)(X))
    assert pickle.loads(pickle.dumps(program)) == program
    assert program == copy.deepcopy(program)


@pytest.mark.parametrize(("make", "length"), [(chain, 1000), (sums, 400), (tree, 300)])
def test_long_programs_run(make, length):
    np.testing.assert_allclose(bb.jit(make(length))(X), make(length)(X), rtol=1e-12)


def test_a_program_of_many_reductions_runs():
    graph = lowered(reductions, 1000)
    for work in (str, repr, hash, bb.verify, pickle.dumps, lambda g: g.listing()):
        work(graph)
    np.testing.assert_allclose(bb.jit(reductions(60))(X), reductions(60)(X), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "count"), [(chain, 10_000), (sums, 3_000), (tree, 3_000)])
def test_thousands_of_operators_lowered(make, count):
    """Ten thousand in less than ten seconds of one core, as promised."""
    program = bb.trace(make(count), x="M N")
    before = time.process_time()
    graph = bb.lower(program)
    assert time.process_time() - before < 10.0
    assert bb.parse(str(graph)) == graph
    np.testing.assert_allclose(
        bb.evaluate(graph, {"x": X})["out"], program.numpy({"x": X})["out"], rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PUBLIC])
def test_ten_thousand_operators_as_they_are(name):
    PUBLIC[name](lowered(chain, 10_000))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*AFTER])
def test_three_thousand_operators_fused(name):
    AFTER[name](last(chain, 3_000))


@pytest.mark.slow
def test_three_thousand_operators_run():
    np.testing.assert_array_equal(bb.jit(chain(3_000))(X), chain(3_000)(X))


def test_an_operator_applies_a_bounded_number_of_functions():
    graph = last(chain, 1000)
    found = [
        calls(node.op.expr)
        for _, level in graph.walk()
        for node in level.nodes
        if isinstance(node.op, Elementwise)
    ]
    assert MOST // 2 < max(found) <= MOST
    assert sum(found) == 1000
    reasons = bb.reasons(_rule(), graph.at((0, 0)))
    assert any("one operator would apply" in str(reason) for reason in reasons)


def _rule():
    return next(rule for rule in bb.RULES if rule.name == "fuse-elementwise")


def test_a_value_read_twice_does_not_double_an_expression_without_end():
    def function(x):
        for _ in range(200):
            x = bb.maximum(x, x)
        return x

    np.testing.assert_array_equal(bb.jit(function)(X), X)


PROGRAM = "graph(X: M[M]) {\n  Y = map M (x in X) {\n    y = %s\n    yield y\n  }\n  return Y\n}"
N = 10_000


@pytest.mark.parametrize(
    "text",
    [
        "(" * N + "x" + ")" * N,
        "exp(" * N + "x" + ")" * N,
        "-" * N + "x",
        "not " * N + "x",
        "x" + " + x" * N,
        "x" + " ** x" * N,
        "x - (" * N + "x" + ")" * N,
        "maximum(x, " * N + "x" + ")" * N,
        "(" * N,
    ],
)
def test_a_deep_expression_is_a_parse_error_that_shows_the_line(text):
    with pytest.raises(bb.ParseError, match=r"nests more than 100 deep\n.*\n.*\n> +y = "):
        bb.parse(PROGRAM % text)


def test_expressions_up_to_the_limit_are_read():
    for text in ("exp(" * (DEEPEST - 1) + "x" + ")" * (DEEPEST - 1), "x" + " + x" * (DEEPEST - 1)):
        graph = bb.parse(PROGRAM % text)
        assert bb.parse(str(graph)) == graph
        bb.emit(graph, {"M": 64}, "float16", "sm_90")
        bb.safe(graph)


def test_deep_nests_of_maps_are_a_parse_error():
    heads = "".join(f"Y{i} = map D{i} (x{i + 1} = x{i}) {{ " for i in range(N))
    with pytest.raises(bb.ParseError, match="the maps nest more than 64 deep"):
        bb.parse("graph(x0: [M]) { " + heads)


def test_arithmetic_on_a_size_that_is_too_long_is_refused():
    def function(x):
        size = x.shape[0]
        for _ in range(N):
            size = size + 1
        return x * size

    with pytest.raises(bb.TraceError, match="more than 100 operators"):
        bb.trace(function, x="M N")


def test_origins_compare_and_travel_without_recursion():
    first = second = Origin("start")
    for _ in range(N):
        first, second = Origin("step", (first, first)), Origin("step", (second, second))
    assert first == second
    assert hash(first) == hash(second)
    assert pickle.loads(pickle.dumps(first)) == first
    assert first != Origin("step", (first,))
    assert copy.deepcopy(first).lines() == ()
    assert len(repr(first)) < 100


def test_expressions_compare_without_recursion():
    left = right = other = Arg(0)
    for _ in range(N):
        left, right, other = Call("exp", (left,)), Call("exp", (right,)), Call("exp", (other,))
    assert left == right
    assert hash(left) == hash(right)
    assert left != Call("add", (other, Const(1.0)))
    assert Const(0.0) != Const(-0.0)
    assert Const(float("nan")) == Const(float("nan"))


def test_a_length_of_many_terms_prints_and_reads_back():
    length = Length(tuple(((f"M{i}",), Fraction(1)) for i in range(N)))
    assert str(length).count(" + ") == N - 1
    arrays = {f"x{i}": f"M{i} N" for i in range(30)}
    program = bb.trace(lambda **xs: bb.concat([*xs.values()], axis=0), **arrays)
    graph = bb.lower(program)
    assert bb.parse(str(graph)) == graph


def test_a_page_too_long_for_a_browser_is_refused_in_words(tmp_path):
    derivation = fused(chain, 1000)
    with pytest.raises(bb.DrawError, match=r"the page would show \d+ steps .*\n.*to_json"):
        derivation.to_html(tmp_path / "page.html")
    assert not [*tmp_path.iterdir()]


def test_pictures_of_a_thousand_operators():
    for graph in (lowered(chain, 1000), last(chain, 1000)):
        assert draw(graph).dot.count("->") >= 1
        assert draw(graph, depth=0).dot.startswith("digraph")


def test_centering_one_norm_after_the_other_does_not_nest_calls(monkeypatch):
    def function(x):
        return [bb.layer_norm(x * float(count)) for count in range(1, 9)]

    depths = []
    made = centering._Centering.made

    def counted(self, note):
        depths.append(len(inspect.stack(0)))
        return made(self, note)

    monkeypatch.setattr(centering._Centering, "made", counted)
    graph = bb.fuse(bb.lower(bb.trace(function, x="M N"))).final
    assert bb.safe(graph) != graph
    assert len(depths) >= 8
    assert max(depths) - min(depths) < 4  # not deeper for each of the eight norms


def test_values_that_hold_each_other_are_watched_without_recursion():
    held = ()
    for _ in range(N):
        held = (held,)

    def function(x):
        return x * (1.0 if held else 2.0)

    np.testing.assert_array_equal(bb.jit(function)(X), X)


def test_explaining_asks_the_rules_of_a_level_once(monkeypatch):
    asked = []
    rule = type(_rule())
    before = rule.matches_at

    def counted(self, graph, position, note=None):
        asked.append(position)
        return before(self, graph, position, note) if note else before(self, graph, position)

    monkeypatch.setattr(rule, "matches_at", counted)
    graph = lowered(chain, 60)
    edges = len(graph.buffered_edges())
    assert len(bb.explain(graph)) == edges == 59
    assert len(asked) < 20 * edges
