"""Functions that are written with others: differences, integrals, statistics, matrices."""

import numpy as np
import pytest

import blockbuster as bb

X = np.random.default_rng(0).standard_normal((4, 5))
WHOLE = np.random.default_rng(1).integers(-9, 9, (4, 5))


@pytest.mark.parametrize("function", [
    np.gradient,
    lambda x: np.gradient(x, 0.5, 2.0),
    lambda x: np.gradient(x, axis=(1,)),
    lambda x: np.trapezoid(x, [0.0, 1, 3, 4, 9]),
    lambda x: np.trapezoid(x, x + 5, axis=0),
    lambda x: np.cov(x, rowvar=False, ddof=0),
    lambda x: np.cov(x[0], bias=True),
    np.corrcoef,
    lambda x: np.quantile(x, 0.3, keepdims=True),
    lambda x: np.quantile(x, [0.1, 0.5, 1.0], axis=0),
    lambda x: np.quantile(np.where(x > 1, np.nan, x), 0.3, axis=0),
    lambda x: np.percentile(x, 30, axis=1, keepdims=True),
    lambda x: np.kron(x, x[0]),
    lambda x: np.cross(x[:, :3], x[0, 1:4]),
    lambda x: np.rot90(x, -1, (1, 0)),
    lambda x: np.linalg.matrix_power(x @ x.T, 3),
    lambda x: np.linalg.matrix_power(x @ x.T, 0),
    lambda x: np.linalg.norm(x, 1),
    lambda x: np.linalg.norm(x[None], -np.inf, axis=(1, 2), keepdims=True),
    lambda x: np.logical_and.reduce(x > -1, axis=1),
    np.multiply.reduce,
    lambda x: np.gradient(x, np.float32(0.5), axis=0, edge_order=1),
    lambda x: np.trapezoid(x.reshape(2, 2, 5), x[:2]),
    lambda x: np.trapezoid(x[0], np.cumsum(abs(x), 1)),
    lambda x: np.kron(x, 2.0),
    lambda x: np.arctan2(x, 3.0),
    lambda x: np.arctan2(-2.0, x),
    lambda x: np.linalg.matrix_power(x[:, :4] > 0, 0),
], ids=range(28))  # fmt: skip
@pytest.mark.parametrize("x", [X, X.astype(np.float32), WHOLE], ids=["double", "single", "whole"])
def test_as_in_numpy(function, x):
    made, wanted = bb.jit(lambda x: function(x))(x), function(x)
    for one, right in zip(*((y if isinstance(y, tuple) else (y,)) for y in (made, wanted)),
                          strict=True):  # fmt: skip
        exact = dict(rtol=1e-5, atol=1e-6) if x.dtype == np.float32 else dict(rtol=1e-9)
        np.testing.assert_allclose(one, right, **exact)
        assert one.dtype == right.dtype


@pytest.mark.parametrize("y", [3, -4, np.abs(WHOLE) + 1], ids=["3", "-4", "array"])
def test_rests_of_integers(y):
    for x in (WHOLE, WHOLE.astype(np.int8)):
        made, wanted = bb.jit(lambda x, y: np.fmod(x, y))(x, y), np.fmod(x, y)
        np.testing.assert_array_equal(made, wanted)
        assert made.dtype == wanted.dtype
    quotient, rest = bb.jit(lambda x, y: np.divmod(x, y))(WHOLE, y)
    np.testing.assert_array_equal(quotient, WHOLE // y)
    np.testing.assert_array_equal(rest, WHOLE % y)
    for made, wanted in zip(bb.jit(lambda x: divmod(x, y))(WHOLE), divmod(WHOLE, y), strict=True):
        np.testing.assert_array_equal(made, wanted)


@pytest.mark.filterwarnings("ignore:Using torch.cross without")
def test_as_in_torch():
    torch = pytest.importorskip("torch")
    x, whole = torch.from_numpy(X).float(), torch.from_numpy(WHOLE).to(torch.int8)
    for function, given in (
        (lambda x: torch.gradient(x, spacing=[1.0, 2.0]), x),
        (lambda x: torch.trapezoid(x, dx=0.1), x),
        (lambda x: torch.trapz(x, torch.arange(5.0)), x),
        (lambda x: torch.cov(x, correction=0), x),
        (torch.corrcoef, x),
        (lambda x: x.quantile(0.25, dim=1, keepdim=True), x),
        (lambda x: torch.linalg.norm(x, ord=float("inf"), dim=(0, 1)), x),
        (lambda x: torch.cross(x[:3], x[1:]), x),
        (lambda x: torch.linalg.cross(x[:, :3], x[:1, 1:4]), x),
        (lambda x: torch.rot90(x, 1, [0, 1]), x),
        (lambda x: torch.fmod(x, 3), whole),
        (lambda x: torch.div(x, 3, rounding_mode="trunc"), whole),
        (lambda x: torch.div(x, -3, rounding_mode="floor"), whole),
        (lambda x: torch.div(x, torch.tensor(-3), rounding_mode="trunc"), whole),
        (lambda x: x.div(torch.tensor([3, -4, 5, 2, 1]), rounding_mode="trunc"), whole),
        (lambda x: torch.div(x, 2.5, rounding_mode="trunc"), whole),
        (lambda x: torch.gradient(x, dim=1, edge_order=1), x),
    ):
        made = bb.jit(lambda x, function=function: function(x))(given)
        torch.testing.assert_close(made, function(given))


@pytest.mark.parametrize(("function", "message"), [
    (lambda x: np.rot90(x, 1, (0, 1, 2)), "a plane of two axes, not of 3"),
    (lambda x: np.rot90(x, 1.5), "1.5 is no whole number of times"),
    (lambda x: np.linalg.matrix_power(x[:, :4], 2.0), "2.0 is no whole number of times"),
    (lambda x: np.gradient(x[:1], axis=0), "an axis of less than two elements"),
    (lambda x: np.gradient(x, edge_order=2), "gradient with edge_order=2"),
])  # fmt: skip
def test_refused_in_words(function, message):
    with pytest.raises(bb.TraceError, match=message):
        bb.jit(lambda x: function(x))(X)
