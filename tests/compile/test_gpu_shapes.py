"""Reshaped, repeated, joined and taken arrays on a GPU: what NumPy gives, exactly or nearly."""

import numpy as np
import pytest

import blockbuster as bb
from tests.frontend.test_reshapes import ON_ARRAYS, ROWS


def on_tensors(torch, device, fn):
    """``fn`` with NumPy's name of the array library for the oracle, torch's tensors for the GPU."""
    return lambda *arrays: fn(*(torch.from_numpy(array).to(device) for array in arrays))


@pytest.mark.gpu
@pytest.mark.parametrize("name", [n for n in ON_ARRAYS if "rows" not in n])
def test_on_a_gpu(torch, cuda, name):
    fn, shapes = ON_ARRAYS[name]
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]

    found = on_tensors(torch, cuda, bb.jit(fn))(*arrays)
    expected = fn(*arrays)
    pairs = (value if isinstance(value, tuple | list) else (value,) for value in (found, expected))
    for one, wanted in zip(*pairs, strict=True):
        np.testing.assert_allclose(one.cpu().numpy(), wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_rows_are_taken_where_they_are(torch, cuda, dtype):
    table = torch.randn(5000, 64, device=cuda).to(getattr(torch, dtype))
    ids = torch.from_numpy(ROWS).to(cuda)

    for fn in (lambda w, i: w[i], lambda w, i: torch.nn.functional.embedding(i % 5000, w)):
        assert torch.equal(bb.jit(fn)(table, ids), fn(table, ids))
