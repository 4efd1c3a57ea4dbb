"""Reductions in Triton's interpreter by its own method and by ours: prints where they differ.

Run with TRITON_INTERPRET=1. It is no test by itself.
"""

import json
import sys

import torch
import triton
import triton.language as tl

from blockbuster.runtime.reduce_slices import reduce_slices


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _larger_one(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _then(a, b, c, d):
    return a * c, b * c + d  # first a x + b, then c x + d: the order matters


@triton.jit
def _larger(a, i, b, j):
    takes = (a > b) | ((a == b) & (i < j))
    return tl.where(takes, a, b), tl.where(takes, i, j)


@triton.jit
def one(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr, KEEP: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tile = tl.load(x + at)
    if x.dtype.element_ty.is_floating():
        found = tl.reduce(tile, AXIS, _larger_one, keep_dims=KEEP)
    else:
        found = tl.reduce(tile, AXIS, _add, keep_dims=KEEP)
    if KEEP:
        found = tl.sum(found, AXIS)
    count: tl.constexpr = COLUMNS if AXIS == 0 else ROWS
    tl.store(out + tl.arange(0, count), found)


@triton.jit
def row(x, value, place, COLUMNS: tl.constexpr):
    at = tl.arange(0, COLUMNS)
    found, where = tl.reduce((tl.load(x + at), at), 0, _larger)
    tl.store(value, found)
    tl.store(place, where)


@triton.jit
def chained(x, out, COLUMNS: tl.constexpr):
    factor = tl.load(x + tl.arange(0, COLUMNS))
    left, right = tl.reduce((factor, factor + 1), 0, _then)
    tl.store(out, left)
    tl.store(out + 1, right)


@triton.jit
def everything(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out, tl.reduce(tl.load(x + at), None, _larger_one))


def results():
    """The results of all kernels by name."""
    torch.manual_seed(0)
    found = {}
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int32):
        for rows, columns in ((4, 16), (8, 1), (1, 8)):
            x = (torch.randn(rows, columns) * 100).to(dtype)
            x[0, 0] = float("nan") if dtype.is_floating_point else 3
            for axis in (0, 1):
                for keep in (False, True):
                    out = torch.zeros(rows + columns, dtype=dtype)
                    one[(1,)](x, out, rows, columns, axis, keep)
                    found[f"{dtype} {rows} x {columns}, {axis}, {keep}"] = out
    x = torch.tensor([1.0, 5.0, -2.0, 5.0])
    value, place = torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    row[(1,)](x, value, place, 4)
    ends = torch.zeros(2, dtype=torch.int32)
    chained[(1,)](torch.tensor([2, -1, 3, 5, 1, -2, 4, 1], dtype=torch.int32), ends, 8)
    whole = torch.zeros(1)
    everything[(1,)](torch.randn(4, 8), whole, 4, 8)
    found |= {"largest": value, "its place": place, "everything": whole, "chained": ends}
    return found


def calls():
    """How often a function is called to reduce wide rows."""
    function, count = _larger_one.fn, 0

    def counted(a, b):
        nonlocal count
        count += 1
        return function(a, b)

    _larger_one.fn = counted
    one[(1,)](torch.randn(2, 256), torch.zeros(258), 2, 256, 1, False)
    _larger_one.fn = function
    return count


def main() -> int:
    before, by_elements = results(), calls()
    reduce_slices()
    after, by_slices = results(), calls()

    def bits(x):
        return x.view(torch.uint8).tolist()

    differ = [name for name, x in before.items() if bits(x) != bits(after[name])]
    json.dump(
        {"count": len(before), "differ": differ, "calls": [by_elements, by_slices]}, sys.stdout
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
