"""Scans from end to end: shapes, axes, dtypes and layouts, beside float64."""

from random import Random

import numpy as np
import pytest

import blockbuster as bb
from tests.emit.random_scans import FUSED, function, program

SCANS = {
    "cumsum": (bb.cumsum, np.add), "cumprod": (bb.cumprod, np.multiply),
    "cummax": (bb.cummax, np.maximum), "cummin": (bb.cummin, np.minimum),
}  # fmt: skip
SHAPES = [
    ((7,), 0), ((1,), 0), ((0,), 0), ((5, 0), 1), ((0, 5), 1), ((4, 1), 1), ((3, 300), 1),
    ((300, 3), 0), ((2, 3, 40), -1), ((2, 40, 3), 1), ((40, 2, 3), 0), ((2, 2, 3, 9), 2),
]  # fmt: skip
UNITS = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}


def drawn(shape, dtype="float32", seed=0):
    numbers = 1 + 0.1 * (np.random.default_rng(seed).random(shape) - 0.5)
    return numbers.astype(dtype)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("name", SCANS)
def test_shapes_and_axes(name, shape, axis):
    scan, ufunc = SCANS[name]
    x = drawn(shape)

    found = bb.jit(lambda x: scan(x * 1.5 - 0.5, axis) + 1)(x)

    assert found.dtype == np.float32
    wanted = ufunc.accumulate(1.5 * x.astype(float) - 0.5, axis) + 1
    np.testing.assert_allclose(found, wanted, rtol=2e-5)


@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.parametrize("name", SCANS)
def test_a_result_is_rounded_once(name, dtype):
    scan, ufunc = SCANS[name]
    x = drawn((4, 100), dtype)
    exact = ufunc.accumulate(x.astype(np.longdouble), 1)

    found = bb.jit(lambda x: scan(x, 1))(x)

    assert found.dtype == dtype
    assert (np.abs(found - exact) <= 1.01 * max(UNITS[dtype], 2.0**-48) * np.abs(exact)).all()


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "bool"])
@pytest.mark.parametrize("function", [np.cumsum, np.cumprod, np.maximum.accumulate])
def test_integers_and_masks(function, dtype):
    x = np.random.default_rng(0).integers(0, 3, (4, 6)).astype(dtype)

    found = bb.jit(lambda x: function(x, 1))(x)

    np.testing.assert_array_equal(found, function(x, 1), strict=True)


@pytest.mark.parametrize("view", [lambda x: x[:, ::2], lambda x: x.T, lambda x: x[::-1, 3:]])
def test_strided_arrays(view):
    x = view(drawn((12, 20)))

    found = bb.jit(lambda x: bb.cumsum(x, 1))(x)

    np.testing.assert_allclose(found, np.cumsum(x, 1, dtype=float), rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", SCANS)
def test_what_is_no_number_stays_in_its_line(name, bad):
    scan, ufunc = SCANS[name]
    x = drawn((3, 50))
    x[1, 20] = bad
    exact = ufunc.accumulate(x.astype(float), 1)

    found = bb.jit(lambda x: scan(x, 1))(x)

    np.testing.assert_allclose(found, exact, rtol=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    given = Random(seed)
    of = function(given)
    arrays = [drawn(shape, "float64", at) for at, shape in enumerate(((9, 11), (9, 11), (11,)))]

    found = bb.jit(of)(*arrays)

    np.testing.assert_allclose(found, of(*arrays), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(2))
def test_random_kernels_in_the_interpreter(seed):
    traced = program(Random(100 + seed), FUSED)
    shapes = {"x": (16, 70), "g": (16, 70), "w": (70,)}
    arrays = {name: drawn(shape, seed=at) for at, (name, shape) in enumerate(shapes.items())}
    arrays = {given.name: arrays[given.name] for given in traced.inputs}
    derivation = bb.fuse(bb.lower(traced))
    kernel = bb.emit(derivation, {"M": 16, "N": 70}, "float32")

    found = kernel(**{name: arrays[name] for name in kernel.inputs})

    (wanted,) = traced.numpy(arrays).values()
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * scale)


def test_what_stands_around_a_scan_is_in_its_kernel():
    def discounted(reward, gamma):
        powers = gamma ** bb.arange(reward.shape[1])
        return np.flip(bb.cumsum(np.flip(reward * powers, 1), 1), 1) / powers

    reward = drawn((4, 30), "float64")
    jitted = bb.jit(discounted)

    found = jitted(reward, 0.9)

    wanted = np.zeros((4, 30))
    left = np.zeros(4)
    for at in reversed(range(30)):
        left = wanted[:, at] = reward[:, at] + 0.9 * left
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: bb.cumsum(x * 2, 1) * x,
        lambda x: 1 - bb.cumprod(1 - x, 1),
        lambda x: bb.cumsum(x, 1) - x,
        lambda x: np.flip(bb.cumsum(np.flip(x, 1), 1), 1),
        lambda x: (bb.cumsum(x, 1) * x).sum(1),
        lambda x: bb.cumsum(bb.cumsum(x, 1), 1)[:, :-1],
        lambda x: bb.softmax(bb.cumsum(x, 1), axis=-1),
    ],
)
def test_one_kernel(function):
    traced = bb.trace(function, x="M N")
    plan = bb.select(traced, {"M": 512, "N": 1000}, machine="h100")

    (step,) = plan.steps
    assert step.kernels == 1


def test_flips_around_a_scan_are_no_calls():
    turned = bb.trace(lambda x: np.flip(bb.cumsum(np.flip(x, 1), 1), 1), x="M N")
    apart = bb.trace(lambda x: bb.cumsum(np.flip(x, 1), 1), x="M N")
    across = bb.trace(lambda x: np.flip(bb.cumsum(x, 1), 0), x="M N")

    for program_ in (turned, apart, across):
        assert program_.notes == ()


@pytest.mark.parametrize(("columns", "kernels"), [(slice(0, -2), 1), (slice(3, None), 2)])
def test_a_scan_of_the_first_elements_needs_no_others(columns, kernels):
    """A slice from the first element on is the scan of that slice; another one is cut out of it."""
    traced = bb.trace(lambda x: bb.cumsum(x, 1)[:, columns] * 2, x="M N")
    x = drawn((3, 9), "float64")

    (found,) = traced.numpy({"x": x}).values()

    np.testing.assert_allclose(found, np.cumsum(x, 1)[:, columns] * 2)
    assert len(traced.notes) == kernels - 1
    np.testing.assert_allclose(
        bb.jit(lambda x: bb.cumsum(x, 1)[:, columns] * 2)(x), np.cumsum(x, 1)[:, columns] * 2
    )
