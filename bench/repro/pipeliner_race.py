"""Triton's software pipeliner races when a tile feeds a wgmma and arithmetic.

In a pipelined loop, x is read twice: by tl.dot, from shared memory, and by tl.sum, in registers.
For the second use its ring gets num_stages - 1 slots, while one dot too many stays in flight: the
copy of a later tile lands in the slot that the matrix units still read. Errors change from run to
run. Run it on a Hopper GPU: python bench/repro/pipeliner_race.py
"""

import torch
import triton
import triton.language as tl


@triton.jit
def dots_and_squares(X, W, V, Y, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    a, b = tl.zeros([BM, BN], tl.float32), tl.zeros([BM, BN], tl.float32)
    s = tl.zeros([BM], tl.float32)
    for k0 in tl.range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(X + m[:, None] * K + k[None, :])
        a = tl.dot(x, tl.load(W + k[:, None] * N + n[None, :]), a)
        b = tl.dot(x, tl.load(V + k[:, None] * N + n[None, :]), b)
        s += tl.sum(x.to(tl.float32) * x.to(tl.float32), 1)  # without this use all is well
    tl.store(Y + m[:, None] * N + n[None, :], (a + b) * tl.rsqrt(s / K)[:, None])


torch.manual_seed(0)
M, N, K = 2048, 2048, 2048
x, w, v = (torch.randn(2048, 2048, device="cuda", dtype=torch.float16) for _ in range(3))
exact = (x.double() @ (w.double() + v.double())) * x.double().square().mean(1, True).rsqrt()
print(f"triton {triton.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
for tile in ((128, 128, 64), (128, 128, 32), (128, 64, 64), (64, 64, 64)):
    for warps in (4, 8):
        for stages in (1, 2, 3, 4):
            errors = []
            for _ in range(6):
                out = torch.full((M, N), float("nan"), device="cuda")
                try:
                    dots_and_squares[(M // tile[0], N // tile[1])](
                        x, w, v, out, N, K, *tile, num_warps=warps, num_stages=stages
                    )  # fmt: skip
                    errors.append(((out - exact).abs().max() / exact.abs().max()).item())
                except triton.OutOfResources:
                    break
            word = "no room" if not errors else "RACE" if max(errors) > 1e-3 else "right"
            shown = " ".join(f"{e:.1e}" for e in errors)
            print(f"tile {tile}, {warps} warps, {stages} stages: {word:7} {shown}", flush=True)
