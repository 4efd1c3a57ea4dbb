"""Lists of numbers where NumPy takes arrays."""

import numpy as np
import pytest

import blockbuster as bb

X = np.arange(12.0).reshape(3, 4)
ROW = [1, 2, 3, 4]


@pytest.mark.parametrize("function", [
    lambda x: x + ROW,
    lambda x: ROW - x,
    lambda x: x @ ROW,
    lambda x: x > ROW,
    lambda x: np.dot(x, ROW),
    lambda x: np.where(x > 0, ROW, x),
    lambda x: np.hypot(x, ROW),
    lambda x: np.clip(x, ROW, 5),
    lambda x: np.einsum("ij,j", x, ROW),
    lambda x: np.average(x, axis=0, weights=[1, 2, 3]),
    lambda x: np.convolve(x[0], [1, 2, 1]),
    lambda x: np.concatenate([x, [ROW]]),
    lambda x: np.hstack([x[0], ROW]),
    lambda x: np.tensordot(x, [ROW], axes=([1], [1])),
], ids=range(14))  # fmt: skip
def test_mean_arrays(function):
    made, wanted = bb.jit(lambda x: function(x))(X), function(X)
    assert made.dtype == wanted.dtype
    np.testing.assert_allclose(made, wanted)


def test_that_change_are_seen():
    held = [1.0, 2.0]
    jitted = bb.jit(lambda x: x + held)
    assert jitted(np.zeros(2)).tolist() == held
    held[0] = 7.0
    assert jitted(np.zeros(2)).tolist() == held


def test_of_traced_arrays_are_no_arrays():
    with pytest.raises(bb.TraceError, match="a list is neither an array nor a number"):
        bb.jit(lambda x: np.add(x, [x, 1]))(X)
