"""Extrema of exponentials: the smallest is not lost below the largest."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.builder import Builder
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Type
from blockbuster.rules import safe
from blockbuster.rules.emitter import Emitter
from blockbuster.rules.extrema import by_logarithms


@pytest.mark.parametrize(
    "function",
    [
        lambda x: bb.log(bb.min(bb.exp(x), axis=1)),
        lambda x: bb.log(bb.min(bb.exp(x), axis=0)),
        lambda x: bb.log(-bb.max(-bb.exp(x), axis=1)),
        lambda x: bb.log(bb.minimum(bb.exp(x), bb.exp(-x))),
        lambda x: bb.log(-bb.maximum(-bb.exp(x), -bb.exp(-x))),
        lambda x: bb.log(bb.min(bb.sqrt(bb.exp(x)), axis=1)),
        lambda x: bb.log(bb.min(3 / bb.exp(x) * bb.exp(x * 0.5), axis=1)),
        lambda x: bb.log(bb.min(bb.where(x > -100, bb.exp(x), bb.exp(-x)), axis=1)),
        lambda x: bb.exp(-x) * bb.min(bb.exp(x), axis=1, keepdims=True),
    ],
)
@pytest.mark.parametrize("blocks", [None, {"N": 2}])
def test_the_smallest_exponential_is_not_lost_below_the_largest(function, blocks):
    x = np.array([[600.0, -600.0, 3.0], [-90.0, 650.0, 649.0]])
    program = bb.lower(bb.trace(function, x="M N"))
    with np.errstate(over="ignore", under="ignore"):
        right = function(x)
    for graph in (program, bb.fuse(program).final):
        found = evaluate(safe(graph), {"x": x}, blocks=blocks, semantics=Float64)["out"]
        np.testing.assert_allclose(found, right, rtol=1e-12)


@pytest.mark.parametrize(
    ("monoid", "signs", "is_least"),
    [("max", "-0", True), ("max", "0+", False), ("min", "0+", True), ("min", "-0", False),
     ("max", "-0+", False), ("min", "-0+", False), ("+", "0+", False)],
)  # fmt: skip
def test_which_extrema_are_the_least_in_magnitude(monoid, signs, is_least):
    builder = Builder()
    x = builder.input(Type(axes=("M", "N")))
    to = Emitter(builder, Origin("test"))

    found = by_logarithms(to, monoid, signs, to.exponential(x))

    assert (found is not None) == is_least


def test_the_least_of_a_row_needs_no_logarithm_of_its_elements():
    graph = safe(
        bb.fuse(bb.lower(bb.trace(lambda x: bb.log(bb.min(bb.exp(x), axis=1)), x="M N"))).final
    )

    assert graph.show().count("log(") == 1


def test_absolute_values_do_not_lose_the_smallest_exponentials():
    x = np.array([[-78.0, 77.5, 70.0], [-1.0, 2.0, 0.0]])

    def function(x):
        return bb.log1p(bb.exp(-bb.abs(bb.exp(x) * bb.sum(bb.exp(x)))))

    graph = safe(bb.lower(bb.trace(function, x="M N")))
    found = evaluate(graph, {"x": x}, semantics=Float32)["out"]

    np.testing.assert_allclose(found, function(x), rtol=1e-5)
