"""Kernels of factors behind softmaxes, of softmaxes written out, of losses: in the interpreter."""

import numpy as np
import pytest

from blockbuster.emission import emit
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.rules import fuse
from blockbuster.runtime.launch import run_batch
from tests.rules.test_shared_factors import ONE_PASS, arrays

pytestmark = pytest.mark.interpreter

SIZES = {"M": 20, "N": 37, "D": 16, "L": 16, "T": 20, "V": 37}
WITHIN = {"float32": 5e-6, "float16": 1e-3}


@pytest.mark.parametrize("dtype", WITHIN)
def test_one_kernel_has_the_values_of_the_array_program(dtype):
    jobs, expected = [], []
    for seed, (fn, inputs) in enumerate(ONE_PASS.items()):
        program = trace(fn, **inputs)
        given = arrays(inputs, 10.0, seed, sizes=SIZES)
        rounded = {name: array.astype(dtype) for name, array in given.items()}
        sizes = {dim: SIZES[dim.rstrip("'")] for dim in program.dims}
        jobs.append((emit(fuse(lower(program)), sizes, dtype), rounded))
        exact = {name: array.astype(float) for name, array in rounded.items()}
        expected.append(program.numpy(exact)["out"])
    for fn, results, value in zip(ONE_PASS, run_batch(jobs), expected, strict=True):
        apart = np.abs(results["out"].astype(float) - value).max() / np.abs(value).max()
        assert apart < WITHIN[dtype], f"{fn.__name__}: {apart}"
