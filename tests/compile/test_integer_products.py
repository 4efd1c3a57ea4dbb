"""Products of matrices of integers: exact, in the dtype that NumPy gives them."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.ir.dtypes import INTEGERS
from blockbuster.runtime.run_plan import run_in_interpreter

SHAPES = (
    ((5, 7), (7, 6)), ((7,), (7,)), ((5, 7), (7,)), ((7,), (7, 5)), ((3, 5, 7), (7, 6)),
    ((5, 7), (3, 7, 6)), ((3, 5, 7), (7,)), ((7,), (3, 7, 5)), ((1, 7), (7, 1)), ((5, 1), (1, 6)),
)  # fmt: skip


def matmul(x, y):
    return x @ y


def integers(shape, dtype="int64", below=100):
    """Numbers of which products stay within the dtypes, but for those of one byte: they wrap."""
    rng = np.random.default_rng(len(shape))
    return rng.integers(0 if dtype[0] == "u" else -below, below, shape).astype(dtype)


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_shapes(left, right):
    x, y = integers(left), integers(right)

    np.testing.assert_array_equal(bb.jit(matmul)(x, y), x @ y)


@pytest.mark.parametrize("other", INTEGERS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_dtypes(dtype, other):
    x, y = integers((5, 7), dtype), integers((7, 6), other)
    program = bb.trace(matmul, x=x, y=y)
    found = bb.jit(matmul)(x, y)

    np.testing.assert_array_equal(found, x @ y, strict=True)
    np.testing.assert_array_equal(program.numpy({"x": x, "y": y})["out"], x @ y, strict=True)


def test_numbers_that_float64_does_not_hold():
    x, y = integers((5, 7), below=2**30) * 2 + 1, integers((7, 6), below=2**29) * 2 + 1

    assert np.abs(x @ y).max() > 2**56
    np.testing.assert_array_equal(bb.jit(matmul)(x, y), x @ y)


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (matmul, (integers((5, 7)) > 0, integers((7, 6)) > 80)),
        (matmul, (integers((5, 7)) > 0, integers((7, 6), "int8"))),
        (lambda x, y: (x[:, None] == np.arange(100)).astype(np.int64).T @ y, (
            integers((50,)), integers((50, 3)))),
        (lambda x, y: (x @ y - 1) // 2, (integers((5, 7)), integers((7, 6)))),
        (lambda x, y: np.einsum("mk,nk->nm", x, y), (integers((5, 7)), integers((6, 7)))),
        (lambda x, y: (x @ y) / 2 + 1, (integers((5, 7)), integers((7, 6)))),
    ],
)  # fmt: skip
def test_masks_counts_and_what_is_computed_with_them(fn, args):
    np.testing.assert_array_equal(bb.jit(fn)(*args), fn(*args), strict=True)


@pytest.mark.interpreter
def test_kernels_are_exact():
    program = bb.trace(matmul, x="int32: M K", y="int64: K N")
    x, y = integers((40, 33), "int32"), integers((33, 20)) * 2**40
    compiled = bb.compile(program, {"M": 40, "K": 33, "N": 20}, "float32", "h200")
    (found,) = run_in_interpreter(compiled.plan, {"x": x, "y": y})

    np.testing.assert_array_equal(found, x @ y, strict=True)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", INTEGERS)
def test_on_a_gpu(torch, cuda, dtype):
    rng = np.random.default_rng(0)  # sums that each dtype holds
    x, y = (rng.integers(0, 2, shape).astype(dtype) for shape in ((65, 120), (120, 70)))
    found = bb.jit(matmul)(*(torch.from_numpy(a).to(cuda) for a in (x, y)))

    np.testing.assert_array_equal(found.cpu().numpy(), x @ y, strict=True)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64"])
@pytest.mark.parametrize("fn", [np.cumsum, np.cumprod, np.prod, np.sort])
def test_functions_along_an_axis(fn, dtype):
    x = integers((5, 7), below=4).astype(dtype)

    np.testing.assert_array_equal(bb.jit(lambda x: fn(x, axis=1))(x), fn(x, axis=1), strict=True)
