"""Functions that search elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.functions.creation import arange
from blockbuster.frontend.functions.pointwise import where
from blockbuster.frontend.functions.reductions import max as largest
from blockbuster.frontend.functions.reductions import min as smallest
from blockbuster.frontend.functions.row import Array, Row, example, named
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.source import trace_error
from blockbuster.frontend.torch import is_tensor

MOST_PLACES = 1 << 24
"""Elements along a searched axis: kernels fold positions in float32, exact up to here."""


def _place(name: str, extremum: Callable[..., Array], which: str) -> Callable[..., Array]:
    """The least position at which x is its extremum: two folds, which fusion makes one loop."""

    def place(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
        if is_tensor(x):
            return getattr(x, name)(axis, keepdims)
        if not isinstance(x, TracedArray):
            return getattr(np, name)(x, axis=axis, keepdims=keepdims)
        (*axes,) = range(x.ndim) if axis is None else axes_of(name, (axis,), x.ndim)
        top = extremum(x, axis, keepdims=True)
        found = where((x == top) | (x != x), counted(name, x, axes), math.inf)
        return apply("whole", smallest(found, axis, keepdims))

    meaning = f"""The position of the {which}imum along an axis, or among all elements (None).

    If several elements are {which}imal, it is the first; if there is NaN, the position of NaN, as
    in NumPy.
    """
    return named(place, name, meaning)


argmax, argmin = _place("argmax", largest, "max"), _place("argmin", smallest, "min")


def counted(name: str, x: TracedArray, axes: Sequence[int], times: int = 1) -> Array:
    """The position of each element, counted along ``axes``, the last the fastest.

    ``times``: so often as many numbers as there are elements have to be told apart.
    """
    dims, most = x.trace.dims, MOST_PLACES // times
    if dims.have([x.axes[axis] for axis in axes], most + 1):
        reason = f"{name} of {dims.show(x.axes)} searches more than {most} elements"
        hint = "kernels count in float32, which is exact up to there: search pieces, then these"
        raise trace_error(reason, hint=hint)
    found: Any = 0.0
    for axis in axes:
        places = arange(x.shape[axis])[(slice(None), *(None,) * (x.ndim - 1 - axis))]
        found = places if len(axes) == 1 else found * x.shape[axis] + places
    return found


_GROUP = "Searches"
_SEARCHED = (
    example("M N", axis=-1), example("M N", axis=0), example("B M N", axis=1, keepdims=True),
    example("M N"), example("N"),
)  # fmt: skip
_FOLDED = "One loop with the maximum; exact among 16777216 elements, more are refused."

ROWS = (
    Row(argmax, _GROUP, ("argmax",), ("argmax",), ("argmax", "Tensor.argmax"), _SEARCHED,
        note=_FOLDED),
    Row(argmin, _GROUP, ("argmin",), ("argmin",), ("argmin", "Tensor.argmin"), _SEARCHED,
        note=_FOLDED.replace("maximum", "minimum")),
)  # fmt: skip
