"""torch's functions that make arrays of the sizes of traced arrays."""

from __future__ import annotations

from typing import Any

from blockbuster.frontend.functions.creation import arange
from blockbuster.frontend.functions.filled import eye, full
from blockbuster.frontend.functions.pointwise import astype, maximum
from blockbuster.frontend.functions.row import Array, torch_row
from blockbuster.frontend.shapes import listed
from blockbuster.frontend.sizes import SizeExpr, trace_among
from blockbuster.frontend.source import trace_error
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.expr_lengths import length_of
from blockbuster.ir.lengths import share_of


def torch_ones(*size: Any, dtype: Any = None) -> Array:
    """An array of ones; the extents are given as a tuple or one by one."""
    return torch_full(listed(size), 1.0, dtype=dtype)


def torch_zeros(*size: Any, dtype: Any = None) -> Array:
    """An array of zeros; the extents are given as a tuple or one by one."""
    return torch_full(listed(size), 0.0, dtype=dtype)


def torch_full(size: Any, fill_value: Any, *, dtype: Any = None) -> Array:
    """An array with one number everywhere."""
    if str(dtype).endswith(TRUTH):
        return full(size, bool(fill_value))
    return _in_dtype(full(size, fill_value), dtype)


def torch_arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Array:
    """The numbers from ``start``, or from 0, up to ``end``, a step each."""
    first, behind = (0, start) if end is None else (start, end)
    trace = trace_among((first, behind, step))
    assert trace is not None  # torch asks sizes of a trace
    lengths = [length_of(trace.scalar(number)) for number in (first, behind)]
    if None in lengths or not isinstance(step, int) or step < 1:
        reason = f"arange from {first!r} to {behind!r} by {step!r}"
        hint = "sizes and whole numbers, and a step of at least 1: s * torch.arange(n)"
        raise trace_error(reason, hint=hint)
    low, high = (length for length in lengths if length is not None)
    count = trace.dims.clamped((high - low) * share_of(step), rounds=True)
    numbers = arange(SizeExpr(count.expr, trace)) if count.dims else arange(count.constant)
    numbers = numbers if step == 1 else numbers * step
    return _in_dtype(numbers if isinstance(first, int) and first == 0 else numbers + first, dtype)


def torch_eye(n: Any, m: Any = None, *, dtype: Any = None) -> Array:
    """1 where row and column are the same position, and 0 elsewhere."""
    return _in_dtype(eye(n, m), dtype)


def torch_linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None) -> Array:
    """``steps`` numbers from ``start`` to ``end``, as far from each other."""
    each = (end - start) / maximum(steps - 1, 1)
    return _in_dtype(arange(steps) * each + start, dtype)


def _in_dtype(made: Array, dtype: Any) -> Array:
    return made if dtype is None else astype(made, dtype)


ROWS = (
    torch_row(torch_ones, "ones"), torch_row(torch_zeros, "zeros", "empty"),
    torch_row(torch_full, "full"), torch_row(torch_arange, "arange"), torch_row(torch_eye, "eye"),
    torch_row(torch_linspace, "linspace"),
)  # fmt: skip
