"""Everyday programs: what each becomes at large sizes, and that it is right at small ones."""

import numpy as np
import pytest

import blockbuster as bb
from bench.everyday import EVERYDAY, largest_intermediate
from tests.parameters import one_in

SCORES = 2 * 16 * 2048 * 2048 * 2
"""Bytes of the scores of all heads in half precision."""

def each(programs):
    return pytest.mark.parametrize("program", programs, ids=lambda program: program.name)


@each(EVERYDAY[::10])
def test_it_becomes_few_kernels_that_store_no_scores(program):
    few_that_store_no_scores(program, program.compiled())


def few_that_store_no_scores(program, compiled):
    assert compiled.plan.kernels == program.kernels
    assert largest_intermediate(compiled) == program.bytes <= SCORES / 16
    assert bool(program.why) is (program.kernels > 1)
    fused = "one kernel, no intermediate in memory" in str(compiled.report)
    assert fused is (program.kernels == 1)


@each(one_in(4, EVERYDAY, first=1))
def test_it_is_right_at_small_sizes(program):
    inputs = drawn(program)
    found = bb.jit(program.fn)(**inputs)
    traced = bb.trace(program.fn, **program.inputs)
    exact = traced.numpy({name: value.astype("float64") for name, value in inputs.items()})

    results = found if isinstance(found, tuple) else (found,)
    for result, right in zip(results, exact.values(), strict=True):
        assert np.linalg.norm(result - right) <= 1e-6 * np.linalg.norm(right)


def drawn(program):
    """Inputs in float32 at small sizes."""
    random = np.random.default_rng(len(program.name))
    found = {}
    for name, shape in program.shapes("small").items():
        if name in (program.whole or {}):
            found[name] = np.sort(random.integers(program.whole[name], size=shape), axis=-1)
        elif name in (program.shares or {}):
            found[name] = random.random(shape) < program.shares[name]
        else:
            found[name] = random.normal(size=shape)
    return {name: value.astype("float32") for name, value in found.items()}


FEW = 192
"""Spilled bytes of a thread that four warps may have where eight would share rows.

On an H200 window attention takes 127 us with four warps that spill 32 bytes, 177 with eight that
spill none (bench/results/2026-11-22-h200-costs); rotated windows spill 180, which nobody timed.
"""


@pytest.mark.slow
@each(EVERYDAY)
def test_every_program_becomes_few_kernels_that_compile_with_few_spills(program):
    from blockbuster.emit.kernel import Kernel
    from blockbuster.emit.target.compiler import compile_kernel

    compiled = program.compiled()
    few_that_store_no_scores(program, compiled)
    plan = compiled.plan
    for file in plan.files:
        best = file.considered.best
        kernel = Kernel(
            best.name, file.text, plan.sizes, {}, plan.dtype, plan.target, file.reads, file.writes
        )
        assert all(report.spills <= FEW for report in compile_kernel(kernel))
