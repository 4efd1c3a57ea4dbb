"""Means of means: one sum where one call made them, else each on its own."""

import pytest

import blockbuster as bb

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")


def quotients(function):
    """How many values of a function of an array of three axes are quotients."""
    graph = str(bb.lower(bb.trace(function, x=torch.empty(4, 3, 10))))
    return sum(" / " in line for line in graph.splitlines())


def in_two_lines(x):
    first = bb.mean(x, -1)
    return bb.mean(first, 0)


def of_large_sums(x):
    return bb.mean(bb.sum(x, -1) / 0.5, 0)


def test_a_mean_over_several_axes_is_one_sum():
    assert quotients(lambda x: bb.mean(x, (0, 2))) == 1
    assert quotients(lambda x: x.mean((0, 2))) == 1


@pytest.mark.parametrize("function", [in_two_lines, lambda x: x.mean(-1).mean(0), of_large_sums])
def test_means_that_eager_execution_makes_apart_stay_apart(function):
    """Four sums of 1e38 overflow in float32, and their means do not."""
    assert quotients(function) == 2
