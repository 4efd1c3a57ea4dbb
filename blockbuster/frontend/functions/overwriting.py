"""Copies of arrays, and NumPy's functions that overwrite all elements of an array."""

from __future__ import annotations

from typing import Any

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.memory import own
from blockbuster.frontend.source import trace_error


def copy(x: Array) -> Array:
    """A copy: a change of one of the two arrays does not show in the other."""
    return own(x)


def fill(x: Array, value: Any) -> None:
    """One number in place of every element."""
    if isinstance(x, TracedArray) and x.ndim == 0:
        reason = "fill of an array of no axes: NumPy fills an array, and leaves a number as it is"
        raise trace_error(reason, hint="x[...] = value")
    x[...] = value


def copyto(dst: Array, src: Array) -> None:
    """The elements of another array in place of those of ``dst``; they broadcast."""
    dst[...] = src


_GROUP = "Copies, and changes in place"

ROWS = (
    Row(copy, _GROUP, ("copy",), ("copy",), ("clone", "Tensor.clone"), (example("M N"),),
        public=False),
    Row(fill, _GROUP, methods=("fill",), public=False),
    Row(copyto, _GROUP, ("copyto",), public=False),
)  # fmt: skip
