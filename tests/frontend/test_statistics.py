"""Quantiles and covariances: shares, infinities, dtypes, and what is refused."""

import numpy as np
import pytest

import blockbuster as bb

X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
FAR = X.copy()
FAR[[0, 1, 2], [0, 2, 3]] = np.inf, -np.inf, np.inf
SEVERAL = [[0.5, 0.2], [0.3, 0.4]]


@pytest.mark.parametrize("function", [
    lambda x: np.quantile(x, SEVERAL),
    lambda x: np.quantile(x, SEVERAL, axis=1, keepdims=True),
    lambda x: np.quantile(x, np.float64(0.5)),
    lambda x: np.quantile(x, np.float32(0.3)),
    lambda x: np.percentile(x, 30),
    lambda x: np.percentile(x, [30, 45.5]),
    lambda x: np.cov(x[:1]),
    lambda x: np.corrcoef(x[:1]),
    lambda x: np.cov(x, None, False),
    lambda x: np.corrcoef(x, None, False),
    *(lambda x, q=q: np.quantile(np.where(x > 1, np.inf, x), q, axis=0) for q in (0.3, 0.55, 0.8)),
    *(lambda x, q=q: np.quantile(np.where(x < 0, -np.inf, x), q, axis=0) for q in (0.3, 0.55)),
], ids=range(15))  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid value")
def test_as_in_numpy(function):
    made, wanted = bb.jit(lambda x: function(x))(X), function(X)
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)
    assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape)


def test_shares_that_a_function_holds():
    torch = pytest.importorskip("torch")
    x, shares = torch.from_numpy(X), torch.tensor([0.2, 0.55, 0.9])
    jitted = bb.jit(lambda x: torch.quantile(x, shares, dim=1))
    torch.testing.assert_close(jitted(x), torch.quantile(x, shares, dim=1))
    shares[0] = 0.4
    torch.testing.assert_close(jitted(x), torch.quantile(x, shares, dim=1))
    one = bb.jit(lambda x: torch.cov(x[:1], correction=0))(x)
    torch.testing.assert_close(one, torch.cov(x[:1], correction=0))


@pytest.mark.parametrize(("function", "message"), [
    (lambda x: np.quantile(x, 1.5), "a quantile at 1.5 of 1"),
    (lambda x: np.quantile(x, np.nan), "a quantile at nan of 1"),
    (lambda x: np.percentile(x, [-3, 5]), "of 100"),
    (lambda x: np.quantile(x, []), "give numbers from 0 to 1"),
    (lambda x: np.quantile(x, 0.5, axis=(0, 1)), "a quantile along the axes"),
    (lambda x: np.cov(x, x), "covariances of x and y"),
])  # fmt: skip
def test_refused_in_words(function, message):
    with pytest.raises(bb.TraceError, match=message):
        bb.jit(lambda x: function(x))(X)
