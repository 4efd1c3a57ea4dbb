"""Triton kernels with a fault each, beside right ones that look alike, and their launchers."""

import torch
import triton
import triton.language as tl

BLOCK = tl.constexpr(8)


# rows ----------------------------------------------------------------------------------


@triton.jit
def reduce_rows(X, OUT, n, xr, xc, orow, KIND: tl.constexpr, OTHER: tl.constexpr, W: tl.constexpr):
    """The maximum, the minimum, or the position of the maximum of a row of at most W numbers."""
    row, at = tl.program_id(0), tl.arange(0, W)
    x = tl.load(X + row * xr + at * xc, mask=at < n, other=OTHER)
    if KIND == "max":
        found = tl.max(x, 0)
    elif KIND == "min":
        found = tl.min(x, 0)
    else:
        found = tl.argmax(x, 0).to(tl.float32)
    tl.store(OUT + row * orow, found)


@triton.jit
def softmax_rows(
    X, OUT, n, xr, xc, orow, ocol, OTHER: tl.constexpr, SHIFT: tl.constexpr, W: tl.constexpr
):
    row, at = tl.program_id(0), tl.arange(0, W)
    x = tl.load(X + row * xr + at * xc, mask=at < n, other=OTHER)
    e = tl.where(at < n, tl.exp(x - tl.max(x, 0) if SHIFT else x), 0.0)
    tl.store(OUT + row * orow + at * ocol, e / tl.sum(e, 0), mask=at < n)


@triton.jit
def sum_rows(
    X,
    OUT,
    n,
    xr,
    xc,
    orow,
    OTHER: tl.constexpr,
    MEAN: tl.constexpr,
    HALF: tl.constexpr,
    W: tl.constexpr,
):
    row, at = tl.program_id(0), tl.arange(0, W)
    if OTHER:
        x = tl.load(X + row * xr + at * xc, mask=at < n, other=0.0)
    else:
        x = tl.load(X + row * xr + at * xc, mask=at < n)
    total = tl.zeros((), tl.float16 if HALF else tl.float32)
    for k in range(W):
        one = tl.sum(tl.where(at == k, x, 0.0), 0)
        total += one.to(total.dtype)
    tl.store(OUT + row * orow, total.to(tl.float32) / (W if MEAN else n))


def by_rows(kernel, *, whole=False, **options):
    def launch(x, out=None):
        shape = x.shape if whole else x.shape[:1]
        out = torch.empty(shape, dtype=x.dtype) if out is None else out
        steps = (*x.stride(), *out.stride())
        kernel[(x.shape[0],)](x, out, x.shape[1], *steps, **options, W=32)
        return out

    return launch


def averages(*, other=True, whole=False, half=False):
    return by_rows(sum_rows, OTHER=other, MEAN=whole, HALF=half)


# tiles ---------------------------------------------------------------------------------


@triton.jit
def add_tiles(
    X,
    OUT,
    m,
    n,
    xr,
    xc,
    orow,
    ocol,
    MORE: tl.constexpr,
    GUARD: tl.constexpr,
    SWAP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    first, second = tl.program_id(0), tl.program_id(1)
    if SWAP:
        first, second = second, first
    i = first * BLOCK + tl.arange(0, BLOCK)
    j = second * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < m) & (j[None, :] < n)
    x = tl.load(X + i[:, None] * xr + j[None, :] * xc, mask=inside, other=0.0)
    kept = inside
    if GUARD == "rows":
        kept = (i[:, None] < m) & (j[None, :] >= 0)
    elif GUARD == "one more":
        kept = (i[:, None] < m) & (j[None, :] < n + 1)
    tl.store(OUT + i[:, None] * orow + j[None, :] * ocol, x + MORE, mask=kept)


def by_tiles(*, guard="both", swap=False, contiguous=False):
    def launch(x, out=None):
        m, n = x.shape
        out = torch.empty_like(x) if out is None else out
        steps = (n, 1, *out.stride()) if contiguous else (*x.stride(), *out.stride())
        grid = (triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK))
        add_tiles[grid](x, out, m, n, *steps, MORE=1.0, GUARD=guard, SWAP=swap, BLOCK=BLOCK)
        return out

    return launch


@triton.jit
def matmul_tiles(
    X,
    Y,
    OUT,
    m,
    n,
    k,
    xr,
    xc,
    yr,
    yc,
    orow,
    ocol,
    OTHER: tl.constexpr,
    TAIL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        at = start + tl.arange(0, BLOCK)
        left = (i[:, None] < m) & ((at[None, :] < k) if TAIL else (at[None, :] >= 0))
        right = ((at[:, None] < k) if TAIL else (at[:, None] >= 0)) & (j[None, :] < n)
        if OTHER:
            a = tl.load(X + i[:, None] * xr + at[None, :] * xc, mask=left, other=0.0)
            b = tl.load(Y + at[:, None] * yr + j[None, :] * yc, mask=right, other=0.0)
        else:
            a = tl.load(X + i[:, None] * xr + at[None, :] * xc, mask=left)
            b = tl.load(Y + at[:, None] * yr + j[None, :] * yc, mask=right)
        total = tl.dot(a, b, total)
    kept = (i[:, None] < m) & (j[None, :] < n)
    tl.store(OUT + i[:, None] * orow + j[None, :] * ocol, total, mask=kept)


def product(*, other=True, tail=True):
    def launch(x, y, out=None):
        (m, k), n = x.shape, y.shape[1]
        out = torch.empty(m, n, dtype=x.dtype) if out is None else out
        steps = (*x.stride(), *y.stride(), *out.stride())
        grid = (triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK))
        matmul_tiles[grid](x, y, out, m, n, k, *steps, OTHER=other, TAIL=tail, BLOCK=BLOCK)
        return out

    return launch


# programs beside each other --------------------------------------------------------------


@triton.jit
def double_blocks(X, OUT, n, xc, ocol, SPILL: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at * xc, mask=at < n, other=0.0)
    tl.store(OUT + at * ocol, x * 2, mask=at < n)
    if SPILL:
        last = tl.program_id(0) * BLOCK + BLOCK
        tl.store(OUT + last * ocol, 0.0, mask=last < n)


@triton.jit
def double_by_steps(X, OUT, n, xc, ocol, BLOCK: tl.constexpr):
    """The first number of a block from the last result of the block before, and the step to it."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(0) * BLOCK
    x = tl.load(X + at * xc, mask=at < n, other=0.0)
    y = x * 2
    if first > 0:
        step = tl.load(X + first * xc) - tl.load(X + (first - 1) * xc)
        y = tl.where(at == first, tl.load(OUT + (first - 1) * ocol) + 2 * step, y)
    tl.store(OUT + at * ocol, y, mask=at < n)


@triton.jit
def smooth(X, OUT, n, xc, ocol, BLOCK: tl.constexpr):
    """Each number and its left neighbour."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(X + (at - 1) * xc, mask=(at > 0) & (at < n), other=0.0)
    x = tl.load(X + at * xc, mask=at < n, other=0.0)
    tl.store(OUT + at * ocol, x + left, mask=at < n)


@triton.jit
def running(X, OUT, n, xc, ocol, BLOCK: tl.constexpr):
    """Sums of blocks, each added to what the block before has stored: a chain."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at * xc, mask=at < n, other=0.0)
    before = tl.program_id(0) * BLOCK - 1
    carry = tl.load(OUT + before * ocol, mask=before >= 0, other=0.0)
    tl.store(OUT + at * ocol, tl.cumsum(x, 0) + carry, mask=at < n)


@triton.jit
def reverse_in_place(OUT, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(OUT + n - 1 - at, mask=at < n, other=0.0)
    tl.store(OUT + at, x, mask=at < n)


@triton.jit
def total(X, OUT, n, xc, ATOMIC: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(X + at * xc, mask=at < n, other=0.0), 0)
    if ATOMIC:
        tl.atomic_add(OUT, part)
    else:
        tl.store(OUT, tl.load(OUT) + part)


@triton.jit
def total_by_last(
    X, PARTS, COUNT, OUT, n, xc, ATOMIC: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr
):
    """Each program stores a part; the last to arrive adds them up."""
    pid, count = tl.program_id(0), tl.num_programs(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(PARTS + pid, tl.sum(tl.load(X + at * xc, mask=at < n, other=0.0), 0))
    if ATOMIC:
        arrived = tl.atomic_add(COUNT, 1)
    else:
        arrived = tl.load(COUNT)
        tl.store(COUNT, arrived + 1)
    if arrived == count - 1:
        all = tl.arange(0, W)
        tl.store(OUT, tl.sum(tl.load(PARTS + all, mask=all < count, other=0.0), 0))


@triton.jit
def total_in_a_chain(X, PARTS, FLAGS, OUT, n, xc, BLOCK: tl.constexpr):
    """Each program waits for the one before it, which a GPU starts earlier."""
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(X + at * xc, mask=at < n, other=0.0), 0)
    if pid > 0:
        while tl.atomic_cas(FLAGS + pid - 1, 1, 1) != 1:
            pass
        part += tl.load(PARTS + pid - 1)
    tl.store(PARTS + pid, part)
    tl.atomic_xchg(FLAGS + pid, 1)
    if pid == tl.num_programs(0) - 1:
        tl.store(OUT, part)


def blocks(kernel, **options):
    def launch(x, out=None):
        out = torch.empty_like(x) if out is None else out
        grid = (triton.cdiv(len(x), BLOCK),)
        kernel[grid](x, out, len(x), x.stride(0), out.stride(0), **options, BLOCK=BLOCK)
        return out

    return launch


def reversed_in_place(x):
    out = x.clone().contiguous()
    reverse_in_place[(triton.cdiv(len(x), BLOCK),)](out, len(x), BLOCK=BLOCK)
    return out


def summed(*, atomic=True, zeroed=True):
    def launch(x):
        out = (torch.zeros if zeroed else torch.empty)((1,), dtype=x.dtype)
        total[(triton.cdiv(len(x), BLOCK),)](
            x, out, len(x), x.stride(0), ATOMIC=atomic, BLOCK=BLOCK
        )
        return out

    return launch


def summed_by_last(*, atomic=True, kept=False):
    counts = [torch.zeros((1,), dtype=torch.int32)]

    def launch(x):
        grid = triton.cdiv(len(x), BLOCK)
        parts, out = torch.empty((grid,), dtype=x.dtype), torch.empty((1,), dtype=x.dtype)
        count = counts[0] if kept else torch.zeros((1,), dtype=torch.int32)
        total_by_last[(grid,)](
            x, parts, count, out, len(x), x.stride(0), ATOMIC=atomic, W=32, BLOCK=BLOCK
        )
        return out

    return launch


def chained(x):
    grid = triton.cdiv(len(x), BLOCK)
    parts, flags = torch.empty((grid,), dtype=x.dtype), torch.zeros((grid,), dtype=torch.int32)
    out = torch.empty((1,), dtype=x.dtype)
    total_in_a_chain[(grid,)](x, parts, flags, out, len(x), x.stride(0), BLOCK=BLOCK)
    return out


WORK = []


def stale(x):
    """A workspace that is made once, and holds what the last call left in it."""
    if not WORK:
        WORK.append(torch.zeros((1,), dtype=x.dtype))
    total[(triton.cdiv(len(x), BLOCK),)](x, WORK[0], len(x), x.stride(0), ATOMIC=True, BLOCK=BLOCK)
    return WORK[0].clone()
