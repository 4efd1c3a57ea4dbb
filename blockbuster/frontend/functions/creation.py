"""Functions that make arrays from sizes, and opaque functions, into which no rule looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.row import Array, Row
from blockbuster.frontend.sizes import trace_among
from blockbuster.frontend.torch import custom_on_tensors, is_tensor


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
            return array.trace.custom(fn, arrays, array.trace.shape(shape), name)
    if any(map(is_tensor, arrays)):
        return custom_on_tensors(fn, arrays)
    return np.asarray(fn(*arrays))


_GROUP = "Positions, and functions of yours"

ROWS = (
    Row(arange, _GROUP, note="Its argument is a size, so NumPy's own ``np.arange`` cannot be it."),
    Row(custom, _GROUP, note="A function of yours runs between kernels."),
)
