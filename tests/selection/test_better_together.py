"""What one kernel keeps exact is not stored between two: exponentials, and means of variances."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.compile import jit
from blockbuster.selection.parts.better_together import better_together, cancelling


def naive_softmax(x):
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def attention_by_hand(q, k, v):
    e = np.exp(q @ k.T)
    return (e @ v) / e.sum(axis=-1, keepdims=True)


def features(q, k):
    """Exponentials that only make the result grow: it is as large as they are."""
    return np.exp(q) @ np.exp(k)


def shifted(x):
    return np.exp(x - x.max(axis=-1, keepdims=True)).sum(axis=-1)


def variance(x):
    return np.sum(x * x, -1) / x.shape[-1] - np.square(np.sum(x, -1) / x.shape[-1])


def mean_of_squares(x):
    return np.mean(x * x, -1) + np.mean(x, -1)


def words(program, values):
    names = program.names()
    return sorted(names[value] for value in values)


@pytest.mark.parametrize(
    ("function", "dims", "count"),
    [
        (naive_softmax, dict(x="M N"), 2),
        (attention_by_hand, dict(q="M D", k="N D", v="N E"), 3),
        (features, dict(q="M D", k="D N"), 0),
        (shifted, dict(x="M N"), 0),
        (bb.softmax, dict(x="M N"), 0),
    ],
)
def test_exponentials_that_are_divided_by(function, dims, count):
    program = bb.trace(function, **dims)
    assert len(better_together(program)) == count, words(program, better_together(program))


def test_means_that_meet_in_a_variance():
    assert cancelling(bb.trace(variance, x="M N"))
    assert not cancelling(bb.trace(mean_of_squares, x="M N"))


def covariance(x, y):
    return np.mean(x * y, -1) - np.mean(x, -1) * np.mean(y, -1)


def by_the_mean(x):
    return np.sum(x * x, -1) - np.sum(x * np.mean(x, -1, keepdims=True), -1)


def scaled(x, w, scale, y):
    """What a batch norm does with a sum of products, and a residual."""
    return np.sum(x * w, -1) * scale + np.sum(x * y, -1)


def norm_of_scaled(x, c):
    """The variance is made of differences from the mean, and has lost nothing."""
    d = x * c - np.mean(x * c, -1, keepdims=True)
    return d / np.sqrt(np.mean(d * d, -1, keepdims=True) + 1e-5)


def norm_by_squares(x, c):
    return (x * c) / np.sqrt(variance(x * c)[:, None] + 1e-5)


@pytest.mark.parametrize(
    ("function", "dims", "is_one"),
    [
        (norm_of_scaled, dict(x="M N", c="N"), False),
        (norm_by_squares, dict(x="M N", c="N"), True),
        (covariance, dict(x="M N", y="M N"), True),
        (by_the_mean, dict(x="M N"), True),
        (scaled, dict(x="M N", w="N", scale="M", y="N"), False),
    ],
)
def test_a_sum_times_what_it_was_made_of_is_a_square(function, dims, is_one):
    assert bool(cancelling(bb.trace(function, **dims))) is is_one


def test_a_product_in_front_of_a_variance_may_be_stored():
    """A norm written by squares behind a linear layer: the layer is a kernel of its own."""
    program = bb.trace(lambda x, w: variance(x @ w), x="M K", w="K N")
    product = next(at for at, one in enumerate(program.equations) if one.op == "matmul")
    assert product not in {value.node for value in better_together(program)}


@pytest.mark.parametrize("shape", [(300, 512), (128, 512), (2000, 128)])
def test_large_scores_are_finite_on_the_cpu(shape):
    x = (np.random.default_rng(0).standard_normal(shape) * 100).astype(np.float32)
    for function in (naive_softmax, lambda x: naive_softmax(x) + x):
        found = jit(function)(x)
        assert np.isfinite(found).all()
    np.testing.assert_allclose(jit(naive_softmax)(x).sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("shape", [(64, 512), (600, 800)])
def test_variances_far_from_zero_keep_their_digits_on_the_cpu(shape):
    x = (np.random.default_rng(0).standard_normal(shape) + 1000).astype(np.float32)
    exact = x.astype(np.float64).var(-1)
    np.testing.assert_allclose(jit(variance)(x), exact, atol=1e-5)
    by_columns = lambda x: variance(x.T)  # noqa: E731
    np.testing.assert_allclose(jit(by_columns)(x), x.astype(np.float64).var(0), atol=1e-5)


def test_rows_whose_exponentials_vanish_are_normalized():
    x = np.abs(np.random.default_rng(0).standard_normal((40, 300)).astype(np.float32)) + 120
    np.testing.assert_allclose(jit(lambda x: bb.softmax(-np.abs(x)))(x).sum(-1), 1, atol=1e-5)
    both = jit(lambda x, y: bb.softmax(np.concatenate([x, y], axis=1), axis=1))
    assert np.isfinite(both(x * 100, -x * 100)).all()


def test_results_are_arrays_of_their_own():
    i = np.arange(6)
    same, _ = jit(lambda i: (i.astype(np.int64), i.sum()))(i)
    same[:] = -1
    assert i.tolist() == [0, 1, 2, 3, 4, 5]
    x = np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32)

    def turned(x):
        return x.T.reshape(-1), x.T.reshape(-1)[:, None], np.exp(x).sum(0)

    first, second, _ = jit(turned)(x)
    assert not np.shares_memory(first, second)
