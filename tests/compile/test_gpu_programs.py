"""Every program of the front end through bb.jit on a GPU, against the float64 oracle."""

import numpy as np
import pytest

import blockbuster as bb
from tests.frontend.programs import OPAQUE, PROGRAMS, inputs_for
from tests.parameters import one_in

EXTENTS = ({}, {"M": 37, "N": 70, "D": 64, "S": 40, "K": 33, "E": 32, "L": 48})


def results(made):
    if isinstance(made, dict):
        return list(made.values())
    return list(made) if isinstance(made, tuple) else [made]


def check(name, extents, to_device):
    fn, dims = PROGRAMS[name]
    program = bb.trace(fn, **dims)
    arrays = {n: a.astype(np.float32) for n, a in inputs_for(program, extents).items()}
    wanted = program.numpy({n: a.astype(float) for n, a in arrays.items()})
    made = bb.jit(fn)(**{n: to_device(a) for n, a in arrays.items()})
    for got, right in zip(results(made), wanted.values(), strict=True):
        host = got if isinstance(got, np.ndarray) else got.double().cpu().numpy()
        scale = max(float(np.abs(right[np.isfinite(right)]).max(initial=0.0)), 1e-3)
        np.testing.assert_allclose(
            host, right, rtol=0, atol=2e-2 * scale if "cast" in name else 2e-3 * scale
        )


@pytest.mark.gpu
@pytest.mark.parametrize("extents", EXTENTS, ids=["small", "large"])
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in OPAQUE])
def test_on_a_gpu(torch, cuda, name, extents):
    check(name, extents, lambda array: torch.from_numpy(array).to(cuda))


@pytest.mark.parametrize("name", one_in(5, PROGRAMS, first=2))
def test_on_the_cpu(name):
    check(name, {}, lambda array: array)
