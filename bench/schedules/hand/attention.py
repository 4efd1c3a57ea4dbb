"""Attention of many heads: all keys, the keys up to a row's own, or the last few of those.

Form a: 64 rows a program, 4 warps, a ring of 3 slots for keys and values; two programs share a
processor, so that the softmax of one hides behind the dots of the other. Form c: two tiles of 64
rows read each key and value once. Scores are kept in base 2 with the scale folded in; only tiles
at an edge of the mask are masked.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from bench.schedules.hand.form import Array, Form, Inputs, Launch, Ready, cdiv, described

ALL, CAUSAL, WINDOW = 0, 1, 2
LOG2_E = 1.4426950408889634


def reference(q: Array, k: Array, v: Array, seen: int = ALL, window: int = 0) -> tuple[Array, ...]:
    """softmax(q @ k.T / sqrt(D)) @ v for each head, in the dtype of the inputs."""
    import torch

    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    distance = torch.arange(q.shape[-2], device=q.device)[:, None] - torch.arange(
        k.shape[-2], device=q.device
    )
    if seen != ALL:
        s = s.masked_fill(distance < 0, float("-inf"))
    if seen == WINDOW:
        s = s.masked_fill(distance >= window, float("-inf"))
    return (torch.softmax(s, dim=-1) @ v,)


def grouped(q: Array, k: Array, v: Array) -> tuple[Array, ...]:
    """q[H, G, M, D] with k[H, N, D], v[H, N, L]: the heads of a group share keys and values."""
    return reference(q, k[:, None], v[:, None])


def soft_cap_reference(q: Array, k: Array, v: Array) -> tuple[Array, ...]:
    """The same with scores 50 tanh(s / 50)."""
    import torch

    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    return (torch.softmax(50.0 * torch.tanh(s / 50.0), dim=-1) @ v,)


def alibi_reference(q: Array, k: Array, v: Array, slopes: Array) -> tuple[Array, ...]:
    """The same with scores that fall with the distance of a key before the row, times a slope."""
    import torch

    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    at = torch.arange(q.shape[-2], device=q.device)
    distance = at[:, None] - at
    s = (s - slopes[:, None, None] * distance).masked_fill(distance < 0, float("-inf"))
    return (torch.softmax(s, dim=-1) @ v,)


@triton.jit
def _keys(keys, base, n, cols, lanes, N, D: tl.constexpr,
          DESCRIBED: tl.constexpr, CUT: tl.constexpr):  # fmt: skip
    """The tile of keys at n, as columns."""
    if DESCRIBED:
        tile = keys.load([base + n, 0]).T
    elif CUT:
        places = keys + (base + cols)[None, :] * D + lanes[:, None]
        tile = tl.load(places, mask=(cols < N)[None, :], other=0.0)
    else:
        tile = tl.load(keys + (base + cols)[None, :] * D + lanes[:, None])
    return tile


@triton.jit
def _values(values, base, n, cols, lanes, N, D: tl.constexpr,
            DESCRIBED: tl.constexpr, CUT: tl.constexpr):  # fmt: skip
    """The tile of values at n, as rows. Rows beyond N are 0: a described load may read others."""
    if DESCRIBED:
        tile = values.load([base + n, 0])
    elif CUT:
        places = values + (base + cols)[:, None] * D + lanes[None, :]
        tile = tl.load(places, mask=(cols < N)[:, None], other=0.0)
    else:
        tile = tl.load(values + (base + cols)[:, None] * D + lanes[None, :])
    if DESCRIBED and CUT:
        tile = tl.where((cols < N)[:, None], tile, 0.0)
    return tile


@triton.jit
def _masked(s, rows, cols, N, SEEN: tl.constexpr, WIDTH: tl.constexpr):
    """Scores with minus infinity where a row does not see a column."""
    seen = (cols < N)[None, :]
    if SEEN != 0:
        seen &= rows[:, None] >= cols[None, :]
    if SEEN == 2:
        seen &= rows[:, None] - cols[None, :] < WIDTH
    return tl.where(seen, s, float("-inf"))


@triton.jit
def _weights(s, peak, total, scale):
    """A step of the softmax in base 2: weights, what shrinks the sums so far, the new peak, sum."""
    top = tl.maximum(peak, tl.max(s, 1) * scale)
    p = tl.math.exp2(s * scale - top[:, None])
    shrink = tl.math.exp2(peak - top)
    return p, shrink, top, total * shrink + tl.sum(p, 1)


@triton.jit
def _steps(q, keys, values, acc, peak, total, low, high, base, rows, lanes, N, scale,
           D: tl.constexpr, BN: tl.constexpr, SEEN: tl.constexpr, WIDTH: tl.constexpr,
           DESCRIBED: tl.constexpr, RAGGED: tl.constexpr,
           EDGE: tl.constexpr):  # fmt: skip
    """All steps from low to high; EDGE: the mask cuts through their tiles."""
    for n in tl.range(low, high, BN):
        cols = n + tl.arange(0, BN)
        k = _keys(keys, base, n, cols, lanes, N, D, DESCRIBED, EDGE and RAGGED)
        s = tl.dot(q, k)
        if EDGE:
            s = _masked(s, rows, cols, N, SEEN, WIDTH)
        p, shrink, peak, total = _weights(s, peak, total, scale)
        v = _values(values, base, n, cols, lanes, N, D, DESCRIBED, EDGE and RAGGED)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
    return acc, peak, total


@triton.jit
def _two_steps(q, q_2, keys, values, acc, acc_2, peak, peak_2, total, total_2, low, high, base,
               rows, rows_2, lanes, N, scale, D: tl.constexpr, BN: tl.constexpr,
               SEEN: tl.constexpr, WIDTH: tl.constexpr, DESCRIBED: tl.constexpr,
               RAGGED: tl.constexpr, EDGE: tl.constexpr):  # fmt: skip
    """The steps of two tiles of rows, which share keys and values."""
    for n in tl.range(low, high, BN):
        cols = n + tl.arange(0, BN)
        k = _keys(keys, base, n, cols, lanes, N, D, DESCRIBED, EDGE and RAGGED)
        s = tl.dot(q, k)
        s_2 = tl.dot(q_2, k)
        if EDGE:
            s = _masked(s, rows, cols, N, SEEN, WIDTH)
            s_2 = _masked(s_2, rows_2, cols, N, SEEN, WIDTH)
        v = _values(values, base, n, cols, lanes, N, D, DESCRIBED, EDGE and RAGGED)
        p, shrink, peak, total = _weights(s, peak, total, scale)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        p_2, shrink_2, peak_2, total_2 = _weights(s_2, peak_2, total_2, scale)
        acc_2 = tl.dot(p_2.to(v.dtype), v, acc_2 * shrink_2[:, None])
    return acc, acc_2, peak, peak_2, total, total_2


@triton.jit
def _bounds(first, M, N, BM: tl.constexpr, BN: tl.constexpr, SEEN: tl.constexpr,
            WIDTH: tl.constexpr):  # fmt: skip
    """Where the tiles of columns begin, where whole ones begin and end, where all end."""
    low = 0
    whole = 0
    end = N
    whole_end = N // BN * BN
    if SEEN != 0:
        end = tl.minimum(first + BM, N)
        whole_end = tl.minimum((first + 1) // BN * BN, whole_end)
    if SEEN == 2:
        low = tl.maximum(first - WIDTH + 1, 0) // BN * BN
        whole = tl.cdiv(tl.maximum(tl.minimum(first + BM, M) - WIDTH, 0), BN) * BN
        whole = tl.minimum(tl.maximum(whole, low), whole_end)
    return low, whole, whole_end, end


@triton.jit
def _queries(queries, base, first, rows, lanes, M, D: tl.constexpr, DESCRIBED: tl.constexpr,
             RAGGED: tl.constexpr):  # fmt: skip
    if DESCRIBED:
        q = queries.load([base + first, 0])
    elif RAGGED:
        places = queries + (base + rows)[:, None] * D + lanes[None, :]
        q = tl.load(places, mask=(rows < M)[:, None], other=0.0)
    else:
        q = tl.load(queries + (base + rows)[:, None] * D + lanes[None, :])
    return q


@triton.jit
def _finish(out, acc, total, base, rows, lanes, M, D: tl.constexpr, RAGGED: tl.constexpr):
    y = (acc / total[:, None]).to(out.dtype.element_ty)
    places = out + (base + rows)[:, None] * D + lanes[None, :]
    if RAGGED:
        tl.store(places, y, mask=(rows < M)[:, None])
    else:
        tl.store(places, y)


@triton.jit
def one_tile(queries, keys, values, out, M, N, scale,
             D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, SEEN: tl.constexpr,
             WIDTH: tl.constexpr, DESCRIBED: tl.constexpr, RAGGED_M: tl.constexpr,
             RAGGED_N: tl.constexpr):  # fmt: skip
    """Form a: BM rows of a head."""
    tile = tl.program_id(0)
    head = tl.program_id(1)
    if SEEN != 0:
        tile = tl.num_programs(0) - 1 - tile  # the long rows first
    first = tile * BM
    rows = first + tl.arange(0, BM)
    lanes = tl.arange(0, D)
    low, whole, whole_end, end = _bounds(first, M, N, BM, BN, SEEN, WIDTH)
    acc = tl.zeros([BM, D], tl.float32)
    total = tl.zeros([BM], tl.float32)
    peak = tl.full([BM], -1e30, tl.float32)  # finite: a row may see nothing of its first tile
    q = _queries(queries, head * M, first, rows, lanes, M, D, DESCRIBED, RAGGED_M)
    base = head * N
    if SEEN == 2:
        acc, peak, total = _steps(q, keys, values, acc, peak, total, low, whole, base, rows, lanes,
                                  N, scale, D, BN, SEEN, WIDTH, DESCRIBED, RAGGED_N,
                                  EDGE=True)  # fmt: skip
    acc, peak, total = _steps(q, keys, values, acc, peak, total, whole, whole_end, base, rows,
                              lanes, N, scale, D, BN, SEEN, WIDTH, DESCRIBED, RAGGED_N,
                              EDGE=False)  # fmt: skip
    if SEEN != 0 or RAGGED_N:
        acc, peak, total = _steps(q, keys, values, acc, peak, total, whole_end, end, base, rows,
                                  lanes, N, scale, D, BN, SEEN, WIDTH, DESCRIBED, RAGGED_N,
                                  EDGE=True)  # fmt: skip
    _finish(out, acc, total, head * M, rows, lanes, M, D, RAGGED_M)


@triton.jit
def two_tiles(queries, keys, values, out, M, N, scale,
              D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, SEEN: tl.constexpr,
              WIDTH: tl.constexpr, DESCRIBED: tl.constexpr, RAGGED_M: tl.constexpr,
              RAGGED_N: tl.constexpr):  # fmt: skip
    """Form c: two times BM rows of a head."""
    tile = tl.program_id(0)
    head = tl.program_id(1)
    if SEEN != 0:
        tile = tl.num_programs(0) - 1 - tile
    first = tile * 2 * BM
    rows = first + tl.arange(0, BM)
    rows_2 = rows + BM
    lanes = tl.arange(0, D)
    low, whole, whole_end, end = _bounds(first, M, N, 2 * BM, BN, SEEN, WIDTH)
    acc = tl.zeros([BM, D], tl.float32)
    acc_2 = tl.zeros([BM, D], tl.float32)
    total = tl.zeros([BM], tl.float32)
    total_2 = tl.zeros([BM], tl.float32)
    peak = tl.full([BM], -1e30, tl.float32)
    peak_2 = tl.full([BM], -1e30, tl.float32)
    q = _queries(queries, head * M, first, rows, lanes, M, D, DESCRIBED, RAGGED_M)
    q_2 = _queries(queries, head * M, first + BM, rows_2, lanes, M, D, DESCRIBED, RAGGED_M)
    base = head * N
    if SEEN == 2:
        acc, acc_2, peak, peak_2, total, total_2 = _two_steps(
            q, q_2, keys, values, acc, acc_2, peak, peak_2, total, total_2, low, whole, base,
            rows, rows_2, lanes, N, scale, D, BN, SEEN, WIDTH, DESCRIBED, RAGGED_N,
            EDGE=True)  # fmt: skip
    acc, acc_2, peak, peak_2, total, total_2 = _two_steps(
        q, q_2, keys, values, acc, acc_2, peak, peak_2, total, total_2, whole, whole_end, base,
        rows, rows_2, lanes, N, scale, D, BN, SEEN, WIDTH, DESCRIBED, RAGGED_N,
        EDGE=False)  # fmt: skip
    if SEEN != 0 or RAGGED_N:
        acc, acc_2, peak, peak_2, total, total_2 = _two_steps(
            q, q_2, keys, values, acc, acc_2, peak, peak_2, total, total_2, whole_end, end, base,
            rows, rows_2, lanes, N, scale, D, BN, SEEN, WIDTH, DESCRIBED, RAGGED_N,
            EDGE=True)  # fmt: skip
    _finish(out, acc, total, head * M, rows, lanes, M, D, RAGGED_M)
    _finish(out, acc_2, total_2, head * M, rows_2, lanes, M, D, RAGGED_M)


def prepare(inputs: Inputs, *, seen: int, window: int = 0, rows: int = 64, cols: int = 64,
            tiles: int = 1, by_descriptors: bool = False, warps: int = 4,
            stages: int = 3) -> Ready:  # fmt: skip
    """q[H, M, D], k[H, N, D], v[H, N, D], contiguous, D a power of two; with a mask M is N."""
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    heads, m, d = q.shape
    n = k.shape[1]
    assert d & (d - 1) == 0, f"D is {d}, expected a power of two"
    assert seen == ALL or m == n, f"M is {m} and N is {n}: masks are for equal ones"
    out = q.new_empty(q.shape)
    given: tuple[Any, ...] = (q, k, v)
    if by_descriptors:
        given = (described(q, rows, d), described(k, cols, d), described(v, cols, d))
    launch = Launch(
        one_tile if tiles == 1 else two_tiles,
        (cdiv(m, tiles * rows), heads),
        (*given, out, m, n, LOG2_E * d**-0.5),
        dict(D=d, BM=rows, BN=cols, SEEN=seen, WIDTH=window, DESCRIBED=by_descriptors,
             RAGGED_M=m % (tiles * rows) != 0, RAGGED_N=n % cols != 0),
        warps, stages,
    )  # fmt: skip
    return Ready((launch,), (out,))


SMALL = dict(rows=16, cols=16)


def _forms(
    seen: int, a: float, c: float, window: int = 0, small_window: int = 0
) -> tuple[Form, ...]:
    settings = dict(seen=seen, window=window)
    small = dict(SMALL, window=small_window)
    return (
        Form("a: 64x64, pointers", prepare, settings, small, a),
        Form("a: 64x64, descriptors", prepare, {**settings, "by_descriptors": True}, small, a),
        Form("c: two sub-tiles", prepare,
             {**settings, "by_descriptors": True, "tiles": 2}, small, c),
    )  # fmt: skip


FULL_FORMS = _forms(ALL, 293.6, 261.5)
CAUSAL_FORMS = _forms(CAUSAL, 175.3, 197.2)
WINDOW_FORMS = _forms(WINDOW, 0.0, 0.0, window=1024, small_window=20)
NO_FORMS: tuple[Form, ...] = ()
