"""Every snapshot runs in Triton's interpreter, not only the last one."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import LaunchError
from blockbuster.interp.binding import dims_of
from blockbuster.runtime.launch import run_batch
from tests.frontend.programs import PROGRAMS, inputs_for

NAMES = ("multi-head attention", "rope attention", "log-softmax", "two outputs")


@pytest.mark.interpreter
@pytest.mark.parametrize("name", [name for name in NAMES if name in PROGRAMS])
def test_every_snapshot_computes_the_program(name):
    fn, dims = PROGRAMS[name]
    program = bb.trace(fn, **dims)
    arrays = {n: a.astype(np.float32) for n, a in inputs_for(program, {}).items()}
    wanted = program.numpy({n: a.astype(float) for n, a in arrays.items()})
    sizes = program.bind(arrays)
    jobs = []
    for snapshot in bb.fuse(bb.lower(program)).snapshots:
        own = {d: n for d, n in sizes.items() if d in dims_of(snapshot)}
        jobs.append((bb.emit(snapshot, sizes=own, dtype="float32"), arrays))
    for got in run_batch(jobs):
        assert not isinstance(got, LaunchError), got
        for array, right in zip(got.values(), wanted.values(), strict=True):
            np.testing.assert_allclose(array, right, rtol=1e-4, atol=1e-4)
