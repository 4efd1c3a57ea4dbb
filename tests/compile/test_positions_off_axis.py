"""Positions that are known and not on their axis: IndexError with the user's line, when traced."""

import re

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import blockbuster as bb

X = torch.arange(12.0).reshape(3, 4)
FAR, BELOW = torch.tensor([[4]]), torch.tensor([[-1]])
HELD = np.array([0, 3])


def changed(x, at):
    y = x.clone()
    y[at] = 1.0
    return y


@pytest.mark.parametrize(
    ("function", "wrong", "extent"),
    [
        (lambda x: x[5], 5, 3),
        (lambda x: x[:, -5], -5, 4),
        (lambda x: x[[0, 5]], 5, 3),
        (lambda x: x[HELD] + 1, 3, 3),
        (lambda x: x[torch.tensor([0, -4])], -4, 3),
        (lambda x: x[torch.tensor([0, 1]), torch.tensor([0, 4])], 4, 4),
        (lambda x: torch.take(x, torch.tensor([12])), 12, 12),
        (lambda x: torch.index_select(x, 1, torch.tensor([0, -1])), -1, 4),
        (lambda x: F.embedding(torch.tensor([0, -1]), x), -1, 3),
        (lambda x: torch.gather(x, 1, FAR), 4, 4),
        (lambda x: torch.gather(x, 1, BELOW), -1, 4),
        (lambda x: x.scatter(1, FAR, 1.0), 4, 4),
        (lambda x: x.scatter_add(1, BELOW, X), -1, 4),
        (lambda x: x.index_add(0, torch.tensor([0, 3]), X[:2]), 3, 3),
        (lambda x: x.index_copy(0, torch.tensor([-1]), X[:1]), -1, 3),
        (lambda x: changed(x, torch.tensor([0, 3])), 3, 3),
        (lambda x: F.cross_entropy(x, torch.tensor([0, 4, 1])), 4, 4),
        (lambda x: F.nll_loss(x, torch.tensor([0, -1, 1])), -1, 4),
    ],
)
def test_a_known_position_off_its_axis_is_an_index_error_with_the_line(function, wrong, extent):
    with pytest.raises((IndexError, RuntimeError)):
        function(X)
    words = re.escape(f"there is no position {wrong} on an axis of {extent} elements")
    with pytest.raises(IndexError, match=rf"{words}\n  test_positions_off_axis.py:\d+: ") as raised:
        bb.jit(function)(X)

    assert isinstance(raised.value, bb.TraceError)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[[0, -3]],
        lambda x: x[np.array([], int)],
        lambda x: x[torch.tensor([2, -1]), torch.tensor([-4, 3])],
        lambda x: torch.gather(x, 1, torch.tensor([[3, 0]])),
        lambda x: torch.take_along_dim(x, BELOW, 1),
        lambda x: changed(x, torch.tensor([-1])),
        lambda x: F.cross_entropy(x, torch.tensor([0, -100, 3])),
    ],
)
def test_positions_on_the_axis_and_ignored_labels_are_as_in_eager_torch(function):
    torch.testing.assert_close(bb.jit(function)(X), function(X))


def test_a_smaller_array_of_a_jitted_function_is_looked_at_again():
    last = bb.jit(lambda x: x[[0, 5]] * 2)
    last(np.ones((8, 3)))

    with pytest.raises(IndexError, match="no position 5 on an axis of 4 elements"):
        last(np.ones((4, 3)))
