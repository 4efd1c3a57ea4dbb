"""argmax and argmin on a GPU: one kernel, and the same places as NumPy's, ties included."""

import numpy as np
import pytest

import blockbuster as bb
from tests.frontend.test_searches import PROGRAMS, whole_numbers

SIZES = ({"M": 300, "D": 64, "N": 64}, {"M": 70, "D": 40, "N": 5000})


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("sizes", SIZES, ids=["64 columns", "5000 columns"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_on_a_gpu(torch, cuda, name, sizes, dtype):
    fn, dims = PROGRAMS[name]
    program = bb.trace(fn, **dims)
    inputs = whole_numbers(program, sizes)
    tensors = {k: torch.from_numpy(a).to(cuda, getattr(torch, dtype)) for k, a in inputs.items()}
    made = bb.jit(fn)(**tensors)
    results = made if isinstance(made, tuple) else (made,)
    for got, right in zip(results, program.numpy(inputs).values(), strict=True):
        np.testing.assert_allclose(got.double().cpu().numpy(), right, rtol=2e-3)
