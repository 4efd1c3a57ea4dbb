"""(x @ w) @ u with few columns: by one kernel that keeps the middle, or by two matmuls in turn.

One kernel has as many programs as tiles of rows: 32 for 512 rows, on 132 processors. Two matmuls
have tiles in both dims; the middle stays in L2, and the second is launched before the first ends.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from bench.schedules.hand.form import Array, Form, Inputs, Launch, Ready, cdiv, power_of_two
from bench.schedules.hand.matmul import launch


def reference(x: Array, w: Array, u: Array) -> tuple[Array, ...]:
    return ((x @ w) @ u,)


@triton.jit
def fused(x, w, u, out, M, N, K, H, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
          BH: tl.constexpr, STEP: tl.constexpr):  # fmt: skip
    """BM rows: for each tile of N, its part of x @ w, rounded, times its rows of u.

    STEP columns of x at a time, or all of them (BK) where STEP is 0.
    """
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    outs = tl.arange(0, BH)
    acc = tl.zeros([BM, BH], tl.float32)
    if STEP == 0:
        inner = tl.arange(0, BK)
        a = tl.load(x + rows[:, None] * K + inner[None, :],
                    mask=(rows < M)[:, None] & (inner < K)[None, :], other=0.0)  # fmt: skip
    for n in tl.range(0, N, BN):
        cols = n + tl.arange(0, BN)
        if STEP == 0:
            b = tl.load(w + inner[:, None] * N + cols[None, :],
                        mask=(inner < K)[:, None] & (cols < N)[None, :], other=0.0)  # fmt: skip
            middle = tl.dot(a, b)
        else:
            middle = tl.zeros([BM, BN], tl.float32)
            for k in tl.range(0, K, STEP):
                step = k + tl.arange(0, STEP)
                a_at = x + rows[:, None] * K + step[None, :]
                b_at = w + step[:, None] * N + cols[None, :]
                a_2 = tl.load(a_at, mask=(rows < M)[:, None] & (step < K)[None, :], other=0.0)
                b_2 = tl.load(b_at, mask=(step < K)[:, None] & (cols < N)[None, :], other=0.0)
                middle = tl.dot(a_2, b_2, middle)
        d = tl.load(u + cols[:, None] * H + outs[None, :],
                    mask=(cols < N)[:, None] & (outs < H)[None, :], other=0.0)  # fmt: skip
        acc = tl.dot(middle.to(d.dtype), d, acc)
    y = acc.to(out.dtype.element_ty)
    tl.store(out + rows[:, None] * H + outs[None, :], y,
             mask=(rows < M)[:, None] & (outs < H)[None, :])  # fmt: skip


def by_one_kernel(inputs: Inputs, *, rows: int = 16, cols: int = 64, step: int = 0,
                  warps: int = 4, stages: int = 3) -> Ready:  # fmt: skip
    x, w, u = inputs["x"], inputs["w"], inputs["u"]
    (m, k), (n, h) = x.shape, u.shape
    out = x.new_empty((m, h))
    one = Launch(
        fused, (cdiv(m, rows),), (x, w, u, out, m, n, k, h),
        dict(BM=rows, BN=cols, BK=power_of_two(k), BH=power_of_two(h), STEP=step), warps, stages,
    )  # fmt: skip
    return Ready((one,), (out,))


def by_two_kernels(inputs: Inputs, **settings: Any) -> Ready:
    x, w, u = inputs["x"], inputs["w"], inputs["u"]
    middle = x.new_empty((x.shape[0], w.shape[1]))
    out = x.new_empty((x.shape[0], u.shape[1]))
    return Ready((launch(x, w, middle, **settings), launch(middle, u, out, **settings)), (out,))


TWO = dict(block=(64, 32, 128), warps=4, stages=3, group=8)
SMALL_TWO = dict(block=(16, 16, 16), dependent=False)
SMALL_ONE = dict(cols=16)


def _forms(small_k: bool, one: float, two: float, dependent: float) -> tuple[Form, ...]:
    first = by_one_kernel, dict(step=0 if small_k else 128), SMALL_ONE
    if not small_k:
        first = by_one_kernel, dict(step=128), {**SMALL_ONE, "step": 16}
    return (
        Form("one kernel", *first, one),
        Form("two kernels", by_two_kernels, TWO, SMALL_TWO, two),
        Form("two kernels, dependent launch", by_two_kernels,
             {**TWO, "dependent": True}, SMALL_TWO, dependent),
        Form("two kernels, descriptors, dependent launch", by_two_kernels,
             {**TWO, "by_descriptors": True, "dependent": True}, SMALL_TWO, dependent),
    )  # fmt: skip


G1_FORMS = _forms(True, 3.7, 4.5, 3.8)
G4_FORMS = _forms(False, 10.2, 5.7, 4.7)
