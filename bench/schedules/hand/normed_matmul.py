"""A normalized row times a matrix: statistics in a kernel of their own, the rest behind the sum.

((x - mean) / deviation) @ w is (x @ w - mean * column sums of w) / deviation, so the matmul reads
x as it is, and its loop holds nothing but the dot. The column sums belong to the weight and are
made once. For a root mean square there is no mean.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from bench.schedules.hand.form import (
    Array,
    Form,
    Inputs,
    Launch,
    Ready,
    cdiv,
    described,
    power_of_two,
)
from bench.schedules.hand.matmul import after_the_kernel_before, place, product, store

EPSILON = 1e-5


def layer_norm_matmul(x: Array, y: Array) -> tuple[Array, ...]:
    centered = x - x.mean(-1, keepdim=True)
    return (centered * (centered.square().mean(-1, keepdim=True) + EPSILON).rsqrt() @ y,)


def rms_norm_matmul(x: Array, y: Array) -> tuple[Array, ...]:
    return (x * (x.square().mean(-1, keepdim=True) + EPSILON).rsqrt() @ y,)


@triton.jit
def statistics(x, mean, factor, K, epsilon, BLOCK: tl.constexpr, CENTERED: tl.constexpr,
               DEPENDENT: tl.constexpr):  # fmt: skip
    """The mean of a row and what it is multiplied with, the whole row in registers."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    after_the_kernel_before(DEPENDENT)
    v = tl.load(x + row * K + at, mask=at < K, other=0.0).to(tl.float32)
    if CENTERED:
        middle = tl.sum(v, 0) / K
        v = tl.where(at < K, v - middle, 0.0)
        tl.store(mean + row, middle)
    tl.store(factor + row, tl.rsqrt(tl.sum(v * v, 0) / K + epsilon))


@triton.jit
def matmul_then_norm(x, w, out, mean, factor, sums, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                     BK: tl.constexpr, GROUP: tl.constexpr, DESCRIBED: tl.constexpr,
                     MASKED: tl.constexpr, CENTERED: tl.constexpr,
                     DEPENDENT: tl.constexpr):  # fmt: skip
    row, col = place(M, N, BM, BN, GROUP)
    acc = product(x, w, row, col, 0, K, M, N, K, BM, BN, BK, DESCRIBED, MASKED)
    after_the_kernel_before(DEPENDENT)  # only the statistics come from the kernel before
    rows = row + tl.arange(0, BM)
    cols = col + tl.arange(0, BN)
    if CENTERED:
        middle = tl.load(mean + rows, mask=rows < M, other=0.0)
        column = tl.load(sums + cols, mask=cols < N, other=0.0)
        acc = acc - middle[:, None] * column[None, :]
    scale = tl.load(factor + rows, mask=rows < M, other=0.0)
    store(out, acc * scale[:, None], row, col, M, N, BM, BN, DESCRIBED, MASKED)


def prepare(inputs: Inputs, *, centered: bool, block: tuple[int, int, int] = (128, 256, 64),
            by_descriptors: bool = False, warps: int = 8, stages: int = 3, group: int = 8,
            dependent: bool = False) -> Ready:  # fmt: skip
    """norm(x[M, K]) @ y[K, N]."""
    import torch

    x, y = inputs["x"], inputs["y"]
    (m, k), n = x.shape, y.shape[1]
    bm, bn, bk = block
    mean, factor = (x.new_empty((m,), dtype=torch.float32) for _ in range(2))
    sums = y.float().sum(0)
    out = x.new_empty((m, n))
    width = power_of_two(k)
    first = Launch(
        statistics, (m,), (x, mean, factor, k, EPSILON),
        dict(BLOCK=width, CENTERED=centered, DEPENDENT=dependent),
        max(1, min(8, width // 512)), 1, dependent,
    )  # fmt: skip
    given: tuple[Any, ...] = (x, y, out)
    if by_descriptors:
        given = (described(x, bm, bk), described(y, bk, bn), described(out, bm, bn))
    second = Launch(
        matmul_then_norm, (cdiv(m, bm) * cdiv(n, bn),), (*given, mean, factor, sums, m, n, k),
        dict(BM=bm, BN=bn, BK=bk, GROUP=group, DESCRIBED=by_descriptors,
             MASKED=bool(m % bm or n % bn or k % bk), CENTERED=centered, DEPENDENT=dependent),
        warps, stages, dependent,
    )  # fmt: skip
    return Ready((first, second), (out,))


SMALL = dict(block=(16, 32, 16), dependent=False)


def _forms(centered: bool, microseconds: float) -> tuple[Form, ...]:
    settings = dict(centered=centered)
    return (
        Form("statistics, matmul; pointers", prepare, settings, SMALL, microseconds),
        Form("statistics, matmul; descriptors", prepare,
             {**settings, "by_descriptors": True}, SMALL, microseconds),
    )  # fmt: skip


LAYER_NORM_FORMS = _forms(True, 107.0)
RMS_NORM_FORMS = _forms(False, 106.4)
