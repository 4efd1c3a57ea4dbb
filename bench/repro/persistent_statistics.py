"""Triton makes one loop of places and of keys in which dots meet other arithmetic, and it is wrong.

Each program takes several blocks of rows (``flatten=True``), and for each runs over the blocks of
keys: a dot, the largest of each row, and the sum of exponentials. By 132 programs for 512 blocks
results are wrong with any number of warps and stages, by 264 they are right, and without
``flatten``, too (bench/results/2026-11-26-h100-space).
Run it on a Hopper GPU: python bench/repro/persistent_statistics.py
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def statistics(
    Q, K, LARGEST, TOTAL, E, H, M, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    FLAT: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(M, BM)
    for place in tl.range(tl.program_id(0), H * blocks, tl.num_programs(0), flatten=FLAT):
        m, h = place % blocks * BM + tl.arange(0, BM), place // blocks
        q = tl.load(Q + (h * M + m[:, None]) * D + tl.arange(0, D)[None, :])
        largest = tl.full((BM,), float("-inf"), tl.float32)
        total = tl.full((BM,), 0.0, tl.float32)
        for n in range(0, N, BN):
            p = tl.dot(q, K.load([h, n, 0]).reshape(BN, D).T)
            here = tl.max(p, 1)
            e = tl.exp2(p - here[:, None])
            offset = (h * M + m[:, None]) * N + n + tl.arange(0, BN)[None, :]
            tl.store(E + offset, e.to(tl.float16))
            after = tl.maximum(largest, here)
            total = total * tl.exp2(largest - after) + tl.sum(e, 1) * tl.exp2(here - after)
            largest = after
        tl.store(LARGEST + h * M + m, largest)
        tl.store(TOTAL + h * M + m, total)


torch.manual_seed(0)
H, M, N, D, BM, BN = 16, 4096, 4096, 128, 128, 64
q, k = (torch.randn(H, n, D, device="cuda", dtype=torch.float16) * 0.3 for n in (M, N))
scores = q.float() @ k.float().transpose(1, 2)
largest, total = scores.amax(-1), (scores * 0.6931471805599453).logsumexp(-1) * 1.4426950408889634
print(f"triton {triton.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
for flat in (True, False):
    for programs in (132, 264):
        for warps in (4, 8):
            for stages in (2, 3, 4):
                worst = 0.0
                for _ in range(3):
                    found = [torch.full((H, M), float("nan"), device="cuda") for _ in range(2)]
                    e = torch.full((H, M, N), float("nan"), device="cuda", dtype=torch.float16)
                    desc = TensorDescriptor.from_tensor(k, [1, BN, D])
                    statistics[(programs,)](
                        q, desc, *found, e, H, M, N, D, BM, BN, flat,
                        num_warps=warps, num_stages=stages,
                    )  # fmt: skip
                    tiles = scores.view(H, M, N // BN, BN)
                    exact = (tiles - tiles.amax(-1, keepdim=True)).exp2().view(H, M, N)
                    errors = (
                        (found[0] - largest).abs().max(),
                        (found[0] + found[1].log2() - total).abs().max(),
                        (e - exact).abs().max(),
                    )
                    worst = max(worst, *(float(error.nan_to_num(9.0)) for error in errors))
                word = "WRONG" if worst > 1e-2 else "right"
                print(f"flatten {flat}, {programs} programs, {warps} warps, {stages} stages: "
                      f"{word} {worst:.1e}", flush=True)  # fmt: skip
