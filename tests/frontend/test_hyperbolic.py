"""Functions of other functions, against wider floats at their special values."""

import numpy as np
import pytest

import blockbuster as bb

SPECIAL = [0.0, 1e-30, 1e-8, 1e-3, 0.5, 0.999, 1.0, 1.0000002, 1.5, 2.0, 2.5, 10.0, 88.5, 89.0, 1e9,
           1e30, np.inf]  # fmt: skip
DRAWN = np.random.default_rng(0).standard_normal(200) * np.exp(np.linspace(-20, 20, 200))
POINTS = np.array([*SPECIAL, *(-x for x in SPECIAL), np.nan, *DRAWN, *(1 + DRAWN**2)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [
    "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "degrees", "radians", "deg2rad", "rad2deg",
    "arctan", "arcsin", "arccos",
])  # fmt: skip
def test_as_exact_as_the_dtype_allows(name, dtype):
    """Within two units in the last place, and infinite or NaN where the function is."""
    function, x = getattr(np, name), POINTS.astype(dtype)
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.longdouble))
        wanted = exact.astype(dtype)
    found = bb.jit(lambda x: function(x))(x)

    assert found.dtype == dtype
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    np.testing.assert_allclose(found[finite], wanted[finite], rtol=2 * np.finfo(dtype).eps)


PAIRS = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("function", [np.fmax, np.fmin, np.heaviside, np.logaddexp2])
def test_pairs_of_special_values(function):
    x, y = (one.ravel() for one in np.meshgrid(PAIRS, PAIRS))
    with np.errstate(all="ignore"):
        wanted = function(x, y)
    np.testing.assert_allclose(bb.jit(lambda x, y: function(x, y))(x, y), wanted, rtol=1e-14)


def test_angles_of_points():
    """In every direction; NumPy's angle of (-0, -1) is -pi, and ours pi."""
    x, y = (one.ravel() for one in np.meshgrid(PAIRS[PAIRS.astype(str) != "-0.0"], POINTS))
    found = bb.jit(lambda y, x: np.arctan2(y, x))(y, x)
    np.testing.assert_allclose(found, np.arctan2(y + 0.0, x), rtol=4e-16)


@pytest.mark.parametrize("dtype", ["int8", "int32", "bool", "float16"])
def test_angles_have_the_dtypes_of_numpy(dtype):
    x = np.array([0, 1, 3], dtype)
    for function in (np.arctan, lambda x: np.arctan2(x, x), lambda x: np.arctan2(2.0, x)):
        assert bb.jit(lambda x, function=function: function(x))(x).dtype == function(x).dtype


def test_sinc():
    x = np.array([0.0, -0.0, 1e-30, 0.25, -0.5, 1.0, 3.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        wanted = np.sinc(x)
    np.testing.assert_allclose(bb.jit(lambda x: np.sinc(x))(x), wanted, rtol=1e-15, atol=1e-30)


def test_torchs_heaviside_of_nan_is_zero():
    torch = pytest.importorskip("torch")
    x = torch.tensor([float("nan"), -1.0, 0.0, -0.0, 2.0, float("inf")])
    half = torch.full_like(x, 0.5)
    found = bb.jit(lambda x, y: torch.heaviside(x, y))(x, half)
    assert torch.equal(found, torch.heaviside(x, half))


SOME = np.array([[np.nan, np.nan, np.nan], [1.0, np.nan, -4.0], [np.inf, 2.0, np.nan],
                 [-np.inf, np.inf, 0.0]])  # fmt: skip


@pytest.mark.parametrize("given", [{}, {"axis": 0}, {"axis": 1}, {"axis": -1, "keepdims": True}])
@pytest.mark.parametrize("name", [
    "nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd",
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_without_nan(name, given):
    """Rows of NaN alone, with infinities and with numbers; NumPy warns of the first."""
    function = getattr(np, name)
    found = bb.jit(lambda x: function(x, **given))(SOME)
    np.testing.assert_allclose(found, function(SOME, **given), rtol=1e-15)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_variances_of_too_few_numbers_are_nan():
    x = np.array([[1.0, np.nan], [1.0, 3.0]])
    found = bb.jit(lambda x: np.nanvar(x, axis=1, ddof=1))(x)
    np.testing.assert_array_equal(found, np.nanvar(x, axis=1, ddof=1))


def test_integers_have_no_nan():
    x = np.arange(6).reshape(2, 3)
    assert bb.jit(lambda x: np.nansum(x, 1))(x).dtype == np.int64
    np.testing.assert_array_equal(bb.jit(lambda x: np.nanmax(x, 1))(x), [2, 5])


def test_steps_have_the_dtypes_of_their_libraries():
    torch = pytest.importorskip("torch")
    for dtype in (torch.int32, torch.uint8, torch.float32):
        x, y = torch.tensor([0, 1, 2], dtype=dtype), torch.tensor([5, 6, 7], dtype=dtype)
        made = bb.jit(lambda x, y: torch.heaviside(x, y))(x, y)
        assert made.dtype == dtype
        assert made.tolist() == [5, 1, 1]
    numbers = np.array([-1, 0, 3], np.int32)
    made = bb.jit(lambda x, y: np.heaviside(x, y))(numbers, numbers)
    assert made.dtype == np.float64
    assert made.tolist() == [0.0, 0.0, 1.0]
