"""Products of shifted operands: every way they run keeps the digits that eager NumPy keeps.

(x - c) @ w as x @ w - c (1' w) would lose digits with |c| / |x - c|. Inputs have an offset of up to
1e4, from which c takes them back.
"""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.interp.semantics import Float32

ROWS, COLUMNS, OFFSETS = 64, 48, (1.0, 100.0, 1e4)
TIMES, DIGITS = 4, 1e-6


def covariance(x, y):
    return (x - np.mean(x, 0)).T @ (y - np.mean(y, 0)) / (x.shape[0] - 1)


def less_a_column(x, c, w):
    return (x - c[:, None]) @ w


def plus_a_column(x, e, w):
    return (x + e[:, None]) @ w


def less_a_row(x, d, w):
    return (x - d[None, :]) @ w


def less_a_column_and_scaled(x, c, w, r):
    return ((x - c[:, None]) * r[:, None]) @ w


def scaled_and_less_a_row(x, d, w, r):
    return (x * r[:, None] - d[None, :]) @ w


def less_its_mean(x, w):
    return (x - np.mean(x, -1, keepdims=True)) @ w


def less_the_mean_of_columns(x, w):
    return (x - np.mean(x, 0)) @ w


def both_sides(x, c, z):
    return (x - c[:, None]) @ (z - 1.0).T


def norm_by_hand(x, w):
    d = x - np.mean(x, -1, keepdims=True)
    return (d / np.sqrt(np.mean(d * d, -1, keepdims=True) + 1e-5)) @ w


def norm(x, w):
    return bb.layer_norm(x) @ w


def norm_with_weights(x, w, g, b):
    return bb.layer_norm(x, g, b) @ w


def norm_behind(u, w):
    return bb.layer_norm(u @ w + 3000.0)


def norm_behind_an_offset(x, w):
    return bb.layer_norm(x @ w)


def variance(x):
    return np.var(x, -1)


def variance_of_columns(x):
    return np.var(x, 0)


def sum_less_a_column(x, c):
    return (x - c[:, None]).sum(-1)


FUNCTIONS = (
    covariance, less_a_column, plus_a_column, less_a_row, less_a_column_and_scaled,
    scaled_and_less_a_row, less_its_mean, less_the_mean_of_columns, both_sides, norm_by_hand,
    norm, norm_with_weights, norm_behind, norm_behind_an_offset, variance, variance_of_columns,
    sum_less_a_column,
)  # fmt: skip

ONLY_FUSED = (norm, norm_with_weights)
"""The library's norm is written with E[x^2] - E[x]^2, in loops of their own.

``safe`` takes the variance around the mean where both sums are in one loop: as soon as those loops
are fused. So the unfused program may lose digits, and no path compiles that one.
"""


def inputs(function, offset):
    """The inputs that the function names, in float32; c, d and e take the offset of x back."""
    random = np.random.default_rng(0)
    rows, columns = random.standard_normal((2, ROWS, COLUMNS))
    arrays = {
        "x": rows + offset,
        "y": columns[:, :7] + offset,
        "z": columns[:9] + 1.0,
        "u": columns,
        "w": random.standard_normal((COLUMNS, 33)),
        "c": np.full(ROWS, offset) + random.standard_normal(ROWS) / 8,
        "e": np.full(ROWS, -offset),
        "d": np.full(COLUMNS, offset),
        "r": np.ones(ROWS),
        "g": random.standard_normal(COLUMNS),
        "b": random.standard_normal(COLUMNS),
    }
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    return {name: arrays[name].astype(np.float32) for name in names}


def eager(function, arrays):
    """The exact result, and the error of eager NumPy that a form may have."""
    exact = function(**{name: array.astype(np.float64) for name, array in arrays.items()})
    error = np.abs(function(**arrays) - exact).max()
    return exact, TIMES * error + DIGITS * np.abs(exact).max()


def forms(function, arrays):
    derivation = bb.fuse(bb.lower(bb.trace(function, **arrays)))
    return [derivation.start, *derivation.snapshots]


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_each_form_made_safe_is_as_right_as_eager(function, offset):
    arrays = inputs(function, offset)
    exact, allowed = eager(function, arrays)

    for form in forms(function, arrays)[function in ONLY_FUSED :]:
        found = bb.evaluate(bb.safe(form), arrays, semantics=Float32)["out"]
        assert np.abs(found - exact).max() <= allowed


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_jit_on_the_cpu_is_as_right_as_eager(function, offset):
    arrays = inputs(function, offset)
    exact, allowed = eager(function, arrays)

    found = bb.jit(function)(**arrays)

    assert np.asarray(found).dtype == np.float32
    assert np.abs(found - exact).max() <= allowed


@pytest.mark.parametrize("function", ONLY_FUSED, ids=lambda f: f.__name__)
def test_a_norm_that_is_not_fused_loses_digits(function):
    """What ``ONLY_FUSED`` says: if this fails, the names in it can go."""
    arrays = inputs(function, 1e4)
    exact, allowed = eager(function, arrays)
    found = bb.evaluate(bb.safe(forms(function, arrays)[0]), arrays, semantics=Float32)["out"]

    assert np.abs(found - exact).max() > allowed


@pytest.mark.parametrize("function", ONLY_FUSED, ids=lambda f: f.__name__)
def test_without_safe_a_fused_norm_loses_digits(function):
    arrays = inputs(function, 1e4)
    exact, allowed = eager(function, arrays)
    found = bb.evaluate(forms(function, arrays)[-1], arrays, semantics=Float32)["out"]

    assert np.abs(found - exact).max() > allowed
