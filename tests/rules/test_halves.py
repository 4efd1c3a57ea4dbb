"""Factors times joined exponentials: right wherever the program as written is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.interp.semantics import Float32
from blockbuster.ir.ops import Map
from blockbuster.rules.halves import halved
from blockbuster.rules.overflow import overflowing

H = np.arange(-100.0, 100.5, 1.5)
FACTORS = (0.5, 3.0, 1e-4, 1e-30, 1e4, 1e30)


def safe_of(function, **inputs):
    return bb.safe(bb.fuse(bb.lower(bb.trace(function, **inputs))).final)


def exps(graph):
    """The exponentials of a program as text."""
    return graph.listing().count("exp(")


@st.composite
def products(draw):
    """A factor and exponentials in any order, some of them divisors."""
    powers = st.tuples(st.sampled_from("xy"), st.sampled_from([1.0, 0.5, -1.0, 2.0]), st.booleans())
    before, after = (draw(st.lists(powers, max_size=2)) for _ in range(2))
    factor = draw(st.sampled_from(FACTORS))

    def function(x, y, lib=bb):
        made = lib.exp(x)
        for at, (name, by, divides) in enumerate((*before, *after)):
            made = made * factor if at == len(before) else made
            part = lib.exp((x if name == "x" else y) * by)
            made = made / part if divides else made * part
        return made if after else made * factor

    return function


@given(products())
@np.errstate(all="ignore")
def test_what_is_right_as_written_is_right(function):
    x, y = (each.ravel()[:, None] for each in np.meshgrid(H[::4], H[1::4]))
    graph = safe_of(function, x="M N", y="M N")

    found = np.asarray(bb.evaluate(graph, {"x": x, "y": y}, semantics=Float32)["out"], float)

    eager = np.asarray(function(x.astype(np.float32), y.astype(np.float32), np), np.float32)
    exact = function(x, y, np)
    normal = np.isfinite(eager) & (np.abs(exact) > 1e-37) & (np.abs(exact) < 3e38)
    near = np.abs(eager - exact) <= 1e-4 * np.abs(exact)
    assert np.isfinite(found[normal & near]).all()
    np.testing.assert_allclose(found[normal & near], exact[normal & near], rtol=2e-4)


def half_of_a_square(h):
    r = bb.exp(h)
    return 0.5 * r * r


def test_a_variance_of_a_logarithm_is_computed_as_written():
    graph = safe_of(half_of_a_square, h="M N")
    h = np.array([[44.5]])

    (found,) = bb.evaluate(graph, {"h": h}, semantics=Float32)["out"].ravel()

    assert exps(graph) == 1
    assert found == pytest.approx(0.5 * np.exp(89.0), rel=1e-5)
    assert not overflowing(graph)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: bb.softmax(x) * 0.25,
        lambda x: bb.exp(x) / bb.exp(x).sum(-1, keepdims=True) * 0.25,
        lambda x: 0.25 * bb.exp(x) * bb.exp(-x.max(-1, keepdims=True)),
        lambda x: bb.exp(x) * bb.exp(x),
        lambda x: 0.25 * bb.exp(x),
        lambda x: bb.exp(x + 1) * x,
    ],
)
def test_nothing_changes_where_a_bound_shows_or_nothing_was_joined(function):
    graph = safe_of(function, x="M N")

    assert halved(graph) == graph


def test_bodies_of_maps_are_read_with_what_they_are_given():
    """The exponents of both factors come from outside of the loop."""
    graph = safe_of(lambda x, b: 1e-30 * bb.exp(x) * bb.exp(b), x="M N", b="M 1")

    assert any(isinstance(node.op, Map) for node in graph.nodes)
    x, b = np.full((2, 3), 70.0), np.full((2, 1), 60.0)
    found = bb.evaluate(graph, {"x": x, "b": b}, semantics=Float32, blocks={"N": 1})["out"]
    np.testing.assert_allclose(found, 1e-30 * np.exp(130.0), rtol=1e-5)


@given(products())
def test_safe_forms_stay_as_they_are(function):
    graph = safe_of(function, x="M N", y="M N")

    assert bb.safe(graph) == graph
