"""Scalar functions at their edges, and rounding."""

import math

import numpy as np
import pytest

from blockbuster.interp.exact import Exact
from blockbuster.interp.semantics import FLOAT_SCALARS, Float16, Float32, Float64, rounded_to
from blockbuster.ir.expr import FUNCTIONS


@pytest.mark.parametrize("semantics", [Float64, Float32, Float16, Exact()])
def test_every_scalar_function_has_a_meaning(semantics):
    assert set(semantics.scalars) == set(FUNCTIONS)


def test_functions_at_infinity():
    low = np.array(-np.inf)
    with np.errstate(all="ignore"):
        assert FLOAT_SCALARS["sub0"](low, low) == -np.inf
        assert FLOAT_SCALARS["sub0"](-low, -low) == np.inf
        assert FLOAT_SCALARS["recip0"](np.array([0.0, 2.0])).tolist() == [0.0, 0.5]
        assert FLOAT_SCALARS["sigmoid"](np.array([-1000.0, 0, 1000])).tolist() == [0, 0.5, 1]


def test_erf_is_accurate():
    x = np.linspace(-6, 6, 1001)

    expected = [math.erf(v) for v in x]

    np.testing.assert_allclose(FLOAT_SCALARS["erf"](x), expected, rtol=1e-15)


def test_half_precision_accumulates_in_single():
    ones = np.ones((1, 4096), np.float16)

    assert Float16.dot(ones, ones)[0, 0] == 4096
    assert Float16.fold_last("+", ones)[0] == 4096
    assert Float16.accumulator is not Float16
    assert Float16.scalars["add"](np.float16(2048), np.float16(1)) == 2048


def test_bfloat16_rounds_to_nearest_even():
    given = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-7, np.inf, np.nan])

    expected = [1, 1 + 2**-6, 1 + 2**-7, np.inf, np.nan]

    np.testing.assert_array_equal(rounded_to("bfloat16", given), expected)
