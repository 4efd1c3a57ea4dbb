"""A matmul of few rows: the sum over K is split among programs, then the parts are added.

With 16 rows and 4096 columns there are 64 tiles of 64 columns: four programs share each.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from bench.schedules.hand.form import Form, Inputs, Launch, Ready, cdiv, described
from bench.schedules.hand.matmul import after_the_kernel_before, product, reference

__all__ = ["FORMS", "reference"]


@triton.jit
def part(x, w, parts, M, N, K, chunk, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
         DESCRIBED: tl.constexpr, MASKED: tl.constexpr, DEPENDENT: tl.constexpr):  # fmt: skip
    """parts[split] = x @ w over one chunk of K."""
    row = tl.program_id(0) * BM
    col = tl.program_id(1) * BN
    split = tl.program_id(2)
    after_the_kernel_before(DEPENDENT)
    begin = split * chunk
    end = tl.minimum(begin + chunk, K)
    acc = product(x, w, row, col, begin, end, M, N, K, BM, BN, BK, DESCRIBED, MASKED)
    rows = row + tl.arange(0, BM)
    cols = col + tl.arange(0, BN)
    places = parts + (split * M + rows)[:, None] * N + cols[None, :]
    tl.store(places, acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


@triton.jit
def add_parts(parts, out, count, BLOCK: tl.constexpr, SPLITS: tl.constexpr,
              DEPENDENT: tl.constexpr):  # fmt: skip
    """out = the sum of all parts, element by element."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    after_the_kernel_before(DEPENDENT)
    acc = tl.zeros([BLOCK], tl.float32)
    for split in tl.static_range(SPLITS):
        acc += tl.load(parts + split * count + at, mask=at < count, other=0.0)
    tl.store(out + at, acc.to(out.dtype.element_ty), mask=at < count)


def prepare(inputs: Inputs, *, block: tuple[int, int, int] = (16, 64, 128), splits: int = 4,
            by_descriptors: bool = False, warps: int = 4, stages: int = 4, add: int = 512,
            dependent: bool = False) -> Ready:  # fmt: skip
    """x[M, K] @ w[K, N] in ``splits`` chunks of K."""
    import torch

    x, w = inputs["x"], inputs["w"]
    (m, k), n = x.shape, w.shape[1]
    bm, bn, bk = block
    chunk = cdiv(cdiv(k, splits), bk) * bk
    parts = x.new_empty((splits, m, n), dtype=torch.float32)
    out = x.new_empty((m, n))
    given: tuple[Any, ...] = (x, w)
    if by_descriptors:
        given = (described(x, bm, bk), described(w, bk, bn))
    masked = bool(m % bm or n % bn or k % bk)
    first = Launch(
        part, (cdiv(m, bm), cdiv(n, bn), splits), (*given, parts, m, n, k, chunk),
        dict(BM=bm, BN=bn, BK=bk, DESCRIBED=by_descriptors, MASKED=masked, DEPENDENT=dependent),
        warps, stages, dependent,
    )  # fmt: skip
    second = Launch(
        add_parts, (cdiv(m * n, add),), (parts, out, m * n),
        dict(BLOCK=add, SPLITS=splits, DEPENDENT=dependent), 4, 1, dependent,
    )  # fmt: skip
    return Ready((first, second), (out,))


SMALL = dict(block=(16, 16, 16), splits=2, add=64, dependent=False)
FORMS = (
    Form("split in 4, pointers", prepare, {}, SMALL, 8.4),
    Form("split in 4, descriptors", prepare, dict(by_descriptors=True), SMALL, 7.8),
    Form("split in 4, descriptors, dependent launch", prepare,
         dict(by_descriptors=True, dependent=True), SMALL, 7.8),
)  # fmt: skip
