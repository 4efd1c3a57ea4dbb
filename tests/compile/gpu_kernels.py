"""Triton kernels for a GPU, one right and others wrong, in a module that a process can import."""

import torch
import triton
import triton.language as tl

BLOCK = 128


@triton.jit
def double_kernel(X, OUT, n, first, more, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < n, other=0.0)
    tl.store(OUT + first + at, x * 2, mask=at < n + more)


@triton.jit
def wait_kernel(X, OUT):
    while tl.load(X, volatile=True) == tl.load(X, volatile=True):
        tl.store(OUT, 0.0)


def launch(x, out, *, first=0, more=0):
    x = x.contiguous()
    found = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, found, x.numel(), first, more, BLOCK=BLOCK)
    return found if out is None else out.copy_(found)


def right(x, out=None):
    return launch(x, out)


def stores_one_past_the_end(x, out=None):
    return launch(x, out, more=1)


def stores_far_away(x, out=None):
    return launch(x, out, first=2**40)


def changes_its_input(x, out=None):
    return right(x.mul_(2).div(2), out)


def never_ends(x, out=None):
    wait_kernel[(1,)](x, torch.zeros_like(x))
    return right(x, out)


def double(x):
    return x * 2
