"""Functions that put elements in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from blockbuster.frontend.array import along_axis
from blockbuster.frontend.functions.pointwise import where
from blockbuster.frontend.functions.ranks import in_order
from blockbuster.frontend.functions.reductions import any, mean
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.functions.shapes import ravel
from blockbuster.frontend.limits import MOST_SORTED
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.sizes import fixed


def sort(x: Array, axis: int | None = -1) -> Array:
    """The elements in ascending order along an axis."""
    ranked = in_order(x, axis)
    return along_axis("sort", x, axis) if ranked is None else ranked[0]


def argsort(x: Array, axis: int = -1, kind: Any = None) -> Array:  # noqa: ARG001 - it is stable
    """The positions that put the elements of an axis in ascending order, equal ones in theirs."""
    ranked = in_order(x, axis)
    return along_axis("argsort", x, axis) if ranked is None else ranked[1]


def median(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """The middle element along an axis, or of all (None); of two, their mean."""
    if axis is None:
        x, axis = ravel(x), 0
    (at,) = axes_of("median", axis, len(x.shape))
    count, inside = fixed(x.shape[at]), (slice(None),) * at
    middle = slice((count - 1) // 2, count // 2 + 1)
    made = mean(sort(x, at)[(*inside, middle)], at, keepdims)
    return where(any(x != x, at, keepdims), np.nan, made)


_GROUP = "Searches"
_CALL = (
    f"Of rows of up to {MOST_SORTED} elements, whose size is known, each pair is compared; else a "
    "library's function runs between kernels."
)

ROWS = (
    Row(sort, _GROUP, ("sort",), (), note=_CALL,
        examples=(example("M N"), example("M N", axis=0), example("int: M N"))),
    Row(argsort, _GROUP, ("argsort",), ("argsort",), note=_CALL, public=False,
        examples=(example("M N"), example("M N", axis=0))),
    Row(median, _GROUP, ("median",), note=_CALL, public=False,
        examples=(example("M N", 1), example("N", 0))),
)  # fmt: skip
