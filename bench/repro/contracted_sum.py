"""A sum over lanes that differs from lane to lane, because a product is fused with an addition.

Lanes i and j add their squares: i computes fma(x_i, x_i, x_j**2), j fma(x_j, x_j, x_i**2), and the
two round differently. So the threads that hold the sum of one row hold different bits, and when
the vector moves to the layout of a dot through shared memory, they race for the same address.
With fma(x, x, 0), which is fused with nothing, all is well. Run it on a Hopper GPU, as it is and
with the word "apart" added:
compute-sanitizer --tool racecheck --racecheck-report hazard python bench/repro/contracted_sum.py
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def scaled_by_norms(X, Y, stride, B: tl.constexpr, APART: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    at = rows[:, None] * stride + tl.arange(0, B)[None, :]
    x = tl.load(X + at)
    s = tl.sum(tl.fma(x, x, 0.0) if APART else x * x, 1)
    tl.store(Y + at, tl.dot(x, x, input_precision="ieee") * s[:, None])


x = torch.randn(4096, 33, device="cuda")  # unaligned rows of 32: one element for each lane
y = torch.empty(4096, 33, device="cuda")
scaled_by_norms[(128,)](x, y, 33, 32, "apart" in sys.argv, num_warps=4, num_stages=1)
torch.cuda.synchronize()
print(f"triton {triton.__version__}, {torch.cuda.get_device_name()}: {y[:, :32].sum().item()}")
