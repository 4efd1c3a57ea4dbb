"""Kernels of largest absolute values of normed rows: each row is read once, in float32."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.rules import fuse
from blockbuster.runtime.launch import run_batch
from tests.emit.numpy_runs import run_numpy
from tests.rules.test_magnitudes import XW, a_divisor, of_exponentials, rms

FEW, TILES = {"M": 5, "N": 150}, {"M": 2, "N": 16}
WITHIN = {"float16": 6e-4, "float32": 1e-6}
KERNELS = [(rms, None), (rms, {"N": 4}), (a_divisor, None), (of_exponentials, None)]


def of_rows(fn, dtype, largest):
    """Rows whose elements, and weights, reach ``largest``; and the results in float64."""
    program, random = trace(fn, **XW), np.random.default_rng(2)
    given = {
        "x": largest * random.uniform(-1, 1, (FEW["M"], FEW["N"])),
        "w": random.uniform(-1, 1, FEW["N"]) * min(largest, 2e4),
    }
    given = {name: array.astype(dtype) for name, array in given.items()}
    expected = program.numpy({name: array.astype(float) for name, array in given.items()})["out"]
    return fuse(lower(program)), given, expected


def apart(results, expected):
    return np.abs(results["out"].astype(float) - expected).max() / np.abs(expected).max()


@pytest.mark.interpreter
@pytest.mark.parametrize("dtype", WITHIN)
def test_kernels_have_the_values_of_the_array_program(dtype):
    """The products of x and w, up to 1e9 in float16, are above what float16 holds."""
    jobs, expected = [], []
    for fn, chunks in KERNELS:
        derivation, given, values = of_rows(fn, dtype, 30.0 if fn is of_exponentials else 6e4)
        graph = derivation.final if chunks else derivation
        jobs.append((emit(graph, FEW, dtype, tiles=chunks and TILES, chunks=chunks), given))
        expected.append(values)
    for (fn, chunks), results, values in zip(KERNELS, run_batch(jobs), expected, strict=True):
        assert apart(results, values) < WITHIN[dtype], (fn.__name__, chunks)


@pytest.mark.parametrize(("fn", "chunks"), KERNELS)
def test_numpy_text_has_them_in_blocks_of_any_size(fn, chunks):
    derivation, given, expected = of_rows(fn, "float32", 30.0)
    program = emit(derivation.final, FEW, "float32", tiles=TILES, chunks=chunks).tile_program

    for seed in range(3):
        results = run_numpy(program, given, FEW, dtype=np.float32, seed=seed)
        assert apart(results, expected) < WITHIN["float32"]


def test_long_rows_are_read_once_by_one_kernel():
    plan = bb.compile(trace(rms, **XW), {"M": 256, "N": 131072}, "float16", "h200").plan
    (file,) = plan.files

    assert plan.kernels == 1
    assert file.text.count("tl.load(x_ptr") == 1
