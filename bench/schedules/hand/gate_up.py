"""The first half of SwiGLU: silu(x @ w) * (x @ v).

Two dots share the tile of x (128 x 128 each), or one dot of 256 columns reads both weights woven
column by column (w0 v0 w1 v1 ...), which is done once: neighbours are then in one thread.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from bench.schedules.hand.form import Array, Form, Inputs, Launch, Ready, cdiv, described
from bench.schedules.hand.matmul import load, place, product, store


def reference(x: Array, w: Array, v: Array) -> tuple[Array, ...]:
    import torch

    return (torch.nn.functional.silu(x @ w) * (x @ v),)


@triton.jit
def two_dots(x, w, v, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
             GROUP: tl.constexpr, DESCRIBED: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    row, col = place(M, N, BM, BN, GROUP)
    gate = tl.zeros([BM, BN], tl.float32)
    up = tl.zeros([BM, BN], tl.float32)
    for k in tl.range(0, K, BK):
        a = load(x, row, k, M, K, BM, BK, DESCRIBED, MASKED)
        gate = tl.dot(a, load(w, k, col, K, N, BK, BN, DESCRIBED, MASKED), gate)
        up = tl.dot(a, load(v, k, col, K, N, BK, BN, DESCRIBED, MASKED), up)
    store(out, gate * tl.sigmoid(gate) * up, row, col, M, N, BM, BN, DESCRIBED, MASKED)


@triton.jit
def one_woven_dot(x, wv, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                  GROUP: tl.constexpr, DESCRIBED: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """N counts the columns of wv, twice those of out."""
    row, col = place(M, N, BM, BN, GROUP)
    acc = product(x, wv, row, col, 0, K, M, N, K, BM, BN, BK, DESCRIBED, MASKED)
    gate, up = tl.split(tl.reshape(acc, (BM, BN // 2, 2)))
    y = gate * tl.sigmoid(gate) * up
    store(out, y, row, col // 2, M, N // 2, BM, BN // 2, DESCRIBED, MASKED)


def prepare(inputs: Inputs, *, woven: bool, block: tuple[int, int, int],
            by_descriptors: bool = False, warps: int = 8, stages: int = 3,
            group: int = 8) -> Ready:  # fmt: skip
    """x[M, D], w[D, K], v[D, K]; weaving the weights is not part of a run."""
    import torch

    x, w, v = inputs["x"], inputs["w"], inputs["v"]
    (m, k), n = x.shape, w.shape[1]
    bm, bn, bk = block
    out = x.new_empty((m, n))
    weights = (torch.stack((w, v), -1).reshape(k, 2 * n),) if woven else (w, v)
    wide = 2 * n if woven else n
    given: tuple[Any, ...] = (x, *weights, out)
    if by_descriptors:
        narrow = bn // 2 if woven else bn
        given = (described(x, bm, bk), *(described(y, bk, bn) for y in weights),
                 described(out, bm, narrow))  # fmt: skip
    launch = Launch(
        one_woven_dot if woven else two_dots,
        (cdiv(m, bm) * cdiv(wide, bn),),
        (*given, m, wide, k),
        dict(BM=bm, BN=bn, BK=bk, GROUP=group, DESCRIBED=by_descriptors,
             MASKED=bool(m % bm or wide % bn or k % bk)),
        warps, stages,
    )  # fmt: skip
    return Ready((launch,), (out,))


TWO, WOVEN = dict(woven=False, block=(128, 128, 64)), dict(woven=True, block=(128, 256, 64))
SMALL = dict(block=(16, 16, 16))
FORMS = (
    Form("two dots, pointers", prepare, TWO, SMALL, 244.0),
    Form("two dots, descriptors", prepare, {**TWO, "by_descriptors": True}, SMALL, 244.0),
    Form("woven weights, descriptors", prepare, {**WOVEN, "by_descriptors": True}, SMALL, 233.0),
)
