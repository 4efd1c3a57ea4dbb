"""One matmul: tiles of 128 x 256, 64 deep, by 8 warps, on a ring of 3 slots.

Tiles are done in groups of 8 rows of tiles, so that what runs at a time shares operands in L2.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from bench.schedules.hand.form import Array, Form, Inputs, Launch, Ready, cdiv, described


def reference(x: Array, w: Array) -> tuple[Array, ...]:
    return (x @ w,)


@triton.jit
def place(M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """The first row and column of this program's tile, GROUP rows of tiles at a time."""
    tile = tl.program_id(0)
    across = tl.cdiv(N, BN)
    first = tile // (GROUP * across) * GROUP
    high = tl.minimum(tl.cdiv(M, BM) - first, GROUP)
    inside = tile % (GROUP * across)
    return (first + inside % high) * BM, inside // high * BN


@triton.jit
def load(array, row, col, R, C, BR: tl.constexpr, BC: tl.constexpr, DESCRIBED: tl.constexpr,
         MASKED: tl.constexpr):  # fmt: skip
    """A tile of a matrix of R rows and C columns; 0 beyond its edges."""
    if DESCRIBED:
        tile = array.load([row, col])
    else:
        rows = row + tl.arange(0, BR)
        cols = col + tl.arange(0, BC)
        places = array + rows[:, None] * C + cols[None, :]
        if MASKED:
            tile = tl.load(places, mask=(rows < R)[:, None] & (cols < C)[None, :], other=0.0)
        else:
            tile = tl.load(places)
    return tile


@triton.jit
def store(array, tile, row, col, R, C, BR: tl.constexpr, BC: tl.constexpr,
          DESCRIBED: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    if DESCRIBED:
        array.store([row, col], tile.to(array.dtype))
    else:
        rows = row + tl.arange(0, BR)
        cols = col + tl.arange(0, BC)
        places = array + rows[:, None] * C + cols[None, :]
        tile = tile.to(array.dtype.element_ty)
        if MASKED:
            tl.store(places, tile, mask=(rows < R)[:, None] & (cols < C)[None, :])
        else:
            tl.store(places, tile)


@triton.jit
def product(x, w, row, col, begin, end, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr, DESCRIBED: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """The tile of x @ w at row, col, summed over k from begin to end."""
    acc = tl.zeros([BM, BN], tl.float32)
    for k in tl.range(begin, end, BK):
        a = load(x, row, k, M, K, BM, BK, DESCRIBED, MASKED)
        b = load(w, k, col, K, N, BK, BN, DESCRIBED, MASKED)
        acc = tl.dot(a, b, acc)
    return acc


@triton.jit
def after_the_kernel_before(DEPENDENT: tl.constexpr):
    """From here on, what the kernel before wrote may be read, and the next kernel may begin."""
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def matmul(x, w, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           GROUP: tl.constexpr, DESCRIBED: tl.constexpr, MASKED: tl.constexpr,
           DEPENDENT: tl.constexpr):  # fmt: skip
    row, col = place(M, N, BM, BN, GROUP)
    after_the_kernel_before(DEPENDENT)
    acc = product(x, w, row, col, 0, K, M, N, K, BM, BN, BK, DESCRIBED, MASKED)
    store(out, acc, row, col, M, N, BM, BN, DESCRIBED, MASKED)


def launch(x: Array, w: Array, out: Array, *, block: tuple[int, int, int],
           by_descriptors: bool = False, warps: int = 8, stages: int = 3, group: int = 8,
           dependent: bool = False) -> Launch:  # fmt: skip
    """out = x @ w, all contiguous."""
    (m, k), n = x.shape, w.shape[1]
    bm, bn, bk = block
    given: tuple[Any, ...] = (x, w, out)
    if by_descriptors:
        given = (described(x, bm, bk), described(w, bk, bn), described(out, bm, bn))
    return Launch(
        matmul, (cdiv(m, bm) * cdiv(n, bn),), (*given, m, n, k),
        dict(BM=bm, BN=bn, BK=bk, GROUP=group, DESCRIBED=by_descriptors,
             MASKED=bool(m % bm or n % bn or k % bk), DEPENDENT=dependent),
        warps, stages, dependent,
    )  # fmt: skip


def prepare(inputs: Inputs, **settings: Any) -> Ready:
    """x[M, K] @ w[K, N]."""
    x, w = inputs["x"], inputs["w"]
    out = x.new_empty((x.shape[0], w.shape[1]))
    return Ready((launch(x, w, out, **settings),), (out,))


BLOCK = (128, 256, 64)
SMALL = dict(block=(16, 32, 16))
FORMS = (
    Form("128x256x64, pointers", prepare, dict(block=BLOCK), SMALL, 105.2),
    Form("128x256x64, descriptors", prepare, dict(block=BLOCK, by_descriptors=True), SMALL, 100.3),
)
