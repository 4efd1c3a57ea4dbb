"""Functions of matrices and vectors of space, of products and cuts."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.filled import eye, zeros_like
from blockbuster.frontend.functions.joins import flip, stack
from blockbuster.frontend.functions.pointwise import where
from blockbuster.frontend.functions.products import matmul
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.functions.shapes import reshape
from blockbuster.frontend.kinds import MASK
from blockbuster.frontend.memory import own
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.sizes import fixed
from blockbuster.frontend.source import trace_error


def kron(a: Array, b: Array) -> Array:
    """Every product of an element of ``a`` and one of ``b``: ``b`` in place of each element."""
    if not (hasattr(a, "shape") and hasattr(b, "shape")):
        return np.asarray(a) * b if hasattr(b, "shape") else a * np.asarray(b)
    rank = max(len(a.shape), len(b.shape))
    a, b = (x[(None,) * (rank - len(x.shape))] if len(x.shape) < rank else x for x in (a, b))
    of_first, of_second = (slice(None), None) * rank, (None, slice(None)) * rank
    shape = tuple(m * n for m, n in zip(a.shape, b.shape, strict=True))
    return reshape(a[of_first] * b[of_second], shape)


def cross(a: Array, b: Array, axis: int = -1) -> Array:
    """The cross product of vectors of three elements."""
    first, second = _coordinates(a, axis), _coordinates(b, axis)
    turns = ((1, 2), (2, 0), (0, 1))
    return stack([first[i] * second[j] - first[j] * second[i] for i, j in turns], axis)


def _coordinates(x: Array, axis: int) -> list[Array]:
    (at,) = axes_of("cross", axis, len(x.shape))
    if fixed(x.shape[at]) != 3:
        raise trace_error("cross of vectors that have not three elements", hint="pad them with 0")
    return [x[(*(slice(None),) * at, place)] for place in range(3)]


def torch_cross(input: Array, other: Array, dim: int | None = None) -> Array:
    """The cross product; without ``dim``, along the first axis of three elements."""
    sizes = [fixed(size) for size in input.shape] if dim is None else []
    return cross(input, other, sizes.index(3) if 3 in sizes else -1 if dim is None else dim)


def rot90(x: Array, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """The plane of two axes, turned ``k`` times from the first to the second."""
    if len(axes) != 2:
        raise trace_error(f"rot90 turns a plane of two axes, not of {len(axes)}")
    first, second = axes_of("rot90", axes, len(x.shape))
    turns = _count("rot90", k) % 4
    if turns % 2 == 0:
        return flip(x, (first, second)) if turns else own(x)
    return flip(x.swapaxes(first, second), first if turns == 1 else second)


def matrix_power(x: Array, n: int) -> Array:
    """The matrix product of ``n`` copies of ``x``."""
    n = _count("matrix_power", n)
    if n < 0:
        raise trace_error("a power of a matrix below 0", hint="invert it outside of the function")
    if n == 0:
        diagonal, zeros = eye(x.shape[-1]) > 0, zeros_like(x)
        return zeros | diagonal if getattr(x, "kind", "") == MASK else where(diagonal, 1, zeros)
    if n == 1:  # NumPy gives the array itself
        return own(x) if isinstance(x, TracedArray) and x.trace.of_tensors else x
    half = matrix_power(x, n // 2)
    square = matmul(half, half)
    return matmul(square, x) if n % 2 else square


def _count(what: str, times: Any) -> int:
    try:
        return operator.index(times)
    except TypeError:
        raise trace_error(f"{what}: {times!r} is no whole number of times") from None


_GROUP = "Products"

ROWS = (
    Row(kron, _GROUP, ("kron",), torch=("kron", "Tensor.kron"), public=False,
        examples=(example("M N", "K L"), example("M", "N"))),
    Row(cross, _GROUP, ("cross", "linalg.cross"), torch=("linalg.cross",), public=False,
        examples=(example("M N=3", "M N=3"), example("N=3", "M N=3"))),
    Row(rot90, _GROUP, ("rot90",), torch=("rot90", "Tensor.rot90"), public=False,
        examples=(example("M N"), example("M N", 2), example("B M N", -1, (1, 2)))),
    Row(matrix_power, _GROUP, ("linalg.matrix_power",), public=False,
        torch=("linalg.matrix_power", "matrix_power", "Tensor.matrix_power"),
        examples=(example("M M", 1), example("M M", 2), example("B M M", 5))),
)  # fmt: skip
