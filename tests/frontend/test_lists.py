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
def test_lists_count_as_arrays(function):
    made, wanted = bb.jit(lambda x: function(x))(X), function(X)
    assert made.dtype == wanted.dtype
    np.testing.assert_allclose(made, wanted)


def test_changes_of_lists_are_seen():
    held = [1.0, 2.0]
    jitted = bb.jit(lambda x: x + held)
    assert jitted(np.zeros(2)).tolist() == held
    held[0] = 7.0
    assert jitted(np.zeros(2)).tolist() == held


def test_lists_of_traced_arrays_are_no_arrays():
    with pytest.raises(bb.TraceError, match="a list is neither an array nor a number"):
        bb.jit(lambda x: np.add(x, [x, 1]))(X)


@pytest.mark.parametrize("function", [
    lambda x: x + ROW,
    lambda x: ROW - x,
    lambda x: x @ ROW,
    lambda x: x.clamp(ROW, 5),
    lambda x: x.quantile([0.1, 0.5]),
], ids=range(5))  # fmt: skip
def test_lists_beside_tensors_are_refused_as_in_torch(function):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X)
    with pytest.raises(TypeError):
        function(x)
    with pytest.raises(bb.TraceError):
        bb.jit(lambda x: function(x))(x)
