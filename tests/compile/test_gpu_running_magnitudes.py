"""Lengths of rows on a GPU: no element overflows, and each block has a magnitude of its own."""

import pytest

import blockbuster as bb
from tests.rules.test_running_magnitudes import clamped_length, cubes
from tests.rules.test_running_magnitudes import length as row_length


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(256, 131072), (3, 70000), (32, 16384), (5, 900)])
@pytest.mark.parametrize("fn", [row_length, clamped_length, cubes])
def test_on_a_gpu(torch, cuda, fn, shape):
    x = 1e30 * torch.randn(shape, device=cuda)
    x[0, : shape[1] // 2] = 0
    x[1, 100:] = 0
    x[2] *= torch.logspace(-8, 0, shape[1], device=cuda)
    wide = x.double()
    top = wide.abs().amax(-1, keepdim=True)
    right = (wide / top).abs().pow(3).sum(-1, keepdim=True)
    if fn is not cubes:
        right = wide.norm(dim=-1, keepdim=True)

    torch.testing.assert_close(bb.jit(fn)(x).double(), right, rtol=2e-6, atol=0)
    x[1] = 0
    made = bb.jit(fn)(x)[1]
    assert made.isnan().all() if fn is not clamped_length else made.eq(0).all()
