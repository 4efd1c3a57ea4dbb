"""The oracle and eager functions against plain NumPy, and the one meaning of softmax."""

import math

import numpy as np
import pytest

import blockbuster.frontend as bb

X = np.random.default_rng(1).normal(size=(4, 6))
Y = np.random.default_rng(2).normal(size=(4, 6))
G = np.random.default_rng(3).normal(size=6)
POSITIVE = np.abs(X) + 0.1
ERF = np.vectorize(math.erf)

UNARY = {
    "exp": (X, np.exp(X)),
    "log": (POSITIVE, np.log(POSITIVE)),
    "sqrt": (POSITIVE, np.sqrt(POSITIVE)),
    "rsqrt": (POSITIVE, POSITIVE**-0.5),
    "tanh": (X, np.tanh(X)),
    "sigmoid": (X, 1 / (1 + np.exp(-X))),
    "silu": (X, X / (1 + np.exp(-X))),
    "gelu": (X, X * 0.5 * (1 + ERF(X / 2**0.5))),
    "relu": (X, np.where(X > 0, X, 0)),
    "erf": (X, ERF(X)),
    "abs": (X, np.abs(X)),
    "square": (X, X * X),
    "reciprocal": (X, 1 / X),
    "softmax": (X, np.exp(X) / np.exp(X).sum(-1, keepdims=True)),
    "log_softmax": (X, X - np.log(np.exp(X).sum(-1, keepdims=True))),
    "logsumexp": (X, np.log(np.exp(X).sum(-1))),
    "rms_norm": (X, X / np.sqrt((X**2).mean(-1, keepdims=True) + 1e-6)),
    "layer_norm": (X, (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5)),
    "transpose": (X, X.T),
    "sum": (X, X.sum()),
    "mean": (X, X.mean()),
    "max": (X, X.max()),
    "min": (X, X.min()),
}


def oracle(fn, **arrays):
    return bb.trace(fn, **arrays).numpy(arrays)["out"]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name):
    x, wanted = UNARY[name]
    fn = getattr(bb, name)

    np.testing.assert_allclose(oracle(lambda x: fn(x), x=x), wanted, rtol=1e-12)
    np.testing.assert_allclose(fn(x), wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("fn", "wanted"),
    [
        (lambda x, y: bb.maximum(x, y), np.maximum(X, Y)),
        (lambda x, y: bb.minimum(x, 0.5), np.minimum(X, 0.5)),
        (lambda x, y: np.where(x > y, x, -y), np.where(X > Y, X, -Y)),
        (
            lambda x, y: bb.where((x >= 0) & (y <= 0) | ~(x != y), 1.0, y),
            np.where((X >= 0) & (Y <= 0), 1, Y),
        ),
        (lambda x, y: 2 - x / 3 + 1 / (y * y) ** 0.5, 2 - X / 3 + 1 / np.abs(Y)),
        (lambda x, y: 2**x - abs(-y), 2**X - np.abs(Y)),
        (lambda x, y: x @ y.T @ x, X @ Y.T @ X),
        (lambda x, y: np.matmul(x, y.mT), X @ Y.T),
        (lambda x, y: x.sum(0) + np.sum(y, axis=-2), X.sum(0) + Y.sum(0)),
        (lambda x, y: x.max(1, keepdims=True) * np.mean(y, axis=0), X.max(1)[:, None] * Y.mean(0)),
        (lambda x, y: np.add.reduce(x, axis=1) - y.min(-1), X.sum(1) - Y.min(1)),
        (lambda x, y: x[:, None] + y[None, ..., :], X[:, None] + Y),
        (lambda x, y: np.expand_dims(x, -1) * y.swapaxes(0, 1).T[..., None], (X * Y)[..., None]),
        (lambda x, y: x.shape[1] ** -0.5 * x + np.sqrt(y.shape[0]), X * 6**-0.5 + 2),
        (lambda x, y: bb.arange(x.shape[-1]) * x, np.arange(6) * X),
        (lambda x, y: np.cumsum(x, axis=1) + np.sort(y), np.cumsum(X, 1) + np.sort(Y)),
        (lambda x, y: bb.custom(np.flip, x, shape=x.shape), np.flip(X)),
        (lambda x, y: x.sum((0, 1)) + np.zeros((1, 1)), X.sum() + np.zeros((1, 1))),
        (lambda x, y: bb.astype(x, np.float16) + 0, X.astype(np.float16).astype(float)),
    ],
)  # fmt: skip
def test_array_functions(fn, wanted):
    got = oracle(fn, x=X, y=Y)

    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
    np.testing.assert_allclose(fn(X, Y), wanted, rtol=1e-12)


def test_weights_of_norms():
    norm = (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5)

    np.testing.assert_allclose(oracle(bb.layer_norm, x=X, gamma=G, beta=G), norm * G + G)
    np.testing.assert_allclose(oracle(lambda x, b: bb.layer_norm(x, None, b), x=X, b=G), norm + G)
    np.testing.assert_allclose(oracle(bb.rms_norm, x=X, weight=G), bb.rms_norm(X) * G)


def test_bfloat16_rounds_to_even():
    x = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, np.inf, np.nan, -np.pi])

    np.testing.assert_array_equal(
        bb.astype(x, "bfloat16"), [1.0, 1.0, 1 + 4 * 2**-8, np.inf, np.nan, -3.140625]
    )


ROWS = {
    "masked": ([-np.inf, -np.inf], [0, 0], -np.inf, [np.nan, np.nan]),
    "nan": ([np.nan, 0], [np.nan, np.nan], np.nan, [np.nan, np.nan]),
    "inf": ([np.inf, 0], [np.nan, np.nan], np.inf, [np.nan, np.nan]),
    "large": ([1e4, 1e4], [0.5, 0.5], 1e4 + math.log(2), [-math.log(2)] * 2),
    "half masked": ([-np.inf, 3], [0, 1], 3, [-np.inf, 0]),
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.filterwarnings("error")
def test_the_one_meaning_of_softmax(row):
    values, softmax, total, log_softmax = ROWS[row]
    x = np.array([values])

    for fn in (lambda x: bb.softmax(x), lambda x: bb.softmax(x, safe=True)):
        np.testing.assert_allclose(oracle(fn, x=x), [softmax])
        np.testing.assert_allclose(fn(x), [softmax])
    np.testing.assert_allclose(oracle(lambda x: bb.logsumexp(x), x=x), [total])
    np.testing.assert_allclose(oracle(lambda x: bb.log_softmax(x), x=x), [log_softmax])


@pytest.mark.parametrize("name", UNARY)
def test_eager_functions_keep_the_dtype(name):
    x = UNARY[name][0].astype(np.float32)

    assert getattr(bb, name)(x).dtype == np.float32


def test_the_oracle_checks_its_inputs():
    program = bb.trace(lambda x, w: x @ w, x="M K", w="K N=3")

    with pytest.raises(ValueError, match=r"w has shape \(5, 3\), expected \(K, N\) with K = 4"):
        program.numpy({"x": np.ones((2, 4)), "w": np.ones((5, 3))})
    with pytest.raises(ValueError, match="with N = 3"):
        program.numpy({"x": np.ones((2, 4)), "w": np.ones((4, 5))})
    with pytest.raises(TypeError, match=r"takes the arrays \['x', 'w'\], got \['x'\]"):
        program.numpy({"x": np.ones((2, 4))})


def test_a_custom_function_must_keep_its_word():
    program = bb.trace(lambda x: bb.custom(np.ravel, x, shape=x.shape), x="M N")

    with pytest.raises(ValueError, match=r"ravel gave an array of shape \(6,\), expected \(M, N\)"):
        program.numpy({"x": np.ones((2, 3))})
