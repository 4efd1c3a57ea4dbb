"""Integers are exact on the CPU: large constants, sizes beside integers, bytes that wrap."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.errors import LaunchError
from blockbuster.runtime.launch import run_batch

torch = pytest.importorskip("torch")

LARGE = st.integers(2**24 - 1, 2**31 - 8) | st.sampled_from((2**24, 2**24 + 1, 16777219, 2**30 + 1))
DTYPES = ("int32", "int64")
FUNCTIONS = {
    "rest": lambda x, c: x % c,
    "quotient": lambda x, c: x // c,
    "sum": lambda x, c: x // 2 + c // 2,
    "difference": lambda x, c: c - bb.abs(x),
    "chosen": lambda x, c: bb.where(x > c, c, x),
    "constants": lambda x, c: bb.where(x > c, c, 1 - c) + x * 0,
    "larger": lambda x, c: bb.maximum(x, c),
    "mask": lambda x, c: (x > 0) * c,
    "mask or number": lambda x, c: bb.where(x > 0, c, x),
    "equal": lambda x, c: x == c,
    "order": lambda x, c: x < c,
    "padded": lambda x, c: bb.pad(x, ((1, 0),), constant_values=c),
}


def near(c, dtype):
    """Numbers at and around ``c`` and its multiples, below 2**31."""
    found = [0, 1, -5, c - 1, c, c + 1, 20_000_001, -c, min(2 * c + 1, 2**31 - 1)]
    return np.array(found, dtype)


@pytest.mark.parametrize("library", [np.asarray, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=12)
@given(c=LARGE, dtype=st.sampled_from(DTYPES), floats=st.booleans())
def test_large_constants_are_exact(library, name, c, dtype, floats):
    """``floats``: beside an array of float32, in which kernels would compute."""
    function, numbers = FUNCTIONS[name], near(c, dtype)
    exact = np.asarray(function(numbers, c))

    if floats:
        both = bb.jit(lambda x, y: (function(x, c), y * 2))
        found = both(library(numbers), library(np.ones(3, np.float32)))[0]
    else:
        found = bb.jit(lambda x: function(x, c))(library(numbers))

    assert str(found.dtype).removeprefix("torch.") == exact.dtype.name
    np.testing.assert_array_equal(np.asarray(found), exact)


SIGNED = {
    "negated": lambda x, y: -x,
    "negated, then wider": lambda x, y: (-x).astype("int32"),
    "difference": lambda x, y: (x - y).astype("int32"),
    "difference to a row": lambda x, y: (x - y[0]).astype("int64") * 2,
    "difference to a column": lambda x, y: (x - y[:, :1]).astype("int32"),
    "distance": lambda x, y: bb.abs(x - y[0]),
    "sum of differences": lambda x, y: bb.sum((x - y[0]).astype("int32"), axis=-1),
    "product of a negated one": lambda x, y: (-x) * y,
    "as floats": lambda x, y: (-x) * 0.5,
}


@pytest.mark.parametrize("library", [np.asarray, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", SIGNED)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_narrow_integers_wrap_as_numpys_do(library, name, dtype):
    ends = np.iinfo(dtype)
    x = np.array([[0, 1, 2], [ends.max, ends.min, 7]], dtype)
    y = np.array([[3, ends.max, 0], [1, ends.min, 9]], dtype)
    exact = SIGNED[name](x, y)

    found = bb.jit(SIGNED[name])(library(x), library(y))

    np.testing.assert_array_equal(np.asarray(found), exact)


@pytest.mark.interpreter
def test_kernels_are_as_exact():
    """All of the functions above, in Triton's interpreter and one process."""
    jobs, right = [], []
    for dtype, (name, function) in product(DTYPES, FUNCTIONS.items()):
        x = near(16777219, dtype)
        graph = bb.lower(bb.trace(lambda x, f=function: f(x, 16777219), x=f"{dtype}: M"))
        jobs.append((bb.emit(bb.fuse(graph), {"M": len(x)}, "float32"), {"x": x}))
        right.append((name, function(x, 16777219)))
    for dtype, (name, function) in product(["uint8", "int8", "int16"], SIGNED.items()):
        ends = np.iinfo(dtype)
        x = np.array([[0, 1, 2], [ends.max, ends.min, 7]], dtype)
        arrays = {"x": x, "y": x[::-1].copy()}
        graph = bb.lower(bb.trace(function, x=f"{dtype}: M N", y=f"{dtype}: M N"))
        kernel = bb.emit(bb.fuse(graph), {"M": 2, "N": 3}, "float32")
        jobs.append((kernel, {name: arrays[name] for name in kernel.inputs}))
        right.append((name, function(**arrays)))

    for (name, exact), found in zip(right, run_batch(jobs), strict=True):
        assert not isinstance(found, LaunchError), f"{name}: {found}"
        np.testing.assert_array_equal(found["out"], exact, err_msg=name)


def test_sizes_beside_integers_are_exact():
    """A size that float32 does not hold, of an array without memory of its own."""
    x = np.broadcast_to(np.int8(1), (2**24 + 1,))
    y = np.array([1, 2**24 + 1, 2**24], np.int32)

    found = bb.jit(lambda x, y: (y % x.shape[0], y + x.shape[0] - 1, y.astype("float32") * 2))(x, y)

    np.testing.assert_array_equal(found[0], [1, 0, 2**24])
    np.testing.assert_array_equal(found[1], y + 2**24)
