"""Which axes are blocked where short axes are among the innermost of an array."""

import numpy as np
import pytest

import blockbuster as bb


def lowered(fn, **axes):
    return bb.lower(bb.trace(fn, **axes))


def shuffled(x):
    """Blocks of 2 x 2 channels become pixels."""
    a, b, c, d = x.shape
    pieces = x.reshape(a, b // 4, 2, 2, c, d).transpose(0, 1, 4, 2, 5, 3)
    return pieces.reshape(a, b // 4, c * 2, d * 2)


def unshuffled(x):
    a, b, c, d = x.shape
    pieces = x.reshape(a, b, c // 2, 2, d // 2, 2).transpose(0, 1, 3, 5, 2, 4)
    return pieces.reshape(a, b * 4, c // 2, d // 2)


@pytest.mark.parametrize("fn", [shuffled, unshuffled])
@pytest.mark.parametrize("then", [lambda y: y, np.tanh])
def test_lines_of_both_arrays_are_blocked(fn, then):
    """Two long axes and the short ones among them, whatever is computed of the elements."""
    graph = lowered(lambda x: then(fn(x)), x="A B C D")
    (given,) = graph.inputs

    assert len(given.type.lists) == 6
    assert len(given.type.axes) == 4


def test_long_axes_stay_as_they_are():
    """Columns that are split into heads: the innermost axis is long, and so is the one before."""
    (given,) = lowered(lambda x: bb.split_heads(x, 4) * 2, x="S D").inputs
    assert given.type.axes == ("S", "B")


def test_folds_stay_as_they_are():
    (given,) = lowered(lambda x: np.sum(shuffled(x), axis=-1), x="A B C D").inputs
    assert len(given.type.axes) <= 2


@pytest.mark.parametrize("fn", [shuffled, unshuffled])
def test_values_are_right(fn):
    x = np.random.default_rng(0).standard_normal((2, 8, 6, 10))
    graph = lowered(lambda x: fn(x) + 1, x="A B C D")
    (y,) = bb.evaluate(graph, {"x": x}).values()
    np.testing.assert_allclose(y, fn(x) + 1)


CHOSEN = {
    "of two": (lambda x, y: np.stack([x, y], -1).reshape(x.shape[0], -1), 1),
    "computed": (lambda x, y: np.stack([x.max(1), y.sum(1)], -1) * 2, 1),
    "of one array": (lambda x, y: np.stack([x * 2, x + 1], -1) + 0 * y[0, 0], 2),
    "in front": (lambda x, y: np.stack([x, y], 0), 2),
}


@pytest.mark.parametrize(("fn", "values"), CHOSEN.values(), ids=CHOSEN)
def test_single_elements_of_several_arrays_are_one_value(fn, values):
    """Each by itself would be a kernel that writes a part of each line of memory."""
    drawn = np.random.default_rng(0)
    arrays = {name: drawn.integers(-4, 5, (3, 4)).astype(float) for name in "xy"}
    graph = bb.lower(bb.trace(fn, x="M N", y="M N"))

    assert len(graph.outputs) == values
    np.testing.assert_array_equal(bb.evaluate(graph, arrays)["out"], fn(**arrays))
