"""Functions that make arrays from sizes and positions: constants, triangles, repeated elements."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply, cast_dtype
from blockbuster.frontend.dtype_names import dtype_name
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.kinds import FLOAT, MASK, WHOLES, dtype_of_kind, kind_of_dtype
from blockbuster.frontend.numerics import nearest
from blockbuster.frontend.sizes import trace_among
from blockbuster.frontend.source import trace_error
from blockbuster.frontend.torch import is_tensor

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace


def positions(trace: Trace, extent: Any, axis: int, rank: int) -> TracedArray:
    """0, 1, ... along an axis of ``extent`` elements, of ``rank`` axes in all."""
    index = trace.record("arange", (), {"size": trace.scalar(extent)})
    return index[tuple(slice(None) if at == axis else None for at in range(rank))]


def everywhere(x: TracedArray, extents: Sequence[Any]) -> TracedArray:
    """``x`` repeated along the axes whose extent is not 1."""
    rank = len(extents)
    seen = [
        positions(x.trace, extent, axis, rank) >= 0
        for axis, extent in enumerate(extents)
        if not (isinstance(extent, int) and extent == 1)
    ]
    return chosen(functools.reduce(operator.and_, seen), x, x) if seen else x


def chosen(mask: Array, x: Array, other: Any) -> Array:
    """``x`` where the mask holds and ``other`` elsewhere; of a mask, false elsewhere."""
    if isinstance(x, TracedArray) and x.kind == "mask":
        return mask & x
    return apply("where", mask, x, other)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Array:
    """An array with one number everywhere; the extents are ints and sizes of traced arrays."""
    extents = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    trace = trace_among(extents)
    if trace is None:
        return np.full(extents, fill_value, dtype)
    made = filled(trace, extents, fill_value)
    if isinstance(fill_value, bool | np.bool_):
        made = made != 0
    return made if dtype is None else made.astype(dtype)


def filled(trace: Trace, extents: Sequence[Any], value: Any) -> TracedArray:
    """One number everywhere in an array of these extents."""
    rank = len(extents)
    seen = [positions(trace, extent, at, rank) >= 0 for at, extent in enumerate(extents)]
    mask = functools.reduce(operator.and_, seen)
    found: TracedArray = apply("where", mask, value, value)
    return found


def zeros(shape: Any, dtype: Any = None) -> Array:
    """An array of zeros; the extents are ints and sizes of traced arrays."""
    return full(shape, 0.0, dtype)


def ones(shape: Any, dtype: Any = None) -> Array:
    """An array of ones; the extents are ints and sizes of traced arrays."""
    return full(shape, 1.0, dtype)


def full_like(x: Array, fill_value: Any, dtype: Any = None) -> Array:
    """An array of the shape of ``x`` with one number everywhere, in its dtype if none is given."""
    if is_tensor(x):
        return x.new_full(x.shape, fill_value, dtype=dtype)
    if not isinstance(x, TracedArray):
        return np.full_like(x, fill_value, dtype)
    made = alike(x, x.shape or (1,), fill_value, dtype)
    return made if x.ndim else made[0]


def alike(x: TracedArray, extents: Sequence[Any], value: Any, dtype: Any = None) -> TracedArray:
    """One number everywhere in an array of these extents, cast to the dtype of ``x`` or another."""
    kind = x.kind if dtype is None else kind_of_dtype(cast_dtype(dtype))
    like = kind == FLOAT and dtype is None
    made = filled(x.trace, extents, rounded_in(x, value) if like else held_in(kind, value))
    if like:
        return made if made.kind == FLOAT else x.trace.floats(made)
    found: TracedArray = made.astype(dtype_of_kind(kind) or dtype)
    return found


def held_in(kind: str, value: Any) -> Any:
    """A number as arrays of a kind hold it: integers are truncated, as NumPy casts them.

    Raises TraceError for an infinity or NaN among integers. A size stays as it is.
    """
    if not isinstance(value, Real):
        return value
    if kind == MASK:
        return bool(value)
    if kind == FLOAT:
        return float(value)
    if not math.isfinite(value):
        raise trace_error(f"{value} among integers of {dtype_of_kind(kind)}")
    return math.trunc(value)


def rounded_in(x: TracedArray, value: Any) -> Any:
    """A number as ``x`` holds it: of its kind, and rounded to its dtype, if that is known.

    A number too large for the dtype stays as it is, and so does a size.
    """
    held = held_in(x.kind, value)
    dtype = dtype_name(x)
    if not isinstance(held, float) or dtype not in ("float16", "bfloat16", "float32"):
        return held
    return nearest(held, dtype)


def zeros_like(x: Array, dtype: Any = None) -> Array:
    """An array of zeros in the shape of ``x``."""
    return full_like(x, 0.0, dtype)


def ones_like(x: Array, dtype: Any = None) -> Array:
    """An array of ones in the shape of ``x``."""
    return full_like(x, 1.0, dtype)


def eye(n: Any, m: Any = None) -> Array:
    """1 where row and column are the same position, and 0 elsewhere."""
    columns = n if m is None else m
    trace = trace_among((n, columns))
    if trace is None:
        return np.eye(n, m)
    same = positions(trace, n, 0, 2) == positions(trace, columns, 1, 2)
    return apply("where", same, 1.0, 0.0)


def tril(x: Array, k: int = 0) -> Array:
    """The lower triangle of the last two axes: elements above diagonal ``k`` become 0."""
    return _triangle("tril", x, k)


def triu(x: Array, k: int = 0) -> Array:
    """The upper triangle of the last two axes: elements below diagonal ``k`` become 0."""
    return _triangle("triu", x, k)


def _triangle(name: str, x: Array, k: int) -> Array:
    if is_tensor(x):
        return getattr(x, name)(k)
    if not isinstance(x, TracedArray):
        return getattr(np, name)(x, k)
    if x.ndim == 1 and not x.trace.of_tensors:
        x = x[None]  # as in NumPy, a vector is each row of a square
        rows, columns = (positions(x.trace, x.shape[1], at, 2) for at in (0, 1))
    else:
        rows, columns = (positions(x.trace, x.shape[at], at + 2, 2) for at in (-2, -1))
    diagonal = rows + k if k else rows
    zero = 0 if x.kind in WHOLES else 0.0
    return chosen(diagonal >= columns if name == "tril" else diagonal <= columns, x, zero)


_GROUP = "Arrays made of sizes"
_SIZES = "Of sizes of traced arrays; NumPy's own cannot take them."

ROWS = (
    Row(full, _GROUP, note=_SIZES),
    Row(zeros, _GROUP, note=_SIZES),
    Row(ones, _GROUP, note=_SIZES),
    Row(full_like, _GROUP, ("full_like",), torch=("full_like",),
        examples=(example("M N", 2.5), example("B M N", -np.inf))),
    Row(zeros_like, _GROUP, ("zeros_like", "empty_like"), torch=("zeros_like", "empty_like"),
        examples=(example("M N"),)),
    Row(ones_like, _GROUP, ("ones_like",), torch=("ones_like",), examples=(example("M N"),)),
    Row(eye, _GROUP, note=_SIZES),
    Row(tril, _GROUP, ("tril",), torch=("tril", "Tensor.tril"),
        examples=(example("M N"), example("B M N", -1), example("M N", k=2))),
    Row(triu, _GROUP, ("triu",), torch=("triu", "Tensor.triu"),
        examples=(example("M N"), example("B M N", -1), example("M N", k=2))),
)  # fmt: skip
