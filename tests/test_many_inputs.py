"""Programs of many inputs: a sum of as many arrays, leaning left, leaning right, and in pairs."""

from __future__ import annotations

import numpy as np
import pytest

import blockbuster as bb

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -3.0]])


def array_names(count):
    return {f"x{position}": "M N" for position in range(count)}


def sum_to_the_left(**arrays):
    total, *others = arrays.values()
    for array in others:
        total = total + array
    return total


def sum_to_the_right(**arrays):
    total, *others = reversed(arrays.values())
    for array in others:
        total = array + total
    return total


def sum_in_pairs(**arrays):
    items = [*arrays.values()]
    while len(items) > 1:
        pairs = [a + b for a, b in zip(items[::2], items[1::2], strict=False)]
        items = pairs + items[2 * len(pairs) :]
    return items[0]


def check_sum(make, count):
    program = bb.trace(make, **array_names(count))
    graph = bb.lower(program)
    assert bb.parse(str(graph)) == graph
    arrays = {name: X * position for position, name in enumerate(array_names(count))}
    expected = X * (count * (count - 1) // 2)
    np.testing.assert_allclose(bb.evaluate(graph, arrays)["out"], expected, rtol=1e-12)
    np.testing.assert_allclose(program.numpy(arrays)["out"], expected, rtol=1e-12)
    return graph, arrays, expected


SUMS = (sum_to_the_left, sum_to_the_right, sum_in_pairs)


@pytest.mark.parametrize("make", SUMS)
def test_a_sum_of_many_arrays(make):
    graph, arrays, expected = check_sum(make, 300)
    assert not bb.fuse(graph).final.buffered_edges()
    np.testing.assert_allclose(bb.jit(make)(**arrays), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "count"), [*zip(SUMS, (5_000, 3_000, 3_000), strict=True)])
def test_a_sum_of_thousands_of_arrays(make, count):
    check_sum(make, count)
