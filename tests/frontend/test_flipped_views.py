"""Slices that run backwards are views for all sizes: they ask for nothing that slices do not."""

from itertools import product

import numpy as np
import pytest

import blockbuster.frontend as bb
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.lengths import completed
from blockbuster.ir.ops import Misc

PLACES = (None, -3, -1, 1, 4)
PIECES = (slice(None, None, -1), slice(1, None), slice(4, 1, -1), slice(1, 3), slice(-2, None, -3))


def cut(x, pieces):
    for piece in pieces:
        x = x[piece]
    return x


def check(*pieces):
    """The slice of a slice ... is right for all sizes, by no copy."""
    graph = bb.lower(bb.trace(lambda x: cut(x, pieces) + 1, x="M"))
    assert not [*graph.of_type(Misc)]
    for size in range(7):
        completed({"M": size}, graph.size_rules)
        x = np.arange(float(size))
        (found,) = evaluate(graph, {"x": x}).values()
        np.testing.assert_array_equal(found, cut(x, pieces) + 1, err_msg=f"{pieces} of {size}")


@pytest.mark.parametrize("step", [-1, -2, -3])
def test_one_slice(step):
    for start, stop in product(PLACES, PLACES):
        check(slice(start, stop, step))


@pytest.mark.parametrize("first", PIECES, ids=str)
def test_slices_of_slices(first):
    for second in PIECES:
        check(first, second)


@pytest.mark.parametrize(
    ("function", "asked"),
    [
        (lambda x: x[::-1][1], "|M| is at least 2"),
        (lambda x: x[-3], "|M| is at least 3"),
        (lambda x: x[::-1] + x[0], "|M| is at least 1"),
    ],
)
def test_elements_that_have_to_be_there_are_asked_for(function, asked):
    graph = bb.lower(bb.trace(function, x="M"))

    assert asked in [*map(str, graph.size_rules)]
