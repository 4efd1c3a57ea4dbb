"""Attention of one position: the keys are split among programs, then the parts are combined.

The queries that share a head of keys are rows of one tile of 16, so that each key is read once.
"""

from __future__ import annotations

import triton
import triton.language as tl

from bench.schedules.hand.attention import LOG2_E, _weights, reference
from bench.schedules.hand.form import Form, Inputs, Launch, Ready, cdiv, power_of_two
from bench.schedules.hand.matmul import after_the_kernel_before

__all__ = ["FORMS", "reference"]


@triton.jit
def part(queries, keys, values, sums, peaks, totals, G, N, chunk, scale, D: tl.constexpr,
         BG: tl.constexpr, BN: tl.constexpr, RAGGED: tl.constexpr,
         DEPENDENT: tl.constexpr):  # fmt: skip
    """The sums of one chunk of the keys of one head, not yet divided, with peak and total."""
    split = tl.program_id(0)
    head = tl.program_id(1)
    after_the_kernel_before(DEPENDENT)
    rows = tl.arange(0, BG)
    lanes = tl.arange(0, D)
    places = queries + (head * G + rows)[:, None] * D + lanes[None, :]
    q = tl.load(places, mask=(rows < G)[:, None], other=0.0)
    acc = tl.zeros([BG, D], tl.float32)
    total = tl.zeros([BG], tl.float32)
    peak = tl.full([BG], -1e30, tl.float32)
    base = head * N
    begin = split * chunk
    for n in tl.range(begin, tl.minimum(begin + chunk, N), BN):
        cols = n + tl.arange(0, BN)
        k_at = keys + (base + cols)[None, :] * D + lanes[:, None]
        v_at = values + (base + cols)[:, None] * D + lanes[None, :]
        if RAGGED:
            k = tl.load(k_at, mask=(cols < N)[None, :], other=0.0)
            v = tl.load(v_at, mask=(cols < N)[:, None], other=0.0)
        else:
            k = tl.load(k_at)
            v = tl.load(v_at)
        s = tl.dot(q, k)
        if RAGGED:
            s = tl.where((cols < N)[None, :], s, float("-inf"))
        p, shrink, peak, total = _weights(s, peak, total, scale)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
    row = (head * tl.num_programs(0) + split) * G + rows
    tl.store(sums + row[:, None] * D + lanes[None, :], acc, mask=(rows < G)[:, None])
    tl.store(peaks + row, peak, mask=rows < G)
    tl.store(totals + row, total, mask=rows < G)


@triton.jit
def combine(sums, peaks, totals, out, G, splits, D: tl.constexpr, SPLITS: tl.constexpr,
            DEPENDENT: tl.constexpr):  # fmt: skip
    """One row of the result from its parts."""
    head = tl.program_id(0) // G
    query = tl.program_id(0) % G
    parts = tl.arange(0, SPLITS)
    lanes = tl.arange(0, D)
    after_the_kernel_before(DEPENDENT)
    row = (head * splits + parts) * G + query
    peak = tl.load(peaks + row, mask=parts < splits, other=-1e30)
    total = tl.load(totals + row, mask=parts < splits, other=0.0)
    places = sums + row[:, None] * D + lanes[None, :]
    acc = tl.load(places, mask=(parts < splits)[:, None], other=0.0)
    share = tl.math.exp2(peak - tl.max(peak, 0))
    y = tl.sum(acc * share[:, None], 0) / tl.sum(total * share, 0)
    tl.store(out + (head * G + query) * D + lanes, y.to(out.dtype.element_ty))


def prepare(inputs: Inputs, *, splits: int = 16, cols: int = 128, warps: int = 4, stages: int = 3,
            dependent: bool = False) -> Ready:  # fmt: skip
    """q[H, G, D], k[H, N, D], v[H, N, D]: H heads of keys, each for G queries."""
    import torch

    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    heads, group, d = q.shape
    n = k.shape[1]
    assert d & (d - 1) == 0, f"D is {d}, expected a power of two"
    chunk = cdiv(cdiv(n, splits), cols) * cols
    sums = q.new_empty((heads, splits, group, d), dtype=torch.float32)
    peaks, totals = (q.new_empty((heads, splits, group), dtype=torch.float32) for _ in range(2))
    out = q.new_empty(q.shape)
    first = Launch(
        part, (splits, heads), (q, k, v, sums, peaks, totals, group, n, chunk, LOG2_E * d**-0.5),
        dict(D=d, BG=max(16, power_of_two(group)), BN=cols, RAGGED=n % cols != 0,
             DEPENDENT=dependent),
        warps, stages, dependent,
    )  # fmt: skip
    second = Launch(
        combine, (heads * group,), (sums, peaks, totals, out, group, splits),
        dict(D=d, SPLITS=power_of_two(splits), DEPENDENT=dependent), 4, 1, dependent,
    )  # fmt: skip
    return Ready((first, second), (out,))


SMALL = dict(splits=3, cols=16, dependent=False)
FORMS = (
    Form("split in 16, combine", prepare, {}, SMALL, 36.2),
    Form("split in 16, combine, dependent launch", prepare, dict(dependent=True), SMALL, 35.6),
)
