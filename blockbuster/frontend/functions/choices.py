"""Functions that choose elements by positions that are values, by means of masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.functions.creation import arange
from blockbuster.frontend.functions.filled import positions
from blockbuster.frontend.functions.joins import concat
from blockbuster.frontend.functions.pointwise import where
from blockbuster.frontend.functions.reductions import max, min, sum
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.functions.searches import counted
from blockbuster.frontend.functions.shapes import expand_dims, moveaxis, ravel
from blockbuster.frontend.kinds import FLOAT, dtype_of_kind
from blockbuster.frontend.memory import shown
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.source import trace_error
from blockbuster.frontend.torch import is_tensor


def take_along_axis(x: Array, indices: Array, axis: int | None = -1) -> Array:
    """The elements at positions along an axis, in each row its own: ``x[i, indices[i, j]]``.

    Negative positions count from the end; one that is not on the axis gives 0.
    """
    if axis is None:
        return take_along_axis(ravel(x), ravel(indices), 0)
    if is_tensor(x):
        return x.take_along_dim(indices, axis)
    traced = [given for given in (x, indices) if isinstance(given, TracedArray)]
    if not traced:
        return np.take_along_axis(x, indices, axis)
    x, indices = (traced[0].trace.array(given) for given in (x, indices))
    (at,) = axes_of("take_along_axis", axis, x.ndim)
    if indices.ndim != x.ndim:
        reason = f"take_along_axis of {x.ndim} axes at positions of {indices.ndim}"
        raise trace_error(reason, hint="give positions as many axes: indices[:, None]")
    extent, is_one = x.shape[at], indices.trace.dims.is_unit(indices.axes[at])
    wanted = where(indices < 0, indices + extent, indices)
    if not is_one:  # the positions of a row in front: the last axes of x stay the last
        wanted = expand_dims(moveaxis(wanted, at, 0), at + 1)
    hit = wanted == _positions(extent, x.ndim - 1 - at)
    over = at - x.ndim
    if x.kind == FLOAT:
        found = sum(where(hit, x, 0.0), over, is_one)
    else:
        found = sum(where(hit, x + 0, 0), over, is_one).astype(dtype_of_kind(x.kind))
    return found if is_one else moveaxis(found, 0, at)


def one_hot(x: Array, num_classes: Any) -> Array:
    """1 along a new last axis at the position that each element names, and 0 elsewhere."""
    if is_tensor(x):
        return (x[..., None] == x.new_tensor(range(num_classes))).long()
    if not isinstance(x, TracedArray):
        return np.where(x[..., None] == np.arange(num_classes), 1, 0)
    return where(x[..., None] == positions(x.trace, num_classes, 0, 1), 1, 0)


def diagonal(x: Array) -> Array:
    """The elements of a square matrix whose row and column are the same position."""
    if len(x.shape) != 2:
        raise trace_error("diagonal takes a matrix", hint="index the others first: x[0]")
    if not isinstance(x, TracedArray):
        return x.diagonal()
    rows, columns = (_positions(extent, 1 - at) for at, extent in enumerate(x.shape))
    return shown(sum(where(rows == columns, x, 0), 1), x, diagonal)


def sum_of_diagonal(x: Array) -> Array:
    """The sum of the elements whose row and column are the same position."""
    return sum(diagonal(x))


def _positions(extent: Any, after: int) -> Array:
    """0, 1, ... along an axis with ``after`` axes behind it."""
    return arange(extent)[(slice(None), *(None,) * after)]


MOST_CHOSEN = 8
"""Rounds of ``largest``: each folds a row once more, and compiling takes longer with each."""


def largest(x: Array, k: int, axis: int = -1) -> tuple[Array, Array]:
    """The ``k`` largest elements along an axis, the largest first, and their positions.

    Of equal ones the first comes first; NaN counts, and comes, as infinity. One fold for each.
    """
    (at,) = axes_of("largest", axis, len(x.shape))
    places = counted("topk", x, (at,))
    keys = where(x != x, np.inf, x)
    left, behind, values, found = keys, None, [], []
    for _ in range(k):
        top = max(left, at, True)
        hit = left == top if behind is None else (left == top) & behind
        place = min(where(hit, places, np.inf), at, True)
        values.append(top)
        found.append(apply("whole", place))
        behind = (keys < top) | ((keys == top) & (places > place))
        left = where(behind, keys, -np.inf)
    return concat(values, at), concat(found, at)


_GROUP = "Choices by position"
_WHOLE = "Reads the whole axis for each position: a mask chooses."

ROWS = (
    Row(take_along_axis, _GROUP, ("take_along_axis",), note=_WHOLE, examples=(
        example("M N", "int: M K", axis=1), example("M N", "int: K N", axis=0),
        example("int: M N", "int: M K=1"), example("N", "int: K", axis=None)),
        torch=("take_along_dim", "Tensor.take_along_dim")),
    Row(one_hot, _GROUP, examples=(example("int: M", 4), example("int: M N", 5)),
        reference=lambda x, n: (x[..., None] == np.arange(n)).astype(np.int64)),
    Row(diagonal, _GROUP, ("diagonal",), ("diagonal",), ("diagonal", "Tensor.diagonal"),
        (example("M M"),), note="Of a matrix, which it reads whole."),
    Row(sum_of_diagonal, _GROUP, ("trace",), (), ("trace",),
        (example("M M"),), note="Of a matrix, which it reads whole.", public=False),
)  # fmt: skip
