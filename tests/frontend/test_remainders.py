"""Remainders of floats by powers of 2 are exact; by other numbers they are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import blockbuster as bb
from blockbuster.errors import TraceError

SPECIAL = np.array([0.0, -0.0, 0.5, -0.5, 1.0, -3.75, 1e-45, -1e-45, -1e-20, 1e30, -1e30, 3e38,
                    -3.3e38, 3e-5, np.inf, -np.inf, np.nan], np.float32)  # fmt: skip


def both(x, y):
    return x % y, np.fmod(x, y)


@pytest.mark.parametrize("y", [1, 1.0, 2, 8.0, 2**15, 0.5, 2**-15])
def test_special_values(y):
    with np.errstate(all="ignore"):
        wanted = both(SPECIAL, y)
    for one, other in zip(bb.jit(lambda x: both(x, y))(SPECIAL), wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@given(arrays(np.float64, 5, elements=st.floats(width=64, allow_infinity=False)),
       st.sampled_from([1, 4, 1024, 0.5, 2**-10]))  # fmt: skip
def test_any_floats(x, y):
    for one, other in zip(bb.jit(lambda x: both(x, y))(x), both(x, y), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("y", [3, 0.75, -1, 2**16, 2**-16, np.inf])
def test_other_numbers_are_refused(y):
    for remainder in (np.remainder, np.fmod):
        with pytest.raises(TraceError, match="powers of 2"):
            bb.trace(lambda x: remainder(x, y), x="M")  # noqa: B023


def test_arrays_of_divisors_are_refused():
    with pytest.raises(TraceError, match="powers of 2"):
        bb.trace(np.remainder, x1="M", x2="M")
    with pytest.raises(TraceError, match="powers of 2"):
        bb.trace(lambda x, y: np.fmod(x, y), x="M", y="M")
    for number in (5.0, np.array([1e18, 3.0, 5.0])):
        with pytest.raises(TraceError, match="powers of 2"):
            bb.trace(lambda y: np.fmod(number, y), y="M=3")  # noqa: B023


def test_tensors():
    torch = pytest.importorskip("torch")
    small = np.abs(SPECIAL) < 1e38  # torch's own remainder is NaN where a quotient is infinite
    x = torch.from_numpy(SPECIAL[small])
    for function in (torch.fmod, torch.remainder):
        for y in (2, 0.25):
            found = bb.jit(lambda x: function(x, y))(x)  # noqa: B023
            torch.testing.assert_close(found, function(x, y), rtol=0, atol=0, equal_nan=True)
