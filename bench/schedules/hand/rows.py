"""Reductions of rows: long rows in chunks of one program each, short ones whole in registers."""

from __future__ import annotations

import triton
import triton.language as tl

from bench.schedules.hand.form import Array, Form, Inputs, Launch, Ready, cdiv, power_of_two
from bench.schedules.hand.matmul import after_the_kernel_before


def length(x: Array) -> tuple[Array, ...]:
    return (x.square().sum(-1).sqrt(),)


def softmax(x: Array) -> tuple[Array, ...]:
    return (x.softmax(-1),)


@triton.jit
def square_sums(x, parts, N, BLOCK: tl.constexpr, RAGGED: tl.constexpr, DEPENDENT: tl.constexpr):
    """The sum of squares of one chunk of a row, read at once: no loop."""
    row = tl.program_id(0)
    chunk = tl.program_id(1)
    at = chunk * BLOCK + tl.arange(0, BLOCK)
    after_the_kernel_before(DEPENDENT)
    if RAGGED:
        v = tl.load(x + row * N + at, mask=at < N, other=0.0).to(tl.float32)
    else:
        v = tl.load(x + row * N + at).to(tl.float32)
    tl.store(parts + row * tl.num_programs(1) + chunk, tl.sum(v * v, 0))


@triton.jit
def root_of_sum(parts, out, chunks, CHUNKS: tl.constexpr, DEPENDENT: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, CHUNKS)
    after_the_kernel_before(DEPENDENT)
    v = tl.load(parts + row * chunks + at, mask=at < chunks, other=0.0)
    tl.store(out + row, tl.sqrt(tl.sum(v, 0)).to(out.dtype.element_ty))


@triton.jit
def softmax_whole(x, out, N, BLOCK: tl.constexpr):
    """One row, held in registers between the two passes over it."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * N + at, mask=at < N, other=float("-inf")).to(tl.float32)
    p = tl.math.exp2((v - tl.max(v, 0)) * 1.4426950408889634)
    tl.store(out + row * N + at, (p / tl.sum(p, 0)).to(out.dtype.element_ty), mask=at < N)


def norm_in_chunks(inputs: Inputs, *, block: int = 8192, warps: int = 4,
                   dependent: bool = False) -> Ready:  # fmt: skip
    """The Euclidean length of each row of x[M, N]."""
    import torch

    x = inputs["x"]
    m, n = x.shape
    chunks = cdiv(n, block)
    parts = x.new_empty((m, chunks), dtype=torch.float32)
    out = x.new_empty((m,))
    first = Launch(
        square_sums, (m, chunks), (x, parts, n),
        dict(BLOCK=block, RAGGED=n % block != 0, DEPENDENT=dependent), warps, 1, dependent,
    )  # fmt: skip
    second = Launch(
        root_of_sum, (m,), (parts, out, chunks),
        dict(CHUNKS=power_of_two(chunks), DEPENDENT=dependent), 1, 1, dependent,
    )  # fmt: skip
    return Ready((first, second), (out,))


def softmax_in_registers(inputs: Inputs, *, warps: int = 8) -> Ready:
    """The softmax of each row of x[M, N]."""
    x = inputs["x"]
    m, n = x.shape
    out = x.new_empty((m, n))
    one = Launch(softmax_whole, (m,), (x, out, n), dict(BLOCK=power_of_two(n)), warps)
    return Ready((one,), (out,))


SMALL = dict(block=32, dependent=False)
NORM_FORMS = (
    Form("chunks of 8192, combine", norm_in_chunks, {}, SMALL, 20.3),
    Form("chunks of 8192, combine, dependent launch", norm_in_chunks, dict(dependent=True),
         SMALL, 20.3),
)  # fmt: skip
SOFTMAX_FORMS = (
    Form("a row in registers, 8 warps", softmax_in_registers, {}, {}, 4.9),
    Form("a row in registers, 16 warps", softmax_in_registers, dict(warps=16), {}, 4.9),
)
