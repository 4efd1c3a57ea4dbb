"""Blocks along the lines of arrays that are computed in another order than they are stored."""

import numpy as np
import pytest
import torch.nn.functional as F

import blockbuster as bb


def lowered(fn, **axes):
    return bb.lower(bb.trace(fn, **axes))


def blocked(graph):
    """The axes in blocks of each input that is read along four axes."""
    return [given.type.axes for given in graph.inputs if len(given.type.lists) >= 3]


def of_channels(x):
    return bb.layer_norm(np.swapaxes(x, 1, -1))


@pytest.mark.parametrize(("fn", "expected"), [
    (lambda x: np.transpose(x, (2, 0, 3, 1)) * 2, {"D", "B"}),
    (lambda x: np.swapaxes(of_channels(x), 1, -1), {"D", "B"}),
    (lambda x: bb.softmax(np.transpose(x, (3, 2, 1, 0)), axis=1), {"A", "C", "D"}),
])  # fmt: skip
def test_lines_and_folds_are_blocked(fn, expected):
    (axes,) = blocked(lowered(fn, x="A B C D"))
    assert {axis.rstrip("'") for axis in axes} == expected


@pytest.mark.parametrize("fn", [
    lambda x: np.mean(x, axis=(2, 3)),  # the result is small: its lines do not count
    lambda x: bb.softmax(x, axis=1),  # x is read along D as it is
    lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=3).max(-1),  # 3 taps: no line
])  # fmt: skip
def test_the_last_two_axes_stay_where_they_hold_lines(fn):
    (axes,) = blocked(lowered(fn, x="A B C D"))
    assert len(axes) <= 2


@pytest.mark.parametrize("fn", [
    lambda x: np.transpose(x, (2, 0, 3, 1)) * 2,
    lambda x: np.swapaxes(bb.softmax(np.swapaxes(x, 1, -1), axis=-1), 1, -1),
    lambda x: (y := np.transpose(x, (3, 2, 1, 0))).sum(1) - y.max(axis=(1, 2))[:, None],
])  # fmt: skip
def test_values_are_right(fn):
    x = np.random.default_rng(0).standard_normal((3, 5, 4, 7))
    (y,) = bb.evaluate(lowered(fn, x="A B C D"), {"x": x}).values()
    (expected,) = bb.trace(fn, x="A B C D").numpy({"x": x}).values()
    np.testing.assert_allclose(y, expected, rtol=1e-12)


def test_an_axis_of_one_element_makes_no_line():
    """The weights of a depthwise convolution have as many axes as its images, one of one element:
    their taps are no lines of the loops.
    """
    of = bb.lower(bb.trace(lambda x, w: F.conv2d(x, w, groups=6), x="A 6 C D", w="6 1 3 3"))

    images, weights = of.inputs
    assert [len(given.type.axes) for given in (images, weights)] == [2, 0]


def channels_last(w):
    return np.transpose(w, (0, 2, 3, 4, 1))


def test_short_axes_of_known_sizes_count_to_the_lines():
    """Filters of 3 x 3 x 3 taps, copied with their channels last: by the last two axes alone, each
    program would move one element, and so it does where nothing is known of the taps.
    """
    (known,) = blocked(lowered(channels_last, w="A 32 3 3 3"))
    assert len(known) == 4
    assert "A" not in known
    (unknown,) = blocked(lowered(channels_last, w="A B T T T"))
    assert "B" not in unknown


def test_values_of_short_axes_are_right():
    w = np.random.default_rng(0).standard_normal((2, 32, 3, 3, 3))
    (y,) = bb.evaluate(lowered(channels_last, w="A 32 3 3 3"), {"w": w}).values()
    np.testing.assert_array_equal(y, channels_last(w))
