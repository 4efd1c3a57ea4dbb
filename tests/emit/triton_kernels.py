"""Triton kernels, one right and others wrong, and a check of each in Triton's interpreter.

Run with TRITON_INTERPRET=1: prints the problems of each as JSON. It is no test by itself.
"""

import json
import sys

import torch
import triton
import triton.language as tl

import blockbuster as bb
from blockbuster.check import kernel as check
from blockbuster.check.kernel_process import Served
from blockbuster.check.own_process import Alone

BLOCK = 16


@triton.jit
def double_rows(X, OUT, n, xr, xc, orow, ocol, first, more, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + row * xr + at * xc, mask=at < n, other=0.0)
    tl.store(OUT + row * orow + (at + first) * ocol, x * 2, mask=at < n + more)


@triton.jit
def sum_rows(X, OUT, n, xr, xc, orow, more, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(X + row * xr + at * xc, mask=at < n + more, other=0.0)
    tl.store(OUT + row * orow, tl.sum(total))


@triton.jit
def add_rows(X, OUT, n, xr, xc, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(X + row * xr + at * xc, mask=at < n, other=0.0)
    tl.atomic_add(OUT + at, x, mask=at < n)


def doubled(first=0, more=0, fewer=0, own=False):
    def launch(x, out=None):
        rows, n = x.shape
        if out is None:
            out = torch.empty_like(x)
        if own:
            out = x
        grid = (rows, triton.cdiv(n, BLOCK) - fewer)
        if min(grid):
            steps = (*x.stride(), *out.stride())
            double_rows[grid](x, out, n, *steps, first, more, BLOCK=BLOCK)
        return out

    return launch


def right(x, out=None):
    return doubled()(x, out)


def one_too_many(x, out=None):
    return doubled(more=1)(x, out)


def summed(more):
    def launch(x, out=None):
        out = torch.empty(x.shape[:1], dtype=x.dtype) if out is None else out
        sum_rows[(x.shape[0],)](x, out, x.shape[1], *x.stride(), *out.stride(), more, BLOCK=BLOCK)
        return out

    return launch


def added(zeroed):
    def launch(x):
        out = (torch.zeros if zeroed else torch.empty)(x.shape[1], dtype=x.dtype)
        add_rows[(x.shape[0],)](x, out, x.shape[1], *x.stride(), BLOCK=64)
        return out

    return launch


def double(x):
    return x * 2


KERNELS = {
    "right": (doubled(), double, ["out"]),
    "right, not named": (doubled(), double, []),
    "right sum": (summed(0), lambda x: x.sum(-1), ["out"]),
    "right atomics": (added(True), lambda x: x.sum(0), []),
    "stores one too many": (doubled(more=1), double, ["out"]),
    "stores one too many, not named": (doubled(more=1), double, []),
    "stores without a mask": (doubled(more=BLOCK), double, ["out"]),
    "stores before the start": (doubled(first=-1), double, ["out"]),
    "leaves the tail": (doubled(fewer=1), double, ["out"]),
    "changes its input": (doubled(own=True), double, []),
    "loads one too many": (summed(1), lambda x: x.sum(-1), ["out"]),
    "adds to what was there": (added(False), lambda x: x.sum(0), []),
}


def served(kernel, arrays, *, own_process, limit):
    """As for tensors on a GPU."""
    return Alone(lambda: Served(kernel, interpreted=False, limit=limit), limit), ""


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)  # also where tests run in one
    large = torch.randn(300, 300) @ torch.randn(300, 300)  # torch's threads are there
    assert large.isfinite().all()
    inputs = [{"x": torch.randn(3, 20)}, {"x": torch.randn(1, 1)}, {"x": torch.randn(2, 16).T}]
    found = {
        name: bb.check_kernel(
            kernel, reference, inputs if "right" in name else inputs[0], outputs=outputs, runs=2
        )
        for name, (kernel, reference, outputs) in KERNELS.items()
    }
    check.runner = served
    for kernel in (right, one_too_many):
        found[f"{kernel.__name__}, served"] = bb.check_kernel(
            kernel, double, inputs[0], outputs=["out"], runs=2
        )
    json.dump({name: str(report) for name, report in found.items()}, sys.stdout)


if __name__ == "__main__":
    main()
