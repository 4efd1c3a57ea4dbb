"""Numbers as elements of 16-bit arrays, and NumPy's narrow floats: dtypes and bits of eager."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import blockbuster as bb


def filled(x):
    y = x.clone()
    y[x > 0] = 0.1
    return y.float()


AS_ELEMENTS = {
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.1).float() * 3,
    "where": lambda x: torch.where(x > 0, x, 0.1).float() * 3,
    "clamp": lambda x: x.clamp(-0.1, 0.1).float(),
    "full_like": lambda x: torch.full_like(x, 0.1).float() + x.float(),
    "new_full": lambda x: x.new_full((3,), 0.1).float(),
    "pad": lambda x: F.pad(x, (1, 1), value=0.1).float(),
    "nan_to_num": lambda x: torch.nan_to_num(x * float("nan"), 0.1).float(),
    "largest": lambda x: x.masked_fill(x > 0, 0.1).amax(1).float(),
    "assigned": filled,
    "equal": lambda x: x == 0.1,
    "less": lambda x: x < 0.1,
    "clamped and equal": lambda x: x.clamp(-0.1, 0.1) == 0.1,
}
IN_FLOAT32 = {
    "threshold": lambda x: F.threshold(x, 0.1, 20.1).float(),
    "softshrink": lambda x: F.softshrink(x, 0.1),
    "softplus": lambda x: F.softplus(x, threshold=0.1),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", [*AS_ELEMENTS, *IN_FLOAT32])
def test_numbers_are_rounded_where_eager_rounds_them(name, dtype):
    function = (AS_ELEMENTS | IN_FLOAT32)[name]
    x = torch.tensor([[0.1, -0.1, 0.3, 0.0], [1.5, -2.0, 0.25, 0.1]]).to(dtype)

    found, right = bb.jit(function)(x), function(x)

    assert found.dtype == right.dtype
    assert torch.equal(found, right)


def test_a_number_that_a_dtype_does_not_hold_stays():
    x = torch.tensor([[1.0, -1.0]], dtype=torch.float16)

    found = bb.jit(lambda x: torch.where(x > 0, x, -1e9).float())(x)

    assert found.tolist() == [[1.0, -1e9]]


OF_ONE = ("exp", "exp2", "sqrt", "tanh", "sinh", "arcsinh", "rint", "degrees", "fabs", "log1p")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32"])
@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_narrow_integers_are_narrow_in_numpy(name, dtype):
    function = getattr(np, name)
    x = np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype)

    found, right = bb.jit(lambda x: function(x))(x), function(x)

    assert found.dtype == right.dtype
    np.testing.assert_allclose(found, right, rtol=2e-3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_counts_have_the_dtype_of_the_array(dtype):
    x = np.array([[0.0, 1.5, np.nan], [0.0, -0.0, 2.0]], dtype)

    def counts(x):
        return np.linalg.norm(x, 0, axis=-1), np.nanmean(x, axis=-1)

    for found, right in zip(bb.jit(counts)(x), counts(x), strict=True):
        assert found.dtype == right.dtype
        np.testing.assert_allclose(found, right, rtol=2e-3)


@pytest.mark.parametrize(
    ("number", "dtype"), [(1, "int8"), (1, "int64"), (1.5, "int8"), (1.5, "float32")]
)
def test_a_number_that_is_clipped_has_the_dtype_of_its_array(number, dtype):
    low, high = np.array([0, 2, -3]).astype(dtype), np.array([1, 3, -2]).astype(dtype)

    def clipped(low, high):
        return np.clip(number, low, high)

    found, right = bb.jit(clipped)(low, high), clipped(low, high)

    assert found.dtype == right.dtype
    np.testing.assert_array_equal(found, right)
