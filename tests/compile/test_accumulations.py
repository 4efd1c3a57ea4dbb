"""Cumulative sums and products accumulate as sums do: wide, and rounded once."""

import numpy as np
import pytest

import blockbuster as bb

torch = pytest.importorskip("torch")

UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
FUNCTIONS = {
    "cumsum": (lambda x: torch.cumsum(x, -1), lambda x: np.cumsum(x, -1)),
    "cumsum of columns": (lambda x: x.cumsum(0), lambda x: np.cumsum(x, 0)),
    "cumprod": (lambda x: torch.cumprod(x, -1), lambda x: np.cumprod(x, -1)),
    "prod": (lambda x: torch.prod(x), np.prod),
    "prod of rows": (lambda x: x.prod(-1), lambda x: np.prod(x, -1)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_rounded_once(name, dtype):
    """Of numbers around 1, so that products stay among what float16 holds."""
    function, exactly = FUNCTIONS[name]
    numbers = 1 + 0.02 * (np.random.default_rng(0).random((4, 512)) - 0.5)
    x = torch.tensor(numbers).to(getattr(torch, dtype))
    exact = exactly(x.double().numpy())

    found = bb.jit(function)(x)

    assert found.dtype == x.dtype
    errors = np.abs(found.double().numpy() - exact) / np.abs(exact)
    assert errors.max() <= 1.01 * max(UNITS[dtype], 2.0**-48)


@pytest.mark.parametrize("library", [np.asarray, torch.tensor], ids=["numpy", "torch"])
def test_long_sums_in_float32_keep_their_digits(library):
    x = np.random.default_rng(0).random(10**6).astype(np.float32)
    exact = np.cumsum(x, dtype=np.float64)

    found = np.asarray(bb.jit(lambda x: bb.cumsum(x, 0))(library(x)))

    assert found.dtype == np.float32
    assert (np.abs(found - exact) / exact).max() < 2.0**-23


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cumsum(x.float() * 1.0, 0),
        lambda x: torch.cumsum(x.float(), 0) * 2,
        lambda x: (x.float() - x.float().mean()).cumsum(0),
        lambda x: torch.cumprod(x.float() + 1, 0),
        lambda x: torch.prod(x.float() * 0.5 + 1),
        lambda x: torch.flip(x.float() * 2, (0,)),
        lambda x: (x.float() * 2)[1:],
        lambda x: torch.cat([x.float() * 2, x]),
        lambda x: x.float().sum(),
        lambda x: x.double().mean() * 2,
        lambda x: x.bfloat16() * 2 + 1,
        lambda x: torch.softmax(x.float(), -1) * x,
        lambda x: torch.where(x.float() > 0, x, x * 2),
    ],
)
def test_what_was_cast_stays_in_its_dtype(function):
    """Not only the cast itself: all that is computed of it, as in eager code."""
    x = torch.rand(64).half()
    right = function(x)

    found = bb.jit(function)(x)

    assert found.dtype == right.dtype
    torch.testing.assert_close(found.double(), right.double(), rtol=1e-2, atol=1e-3)


def test_a_product_of_halves_over_two_axes_does_not_overflow_between_them():
    x = torch.tensor([[300.0, 300.0], [1e-3, 1e-3]]).half()

    assert bb.jit(lambda x: torch.prod(x))(x) == pytest.approx(0.09, rel=2e-3)
    assert bb.jit(lambda x: bb.prod(x))(x.numpy()) == pytest.approx(0.09, rel=2e-3)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_the_product_of_no_elements_is_1(axis, keepdims):
    x = np.ones((3, 0))

    found = bb.jit(lambda x: np.prod(x, axis, keepdims=keepdims))(x)

    np.testing.assert_array_equal(found, np.prod(x, axis, keepdims=keepdims), strict=True)
