"""Blocks of NumPy text: tiles that fit a cache, and rows that stay whole where they can."""

import math

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.print.numpy.own_functions import HELPERS
from blockbuster.runtime.given import asked_for, family_of
from blockbuster.selection.priors import PRIORS

ROWS = {"x": "M N", "w": "N"}


def blocks(function, inputs, **sizes):
    """What is cut, by size class, where the program runs in blocks."""
    program = bb.trace(function, **inputs)
    device, known = asked_for(program, sizes, "float32", "cpu")
    plan = family_of(program, "float32", device).at(known, one_kernel=True)
    (file,) = plan.files
    return file.blocks


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (lambda x, w: bb.layer_norm(x, w, w), ROWS),
        (lambda x: bb.softmax(x), {"x": "M N"}),
        (lambda x: bb.logsumexp(x), {"x": "M N"}),
        (lambda x: bb.sqrt(bb.abs(x)) + x, {"x": "M N"}),
    ],
)
def test_rows_stay_whole(function, inputs):
    found = blocks(function, inputs, M=4096, N=1024)

    assert [*found] == ["M"]
    assert found["M"] * 1024 <= PRIORS.numpy_tile_elements


def test_rows_that_alone_outgrow_the_cache_are_cut():
    found = blocks(lambda x: bb.softmax(x), {"x": "M N"}, M=2, N=1 << 20)

    assert "N" in found
    assert found["N"] * found.get("M", 2) <= PRIORS.numpy_tile_elements


def test_columns_of_a_sum_over_rows_stay_whole():
    """Rows are cut although each block is another turn of the loop that adds up."""
    found = blocks(lambda x: bb.sum(x * x, axis=0), {"x": "M N"}, M=4096, N=1024)

    assert [*found] == ["M"]


def helpers(*names):
    """Functions that NumPy texts define for themselves."""
    space = {"np": np}
    exec("import math\n" + "\n".join(HELPERS[name] for name in names), space)
    return [space[name] for name in names]


@pytest.mark.parametrize("terms", [1, 255, 256, 257, 700])
def test_products_of_parts_are_the_product(terms):
    product, dot = helpers("product", "dot")
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, (40, terms)).astype(np.float32) for _ in range(2))
    out = np.empty((40, 50), np.float32)[:, :40]

    np.testing.assert_array_equal(product(a, b), a @ b.T)
    assert dot(a, b, np.float32, out) is out
    np.testing.assert_array_equal(out, a @ b.T)


def test_a_large_product_in_float32_errs_no_more_than_numpys():
    _, dot = helpers("product", "dot")
    random = np.random.default_rng(0)
    a, b = (random.normal(size=(128, 2048)).astype(np.float32) for _ in range(2))
    exact = a.astype(np.float64) @ b.T.astype(np.float64)

    # on average: the largest of 16384 errors is chance, and another one with other BLAS kernels
    assert np.square(dot(a, b, np.float32) - exact).mean() <= np.square(a @ b.T - exact).mean()


def test_a_small_product_is_rounded_once():
    _, dot = helpers("product", "dot")
    random = np.random.default_rng(0)
    a, b = (random.normal(size=(8, 160)).astype(np.float32) for _ in range(2))
    exact = a.astype(np.float64) @ b.T.astype(np.float64)

    np.testing.assert_array_equal(dot(a, b, np.float32), exact.astype(np.float32))


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("z", [1.0, np.inf, -np.inf, np.nan, 1e30])
@np.errstate(invalid="ignore")
def test_minus_keeps_infinities(z, in_place):
    (minus,) = helpers("minus")
    x = np.array([[1.0, np.inf, -np.inf], [0.5, np.nan, 2.0]], np.float32)
    zs = np.array([[0.5], [z]], np.float32)
    wanted = np.where(np.isinf(x), x, x - zs)
    given = x.copy()
    found = minus(given, zs, given) if in_place else minus(given, zs)

    np.testing.assert_array_equal(found, wanted)
    assert (found is given) == in_place


def test_replaced_leaves_its_operand_alone():
    (replaced,) = helpers("replaced")
    x = np.array([0.0, 2.0, np.nan, -0.0], np.float32)

    np.testing.assert_array_equal(
        replaced(x, 0, np.inf), np.array([np.inf, 2, np.nan, np.inf], np.float32)
    )
    assert x[0] == 0
    assert replaced(np.float32(0), 0, 3) == 3


@pytest.mark.parametrize("in_place", [False, True])
@np.errstate(over="ignore", invalid="ignore")
def test_sigmoid_and_silu_at_the_ends(in_place):
    near_sigmoid, near_silu = helpers("near_sigmoid", "near_silu")
    x = np.array([-np.inf, -200, -90, -0.0, 90, np.inf, np.nan], np.float32)
    small = np.exp(np.float64(-90))
    memory = (x.copy(),) if in_place else ()
    found = [near(x, np.float32, *memory) * 1 for near in (near_sigmoid, near_silu)]
    ends = [0, 0, small, 0.5, 1, 1, np.nan], [np.nan, 0, -90 * small, 0, 90, np.inf, np.nan]

    for one, right in zip(found, ends, strict=True):
        np.testing.assert_array_equal(one, np.array(right, np.float32))


def test_erf_is_as_near_as_float64_allows():
    (erf,) = helpers("erf")
    random = np.random.default_rng(0)
    near = [np.linspace(-7, 7, 100_001), random.normal(size=20_000) * 1e-3]
    x = np.concatenate([*near, [0.0, -0.0, 1e-300, np.inf, -np.inf, 40.0]])
    right = np.array([math.erf(one) for one in x])

    assert (np.abs(erf(x, float) - right) <= 2 * np.spacing(np.abs(right))).all()
    np.testing.assert_array_equal(np.signbit(erf(x, float)), np.signbit(right))
    single = x.astype(np.float32)
    rounded = np.array([math.erf(one) for one in single.astype(np.float64)], np.float32)
    np.testing.assert_array_equal(erf(single, np.float32), rounded)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (3, 50), (2, 3, 40)])
def test_erf_keeps_shapes_and_what_is_no_number(shape):
    (erf,) = helpers("erf")
    x = np.full(shape, np.nan, np.float32)

    assert erf(x, np.float32).dtype == np.float32
    np.testing.assert_array_equal(erf(x, np.float32), x)
    found = erf(np.full(shape[::-1], 1.5).T, float)
    np.testing.assert_array_equal(found, np.full(shape, math.erf(1.5)))


@pytest.mark.parametrize("array", [[1.0, 0.0, -2.0, np.nan], [1.0, np.inf], [0.0], 0.0, 3.0, []])
def test_numbers_are_replaced_in_a_copy(array):
    replaced, divisor, recip0 = helpers("replaced", "divisor", "recip0")
    x = np.array(array)
    with np.errstate(all="ignore"):
        found = replaced(x, 0, np.inf), replaced(x, 1, 7.0), recip0(x), divisor(x)

    np.testing.assert_array_equal(found[0], np.where(x == 0, np.inf, x))
    np.testing.assert_array_equal(found[1], np.where(x == 1, 7.0, x))
    with np.errstate(all="ignore"):
        right = np.where(x == 0, 0, np.where(np.isinf(x), np.nan, 1 / x))
        np.testing.assert_array_equal(found[2], right)
        np.testing.assert_array_equal(1 / found[3], right)
    assert not any(np.may_share_memory(made, x) for made in found)
