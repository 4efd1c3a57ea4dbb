"""NumPy's functions of windows that slide along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.joins import flip
from blockbuster.frontend.functions.products import matmul
from blockbuster.frontend.functions.row import Array, Row, Text, example
from blockbuster.frontend.functions.spatial import known, number, numbers
from blockbuster.frontend.functions.windows import viewed, windowed
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import trace_error


def sliding_window_view(x: Array, window_shape: Any, axis: Any = None) -> Array:
    """All windows of ``x``: an axis of windows in place of each axis, and its elements behind."""
    name = "sliding_window_view"
    axes = axes_of(name, range(len(x.shape)) if axis is None else axis, len(x.shape))
    sizes = numbers(name, "window_shape", window_shape, len(axes), 1)
    for at, size in zip(axes, sizes, strict=True):
        x = viewed(x, at, size)
    return x


def convolve(a: Array, v: Array, mode: str = "full") -> Array:
    """The sums of a[n] * v[k - n] of two vectors, for each k where they overlap."""
    return _slid("convolve", a, v, mode)


def correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    """The sums of a[n + k] * v[n] of two vectors, for each k where they overlap."""
    return _slid("correlate", a, v, mode)


def _slid(name: str, a: Array, v: Array, mode: str) -> Array:
    traced = [x.trace for x in (a, v) if isinstance(x, TracedArray)]
    long, short = (traced[0].array(x) if traced else np.asarray(x) for x in (a, v))
    if long.ndim != 1 or short.ndim != 1:
        reason = f"np.{name} of arrays of {long.ndim} and {short.ndim} axes"
        raise trace_error(reason, hint="it takes two vectors")
    count, others = number(f"np.{name}", "the size of v", short.shape[0]), known(long.shape[0])
    swapped = not isinstance(others, SizeExpr) and others < count
    if swapped:
        long, short, count = short, long, others
    both = {"valid": (0, 0), "same": (count // 2, (count - 1) // 2), "full": (count - 1,) * 2}
    if mode not in both:
        raise trace_error(f"np.{name} with mode={mode!r}", hint='it is "valid", "same" or "full"')
    windows = windowed(long, 0, count, 1, -1 if name == "convolve" else 1, both[mode])
    made = matmul(windows, short)
    return flip(made) if swapped and name == "correlate" else made


_GROUP = "Windows"

ROWS = (
    Row(sliding_window_view, _GROUP, ("lib.stride_tricks.sliding_window_view",), public=False,
        examples=(example("M N", 2, 1), example("B M N", (2, 3), (0, 2)), example("N", 3)),
        note="Free: windows are views, also where they overlap."),
    Row(convolve, _GROUP, ("convolve",), public=False,
        examples=(example("N", "K=3"), example("N", "K=3", Text("same")))),
    Row(correlate, _GROUP, ("correlate",), public=False,
        examples=(example("N", "K=3"), example("N", "K=3", Text("full")))),
)  # fmt: skip
