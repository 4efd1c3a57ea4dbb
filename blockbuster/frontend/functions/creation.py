"""Functions that make arrays from sizes, and opaque functions, into which no rule looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.row import Array, Row
from blockbuster.frontend.program import Axis, Shape
from blockbuster.frontend.sizes import SizeExpr, trace_among
from blockbuster.frontend.source import trace_error
from blockbuster.frontend.torch import custom_on_tensors, is_tensor
from blockbuster.ir.expr import Size

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace


def arange(n: Any) -> Array:
    """The index vector 0, 1, ..., n - 1 along a dim; ``n`` is an entry of a traced shape.

    For an int ``n`` it returns a NumPy array, beside tensors, too: ``where`` accepts masks made of
    it.
    """
    trace = trace_among((n,))
    return np.arange(n) if trace is None else trace.record("arange", (), {"size": trace.scalar(n)})


def custom(fn: Callable[..., Any], *arrays: Array, shape: Sequence[Any]) -> Array:
    """A call of ``fn`` on whole arrays: no rule looks inside, and no kernel contains it.

    ``shape`` is that of the result: entries of the shapes of traced arrays, or 1. When the program
    runs, ``fn`` receives NumPy arrays and returns one of that shape.
    """
    for array in arrays:
        if isinstance(array, TracedArray):
            name = str(getattr(fn, "__name__", type(fn).__name__))
            return array.trace.custom(fn, arrays, _named_axes(array.trace, shape), name)
    if any(map(is_tensor, arrays)):
        return custom_on_tensors(fn, arrays)
    return np.asarray(fn(*arrays))


def _named_axes(trace: Trace, entries: Iterable[Any]) -> Shape:
    """A shape whose entries are sizes of dims, names of dims, or 1."""
    axes: list[Axis] = []
    for entry in entries:
        plain = isinstance(entry, SizeExpr) and isinstance(entry.expr, Size)
        axis = entry.expr.dim if plain else entry
        if axis != 1 and not (isinstance(axis, str) and axis in trace.dims):
            raise trace_error(f"{entry!r} is not the size of a dim", hint="take sizes from x.shape")
        axes.append(axis)
    return tuple(axes)


_GROUP = "Positions, and functions of yours"

ROWS = (
    Row(arange, _GROUP, note="Its argument is a size, so NumPy's own ``np.arange`` cannot be it."),
    Row(custom, _GROUP, note="A function of yours runs between kernels."),
)
