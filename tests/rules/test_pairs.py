"""Products under exponents: exp(x - m) where m is known, the pair where that may not be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Const
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Collect, Map, Rescale
from blockbuster.ir.origin import Origin
from blockbuster.ir.parse import parse
from blockbuster.ir.types import Type
from blockbuster.rules import safe
from blockbuster.rules.emitter import Emitter
from blockbuster.rules.pairs import (
    Pair,
    Product,
    above_its_exponent,
    joined,
    multiplied,
    product_of,
)
from tests.rules.test_safety import EXP, ROWS, SUM, forms, softmax

X, Y, Z, M = (Value(-1, port) for port in range(4))


def final(function, **dims) -> Graph:
    return safe(bb.fuse(bb.lower(bb.trace(function, **dims))).final)


def loops(graph: Graph) -> list[Map]:
    return [op for _, level in graph.walk() for _, op in level.of_type(Map)]


def stored_blocks(graph: Graph) -> int:
    """How many lists of blocks the first of two loops leaves for the second."""
    first = next(op for op in loops(graph) if any(isinstance(r, Rescale) for r in op.results))
    pairs = zip(first.body.outputs, first.results, strict=True)
    collected = [o.value for o, result in pairs if isinstance(result, Collect)]
    return sum(len(first.body.type_of(value).axes) == 2 for value in collected)


# what becomes of programs -----------------------------------------------------------------


def test_a_softmax_is_exp_of_x_less_the_finished_maximum():
    graph = final(lambda x: bb.softmax(x), x="M N")
    text = graph.show()

    assert text.count("exp(sub0(r, r2))") == 1
    statistics, result = [op for op in loops(graph) if op.dim == "N"]
    assert len(statistics.results) == 2  # a maximum and a sum: no element is stored
    assert "row_max" not in result.body.show()
    assert "sub0(x_3, t1_1) over [M,N]" in text


@pytest.mark.parametrize(
    ("function", "stored"),
    [
        (lambda x: bb.softmax(x * 2.0), 1),  # what the exponential is taken of, and no more
        (lambda x: bb.softmax(x) * 3.0, 0),
        (lambda x: bb.softmax(x, axis=0), 0),
        (lambda x: bb.exp(x) * x / bb.sum(bb.exp(x), axis=-1, keepdims=True), 0),
    ],
)
def test_what_is_stored_between_the_loops(function, stored):
    graph = final(function, x="M N")
    assert stored_blocks(graph) == stored


def test_what_would_cost_more_to_store_keeps_its_significand():
    def twice(x, y):
        e = bb.exp(x * 2)
        return e * bb.tanh(y) / bb.sum(e, axis=-1, keepdims=True)

    graph = final(twice, x="M N", y="M N")
    x, y = np.random.default_rng(0).normal(size=(2, 3, 5)) * 40

    found = evaluate(graph, {"x": x, "y": y}, blocks={"M": 2, "N": 2})["out"]
    np.testing.assert_allclose(found, softmax(2 * x) * np.tanh(y), rtol=1e-9, atol=1e-300)
    assert stored_blocks(graph) == 1


def test_what_is_a_result_too_is_not_read_back():
    """A result may be rounded where it is stored: the maximum is that of what was not rounded."""

    def both(x, w):
        y = x @ w
        return bb.softmax(y), y

    graph = final(both, x="M K", w="K N")
    final_loop = [op for op in loops(graph) if op.dim == "N"][-1]

    assert stored_blocks(graph) == 2
    assert "row_scale" in final_loop.body.show()


def test_attention_keeps_its_online_rescaling_in_one_loop():
    def attention(q, k, v):
        return bb.softmax(q @ k.T) @ v

    graph = final(attention, q="M D", k="N D", v="N L")
    (inner,) = [op for op in loops(graph) if op.dim == "N"]

    assert [type(r).__name__ for r in inner.results] == ["Accumulate", "Rescale", "Rescale"]


# values -----------------------------------------------------------------------------------

entries = st.one_of(st.just(-np.inf), st.floats(-90, 90, width=32), st.floats(-3e4, 3e4, width=32))
matrices = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(entries, min_size=n, max_size=n), min_size=1, max_size=4)
)


@settings(max_examples=150)
@given(rows=matrices, block=st.integers(1, 3), columns=st.booleans())
def test_softmax_is_as_accurate_as_exp_of_a_difference(rows, block, columns):
    """At any scale, masked rows included: one rounding of x - m, of exp, of the quotient."""
    x = np.array(rows)
    axis = 0 if columns else 1
    graph = final(lambda x: bb.softmax(x, axis=axis), x="M N")
    wanted = softmax(x.T).T if columns else softmax(x)

    steps = {"M": 2, "N": block}
    found = evaluate(graph, {"x": x}, block_sizes=steps, semantics=Float32)["out"]

    distance = np.where(
        np.isneginf(x), 0, np.abs(x - np.max(x, axis=axis, keepdims=True, initial=-1e9))
    )
    allowed = (2.0**-24 * np.minimum(distance, 110) + 2.0**-20) * wanted + 1e-37
    assert (np.abs(found - wanted) <= allowed).all()


def test_the_factor_of_the_tile_is_gone():
    """exp(x - m) / s, bit by bit, where the row's maximum and sum do not depend on tiles."""
    x = np.array([[0.3, -0.7, 0.0, -1.1, 0.9, -200.0]], np.float32)
    graph = final(lambda x: bb.softmax(x), x="M N")
    one, three = (
        evaluate(graph, {"x": x}, blocks={"M": 1, "N": n}, semantics=Float32)["out"] for n in (6, 2)
    )
    ratios = np.exp(x - x.max()) / np.exp(x - x.max())[0, 4]

    for found in (one, three):
        np.testing.assert_array_equal(
            (found / found[0, 4])[0, :5], ratios.astype(found.dtype)[0, :5]
        )


def test_a_sum_of_two_exponentials_comes_under_one_exponent():
    graph = safe(bb.lower(bb.trace(lambda x: bb.softmax(x) + bb.softmax(-x), x="M N")))
    x = np.random.default_rng(3).normal(size=(3, 7)) * 300

    found = evaluate(graph, {"x": x}, blocks={"N": 2}, semantics=Float64)["out"]

    np.testing.assert_allclose(found, softmax(x) + softmax(-x), rtol=1e-12, atol=1e-300)


# the precondition -------------------------------------------------------------------------


def exponential(*, own: bool) -> tuple[Emitter, Pair]:
    builder = Builder()
    x = builder.input(Type((), ("M", "N")), hint="x")
    to = Emitter(builder, Origin("safe"), own=own)
    return to, to.exponential(x)


def test_a_divisor_is_a_product_only_with_exponents_of_its_own():
    _, rows = exponential(own=False)
    _, elements = exponential(own=True)

    assert "1 / exp(x) is more than" in above_its_exponent(rows, -1.0)
    assert not above_its_exponent(rows, 1.0)
    assert not above_its_exponent(elements, -1.0)
    assert not above_its_exponent(X, -1.0)
    assert not above_its_exponent(Pair(X, ((1.0, Y),)), -1.0)


def test_without_the_precondition_a_quotient_overflows():
    """y / exp(x) with x far below z: S is small but no zero, exp(-x) is infinite."""
    x, z, y = np.float32(-90), np.float32(0), np.float32(1e-30)
    significand = np.exp(x - z)
    with np.errstate(over="ignore"):
        assert np.isfinite(y / significand * np.exp(-z))
        assert np.isinf(y * np.exp(-x))


def test_a_value_that_is_no_product_keeps_significand_and_exponent():
    """where(b > 0, exp(b), 0): where b is not chosen, exp(b - m) might be infinite, and 0 * inf."""
    graph = parse(f"""{ROWS}
      E = map M (x in !X) {{ y = map N (b in !x) {{
        c = where(b < 0, exp(b), 0)
        yield c
      }} yield y }}
      {SUM}
      Y = map M (e in !E, t in !T) {{
        r = recip0(t)
        y = map N (b in !e, c = r) {{ z = row_scale(b, c) yield z }}
        yield y
      }} return Y }}""")
    x = np.array([[-1.0, 500.0, -3.0, -0.5], [-90.0, -91.0, -200.0, -95.0]])
    for form in forms(graph):
        found = evaluate(safe(form), {"X": x}, blocks={"N": 2})["out"]
        np.testing.assert_allclose(found, softmax(np.where(x < 0, x, -np.inf)), rtol=1e-9)


def test_an_exp_cast_in_between_keeps_its_rounding():
    graph = parse(f"""{ROWS} {EXP.replace("c = exp(b)", "a = exp(b) c = cast float16 (a)")} {SUM}
      Y = map M (e in !E, t in !T) {{
        r = 1 / t
        y = map N (b in !e, c = r) {{ z = row_scale(b, c) yield z }}
        yield y
      }} return Y }}""")

    assert "cast float16" in safe(graph).show()
    for form in forms(graph):
        assert "cast float16" in safe(form).show()


# products themselves ----------------------------------------------------------------------


def test_products_multiply_and_divide():
    first = Pair(Z, ((1.0, M),), Product((), ((1.0, X),)))

    assert multiplied(first, Y) == Product((("mul", Y),), ((1.0, X),))
    assert multiplied(first, Const(2.0), -1.0) == Product((("div", Const(2.0)),), ((1.0, X),))
    assert multiplied(first, Pair(Y, ((-1.0, M),))) == Product((("mul", Y),), ((1.0, X), (-1.0, M)))
    assert multiplied(first, Pair(Y, ((1.0, X),)), -1.0) == Product((("div", Y),), ())
    assert product_of(Pair(Y, ((1.0, X),))) == Product((("mul", Y),), ((1.0, X),))
    assert joined(((1.0, X),), ((1.0, X),)) == ((2.0, X),)


def test_a_pair_seen_from_another_level_changes_all_its_values():
    pair = Pair(X, ((1.0, Y),), Product((("mul", Z), ("div", Const(2.0))), ((1.0, M),)))
    moved = pair.each(lambda v: Value(7, v.port))

    assert moved == Pair(
        Value(7, 0),
        ((1.0, Value(7, 1)),),
        Product((("mul", Value(7, 2)), ("div", Const(2.0))), ((1.0, Value(7, 3)),)),
    )
    assert moved.product.values == (Value(7, 2), Value(7, 3))
    assert replace_product(pair).each(lambda v: v) == replace_product(pair)


def replace_product(pair: Pair) -> Pair:
    return Pair(pair.significand, pair.terms)


def test_a_negated_exponential_is_still_a_known_product():
    product = Product((), ((1.0, X),))

    assert product.negated.factors == (("mul", Const(-1.0)),)
    assert product.negated.negated == product
