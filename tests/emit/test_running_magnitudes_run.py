"""Kernels of sums beside their magnitude: each row is read once, and no element overflows."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.runtime.launch import run_batch
from tests.emit.numpy_runs import run_numpy
from tests.rules.test_running_magnitudes import clamped_length, cubes, energy_in_eighths, fused
from tests.rules.test_running_magnitudes import length as row_length

FEW, TILES = {"M": 4, "N": 150}, {"M": 2, "N": 16}
WITHIN = {"float16": 6e-4, "float32": 2e-6}
KERNELS = [(row_length, None), (row_length, {"N": 4}), (energy_in_eighths, {"N": 4}), (cubes, None)]


def given(dtype, largest):
    """Rows with blocks of zeros, and with blocks whose squares are no floats."""
    x = largest * np.random.default_rng(2).uniform(-1, 1, (FEW["M"], FEW["N"]))
    x[0, :48], x[1, 16:], x[2, :140], x[3, 64:80] = 0, 0, 0, 1e-4 * x[3, 64:80]
    return {"x": x.astype(dtype)}


def expected_of(fn, arrays):
    program = bb.trace(fn, x="M N")
    return program.numpy({name: array.astype(float) for name, array in arrays.items()})["out"]


@pytest.mark.interpreter
@pytest.mark.parametrize(("dtype", "largest"), [("float16", 5e3), ("float32", 1e30)])
def test_kernels_have_the_values_of_the_array_program(dtype, largest):
    arrays = given(dtype, largest)
    small = [fn for fn, _ in KERNELS if fn is not energy_in_eighths or dtype == "float32"]
    pairs = [(fn, chunks) for fn, chunks in KERNELS if fn in small]  # what float16 can hold
    jobs = [
        (emit(fused(fn).final, FEW, dtype, tiles=chunks and TILES, chunks=chunks), arrays)
        for fn, chunks in pairs
    ]
    for (fn, chunks), results in zip(pairs, run_batch(jobs), strict=True):
        right, name = expected_of(fn, arrays), f"{fn.__name__} {chunks}"
        np.testing.assert_allclose(results["out"], right, rtol=WITHIN[dtype], err_msg=name)


@pytest.mark.parametrize(("fn", "chunks"), KERNELS)
def test_numpy_text_has_them_in_blocks_of_any_size(fn, chunks):
    arrays = given("float32", 1e15)
    program = emit(fused(fn).final, FEW, "float32", tiles=TILES, chunks=chunks).tile_program

    for seed in range(3):
        results = run_numpy(program, arrays, FEW, dtype=np.float32, seed=seed)
        np.testing.assert_allclose(results["out"], expected_of(fn, arrays), rtol=2e-6)


def test_long_rows_are_read_once_by_one_kernel():
    program = bb.trace(clamped_length, x="M N")
    plan = bb.compile(program, {"M": 256, "N": 131072}, "float16", "h200").plan
    (file,) = plan.files

    assert plan.kernels == 1
    assert file.text.count("tl.load(x_ptr") == 1
