"""Integers that float64 does not hold, beside numbers: what NumPy and torch give, on every path."""

import numpy as np
import pytest
import torch

import blockbuster as bb
from blockbuster.errors import TraceError
from blockbuster.runtime.run_plan import run_in_interpreter

LARGE = 2**53


def compared(x):
    return (
        x == LARGE, x > LARGE, x + 0 != LARGE, x <= LARGE, x < 2**60 + 2**20, x <= -LARGE, x > 1e30,
        x < np.inf, x > 2.5,
    )  # fmt: skip


def wrapped(x):
    return ((x + 2**30) // 3, x + 2**30 > 2**29, np.maximum(x, 2**30) + x > 0, x * 2**28 % 7)


@pytest.mark.interpreter
@pytest.mark.parametrize(
    ("function", "dtype", "numbers"),
    [
        (compared, "int64", (LARGE + 1, LARGE, -LARGE - 1, 2**62, 5)),
        (wrapped, "int32", (2**30 + 1, 2**30, -(2**30) - 1, 9, -5)),
    ],
)
def test_numbers_beside_large_integers_are_integers_on_all_paths(function, dtype, numbers):
    x = np.array(numbers * 4, dtype)
    right = function(x)
    program = bb.trace(function, x=x)
    plan = bb.compile(program, dict.fromkeys(program.dims, x.size), "float32", "h200").plan

    for made in (
        bb.jit(function)(x),
        program.numpy({"x": x}).values(),
        bb.jit(function)(torch.tensor(x)),
        run_in_interpreter(plan, {"x": x}),
    ):
        for found, wanted in zip(made, right, strict=True):
            np.testing.assert_array_equal(np.asarray(found), wanted)


def test_an_integer_that_no_float64_holds_is_refused_whatever_its_type():
    for number in (LARGE + 1, np.int64(LARGE + 1)):
        with pytest.raises(TraceError, match=f"{LARGE + 1} is no float64"):
            bb.trace(lambda x, number=number: x < number, x="int64: M")
