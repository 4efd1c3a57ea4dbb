"""Folds of a reshape that are pools of two axes: recorded as torch's pools, with equal values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb

torch = pytest.importorskip("torch")


def ops(fn, *shape):
    return [e.op for e in bb.trace(fn, x=np.zeros(shape)).equations]


def of_columns(x):
    return np.maximum(x[..., 0::2], x[..., 1::2])


POOLS = {
    "axes at once": lambda x: x.reshape(2, 3, 2, 4, 2).max((2, 4)),
    "the last axis first": lambda x: x.reshape(2, 3, 2, 4, 2).max(-1).max(2),
    "rows first": lambda x: x.reshape(2, 3, 2, 4, 2).max(2).max(3),
    "one reshape after the other": lambda x: x.reshape(2, 3, 2, 8).max(2).reshape(
        2, 3, 4, 2).max(3),
    "pieces": lambda x: of_columns(np.maximum(x[:, 0::2], x[:, 1::2])),
}  # fmt: skip


@pytest.mark.parametrize("fn", POOLS.values(), ids=POOLS)
def test_one_form(fn):
    x = np.random.default_rng(0).standard_normal((2, 6, 8))
    assert ops(fn, *x.shape) == ["strided"] * 6 + ["maximum"] * 3
    np.testing.assert_array_equal(bb.jit(fn)(x), fn(x))


OTHERS = {
    "a window in one axis": lambda x: x.reshape(2, 3, 2, 8).max(2),
    "outer parts": lambda x: x.reshape(2, 2, 3, 4, 2).max((1, 4)),
    "a whole axis": lambda x: x.reshape(2, 6, 4, 2).max((1, 3)),
    "a merged axis": lambda x: x.reshape(3, 4, 4, 2).max((1, 3)),
    "more than 16 elements": lambda x: x.reshape(2, 1, 6, 2, 4).max((2, 4)),
    "another fold first": lambda x: x.reshape(2, 3, 2, 4, 2).min(-1).max(2),
    "axes that stay": lambda x: x.reshape(2, 3, 2, 4, 2).max((2, 4), keepdims=True),
}  # fmt: skip


@pytest.mark.parametrize("fn", OTHERS.values(), ids=OTHERS)
def test_others_stay_folds(fn):
    x = np.random.default_rng(0).standard_normal((2, 6, 8))
    assert "max" in ops(fn, *x.shape)
    assert "strided" not in ops(fn, *x.shape)
    np.testing.assert_array_equal(bb.jit(fn)(x), fn(x))


@given(st.sampled_from(["sum", "mean", "max", "min"]), st.permutations([1, 2, 3]),
       st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))  # fmt: skip
def test_any_windows(fold, sizes, batch, k, m):
    a, b, c = sizes
    x = np.random.default_rng(k).integers(-9, 9, (batch, a * k, b, c * m)).astype(float)

    def fn(x):
        made = x.reshape(batch * 1, a, k, b, c, m)
        return getattr(getattr(made, fold)(5), fold)(2)

    np.testing.assert_allclose(bb.jit(fn)(x), fn(x), rtol=1e-14)


def test_tensors_with_names_of_sizes():
    def by_hand(x):
        b, c, h, w = x.shape
        return x.view(b, c, h // 2, 2, w // 2, 2).amax((3, 5)) + 1

    x = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    assert torch.equal(bb.jit(by_hand)(x), by_hand(x))
    made = [bb.trace(fn, x=x) for fn in (
        by_hand, lambda x: torch.nn.functional.max_pool2d(x, 2) + 1)]  # fmt: skip
    ops = [sorted(e.op for e in one.equations) for one in made]
    assert ops[0] == ops[1]


@pytest.mark.parametrize("fn", [
    lambda x: (x > 0).reshape(2, 2, 2, 2).mean((1, 3)),
    lambda x: np.isnan(x).reshape(2, 2, 2, 2).mean((1, 3)),
    lambda x: (x > 0).reshape(2, 2, 2, 2).mean(3).mean(1),
])  # fmt: skip
def test_means_of_masks_are_counted(fn):
    x = np.array([[1.0, -1, np.nan, 2], [3, 4, -5, 6], [-1, -1, 0, 0], [1, 1, 1, np.nan]])

    np.testing.assert_allclose(bb.jit(fn)(x), fn(x))
