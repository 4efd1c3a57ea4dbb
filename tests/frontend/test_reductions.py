"""Arguments of reductions that NumPy and torch have: dtypes, masks, and numbers to begin with."""

import numpy as np
import pytest

import blockbuster as bb

X = np.array([[3, -1, 2, 0], [4, 1, 5, -2], [6, 2, 2, 7]])
POSITIVE = X > 0


@pytest.mark.parametrize("function", [
    lambda x: x.sum(0, dtype=np.float32),
    lambda x: np.sum(x * 40, dtype=np.int8),
    lambda x: np.sum(x, 0, np.float32),
    lambda x: (x > 2).sum(dtype=np.int32),
    lambda x: np.mean(x, dtype=np.float32),
    lambda x: np.prod(x, axis=0, dtype=np.int32),
    lambda x: np.cumsum(x, 0, dtype=np.int32),
    lambda x: np.cumprod(x, 0, dtype=float),
    lambda x: np.sum(x, where=x > 0),
    lambda x: np.sum(x, axis=0, initial=5),
    lambda x: np.max(x, where=x > 5, initial=-3, axis=1),
    lambda x: np.min(x, initial=-7),
    lambda x: np.mean(x / 2, where=POSITIVE[:1], axis=1),
    lambda x: np.prod(x, where=POSITIVE, initial=2),
    lambda x: np.any(x > 6, where=[True, True, True, False], axis=1),
    lambda x: np.all(x > 0, where=POSITIVE[:, :1], axis=0),
    lambda x: np.mean(x, axis=1, where=[True, True, False, True]),
    lambda x: np.sum(x.astype(np.float32), initial=np.float64(5.5)),
    lambda x: np.sum(x, initial=5.5),
    lambda x: np.prod(x > 0, initial=2.5),
    lambda x: np.max(x, initial=8.5),
    lambda x: np.max(x.astype(np.float32), where=x > 5, initial=np.float64(2)),
    lambda x: x[:, :0].max(axis=1, initial=2),
    lambda x: np.min(x[:0].astype(np.float32), axis=0, initial=0.5, keepdims=True),
], ids=range(24))  # fmt: skip
def test_as_in_numpy(function):
    made, wanted = bb.jit(lambda x: function(x))(X), function(X)
    assert made.shape == wanted.shape
    assert made.dtype == wanted.dtype
    np.testing.assert_allclose(made, wanted, rtol=1e-6)


def test_masks_hide_nan():
    x = np.where(POSITIVE, X, np.nan)
    for function in (np.sum, np.mean):
        made = bb.jit(lambda x, function=function: function(x, where=POSITIVE, axis=0))(x)
        np.testing.assert_allclose(made, function(x, where=POSITIVE, axis=0))


def test_dtypes_as_in_torch():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X).to(torch.int8)
    for function in (
        lambda x: (x > 0).sum(0, dtype=torch.int32),
        lambda x: (x * 20).sum(0, dtype=torch.int8),
        lambda x: x.prod(1, dtype=torch.float64),
        lambda x: x.cumsum(1, dtype=torch.int32),
        lambda x: x.mean(dtype=torch.bfloat16),
    ):
        made, wanted = bb.jit(function)(x), function(x)
        assert made.dtype == wanted.dtype
        assert torch.equal(made, wanted)


def test_a_dtype_in_the_place_of_keepdims_is_refused():
    with pytest.raises(bb.TraceError, match=r"sum with keepdims=(.|\n)*name the dtype"):
        bb.jit(lambda x: x.sum(0, np.float32))(X)
