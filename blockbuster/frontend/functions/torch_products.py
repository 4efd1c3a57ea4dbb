"""torch's products: added to other arrays, of matrices with vectors, of several, with scales."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from blockbuster.frontend.functions.matrices import torch_cross
from blockbuster.frontend.functions.pointwise import astype
from blockbuster.frontend.functions.products import matmul, norm, outer
from blockbuster.frontend.functions.reductions import sum
from blockbuster.frontend.functions.row import Array, torch_row, with_method
from blockbuster.frontend.functions.shapes import moveaxis
from blockbuster.frontend.functions.statistics import torch_cov
from blockbuster.frontend.source import trace_error
from blockbuster.ir.dtypes import FLOAT8


def addmm(input: Array, mat1: Array, mat2: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """``beta * x + alpha * (a @ b)``."""
    return _added(input, matmul(mat1, mat2), beta, alpha)


def baddbmm(
    input: Array, batch1: Array, batch2: Array, *, beta: float = 1, alpha: float = 1
) -> Array:
    """``beta * x + alpha * (a @ b)`` for the matrices of a batch."""
    return addmm(input, batch1, batch2, beta=beta, alpha=alpha)


def _added(input: Array, product: Array, beta: float, alpha: float) -> Array:
    made = product if alpha == 1 else alpha * product
    if beta == 0:  # what is added is not looked at: it may be NaN
        return made
    return (input if beta == 1 else beta * input) + made


def addbmm(
    input: Array, batch1: Array, batch2: Array, *, beta: float = 1, alpha: float = 1
) -> Array:
    """``beta * x`` and ``alpha`` times the sum of the products of a batch."""
    _expect(batch1, 3, "addbmm")
    return _added(input, sum(matmul(batch1, batch2), 0), beta, alpha)


def addmv(input: Array, mat: Array, vec: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """``beta * x + alpha * (a @ v)`` for a vector v."""
    return _added(input, mv(mat, vec), beta, alpha)


def addr(input: Array, vec1: Array, vec2: Array, *, beta: float = 1, alpha: float = 1) -> Array:
    """``beta * x`` and ``alpha`` times the products of all elements of two vectors."""
    return _added(input, outer(vec1, vec2), beta, alpha)


def mv(input: Array, vec: Array) -> Array:
    """A matrix times a vector."""
    _expect(input, 2, "mv")
    _expect(vec, 1, "mv")
    return matmul(input, vec)


def _expect(x: Array, rank: int, name: str) -> None:
    if len(x.shape) != rank:
        hint = "torch.matmul takes matrices, vectors and batches"
        raise trace_error(f"{name} of an array of {len(x.shape)} axes, not {rank}", hint=hint)


def chain_matmul(*matrices: Array) -> Array:
    """The product of several matrices, from the left."""
    return functools.reduce(matmul, matrices)


def multi_dot(tensors: Sequence[Array]) -> Array:
    """The product of several matrices, from the left."""
    return functools.reduce(matmul, tensors)


def scaled_mm(
    input: Array,
    mat2: Array,
    scale_a: Array,
    scale_b: Array,
    bias: Array | None = None,
    scale_result: Array | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,  # noqa: ARG001 - sums are those of False
) -> Array:
    """``(a @ b) * scale_a * scale_b + bias`` in ``out_dtype``; scales of the whole or of rows."""
    if out_dtype is None or FLOAT8 in str(out_dtype) or scale_result is not None:
        hint = "pass out_dtype=torch.bfloat16, torch.float16 or torch.float32"
        raise trace_error(f"_scaled_mm with results in {FLOAT8} cannot be traced", hint=hint)
    found = matmul(input, mat2) * scale_a * scale_b
    return astype(found if bias is None else found + bias, out_dtype)


def matrix_norm(
    A: Array, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False
) -> Array:
    """The root of the sum of squares of each matrix."""
    if ord != "fro":
        hint = "ord='fro' is the root of the sum of squares; others need singular values or rows"
        raise trace_error(f"linalg.matrix_norm of order {ord!r} cannot be traced", hint=hint)
    return norm(A, None, tuple(dim), keepdim)


def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Array:
    """``a W b`` for the matrix W of each output, and a bias."""
    _expect(weight, 3, "the weight of bilinear")
    if len(input1.shape) == 1:
        return bilinear(input1[None], input2[None], weight, bias)[0]
    matrices = weight[(slice(None), *(None,) * (len(input1.shape) - 2))]
    found = moveaxis(sum((input1[None] @ matrices) * input2[None], -1), 0, -1)
    return found if bias is None else found + bias


ROWS = (
    with_method(addmm, "addmm"),
    with_method(torch_cross, "cross"),
    with_method(torch_cov, "cov"),
    with_method(baddbmm, "baddbmm"),
    with_method(addbmm, "addbmm"),
    with_method(addmv, "addmv"),
    with_method(addr, "addr"),
    with_method(mv, "mv"),
    torch_row(chain_matmul, "chain_matmul"),
    torch_row(multi_dot, "linalg.multi_dot"),
    torch_row(matrix_norm, "linalg.matrix_norm"),
    torch_row(scaled_mm, "_scaled_mm"),
    torch_row(bilinear, "nn.functional.bilinear", "bilinear"),
)
