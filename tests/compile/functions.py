"""Functions to compile, and what they are in plain NumPy."""

import numpy as np

import blockbuster as bb


def attention(q, k, v):
    s = (q @ k.T) * q.shape[-1] ** -0.5
    return bb.softmax(s) @ v


def plain_attention(q, k, v):
    s = q @ k.T * q.shape[-1] ** -0.5
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def several(x, w):
    """Two pieces with a sort between them; results that cross, are views, or are neither."""
    y = bb.exp(x) @ w
    z = np.sort(y.T, axis=-1)
    return {"twice": z * 2, "soft": bb.softmax(y), "y": y, "turned": y.T, "sorted": z}


def plain_several(x, w):
    y = np.exp(x) @ w
    e = np.exp(y - y.max(-1, keepdims=True))
    z = np.sort(y.T, axis=-1)
    soft = e / e.sum(-1, keepdims=True)
    return {"twice": z * 2, "soft": soft, "y": y, "turned": y.T, "sorted": z}


def doubled(array):
    return array * 2


def failing(array):
    raise KeyError("no such row")


def fails_if_negative(array):
    if array.min() < 0:
        raise RuntimeError("less than 0")
    return array


def with_custom(fn):
    def function(x):
        return bb.custom(fn, x + 1, shape=x.shape) - 1

    return function


def normal(*shapes, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def close(got, expected, tolerance=1e-5):
    expected = np.asarray(expected, np.float64)
    assert got.shape == expected.shape
    largest = np.abs(expected).max(initial=1e-3)
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=0, atol=tolerance * largest)
