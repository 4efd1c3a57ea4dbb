"""Functions that choose elements by positions that are values, by means of masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.at_positions import expect_on_axis, with_elements
from blockbuster.frontend.functions.creation import arange
from blockbuster.frontend.functions.filled import positions
from blockbuster.frontend.functions.pointwise import where
from blockbuster.frontend.functions.reductions import sum
from blockbuster.frontend.functions.row import Array, Row, example
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
    (at,) = axes_of("take_along_axis", axis, len(x.shape))
    expect_on_axis(x, at, indices, "take_along_axis")
    x, indices = (traced[0].trace.array(given) for given in (x, indices))
    if indices.ndim != x.ndim:
        reason = f"take_along_axis of {x.ndim} axes at positions of {indices.ndim}"
        raise trace_error(reason, hint="give positions as many axes: indices[:, None]")
    extent, is_one = x.shape[at], indices.trace.dims.is_unit(indices.axes[at])
    wanted = where(indices < 0, indices + extent, indices)
    if not is_one:  # the positions of a row in front: the last axes of x stay the last
        wanted = expand_dims(moveaxis(wanted, at, 0), at + 1)
    hit = wanted == _positions(extent, x.ndim - 1 - at)
    found = element_where(hit, x, at - x.ndim, is_one)
    return found if is_one else moveaxis(found, 0, at)


def element_where(hit: Array, x: TracedArray, axis: int, keepdims: bool) -> TracedArray:
    """The one element along an axis where ``hit`` is true, in its dtype, or 0 if there is none."""
    if x.kind == FLOAT:
        found: TracedArray = sum(where(hit, x, 0.0), axis, keepdims)
        return found
    found = sum(where(hit, x + 0, 0), axis, keepdims)
    return found.astype(dtype_of_kind(x.kind))  # type: ignore[no-any-return]


def index_copy(x: Array, dim: int, index: Array, source: Array) -> Array:
    """``x`` with the elements of ``source`` at positions along an axis, as torch spells it.

    A single position chooses between the two: nothing is copied where the result is read.
    """
    if is_tensor(x):
        return x.index_copy(dim, index, source)
    traced = [given for given in (x, index, source) if isinstance(given, TracedArray)]
    if not traced:
        return _index_copied(x, dim, index, source)
    x, source = (traced[0].trace.array(given) for given in (x, source))
    (at,) = axes_of("index_copy", dim, x.ndim)
    expect_on_axis(x, at, index, "index_copy", from_end=False)
    if source.kind != x.kind:
        reason = f"index_copy of {source.kind} elements to {x.kind}"
        raise trace_error(reason, hint="cast them before: source.to(x.dtype)")
    return x.trace.checked(lambda: with_elements(x, index, at, source), "index_copy", x)


def _index_copied(x: Any, dim: int, index: Any, source: Any) -> Any:
    made = np.array(x)
    made[(*(slice(None),) * (dim % made.ndim), index)] = source
    return made


def one_hot(x: Array, num_classes: Any) -> Array:
    """1 along a new last axis at the position that each element names, and 0 elsewhere."""
    if is_tensor(x):
        return (x[..., None] == x.new_tensor(range(num_classes))).long()
    if not isinstance(x, TracedArray):
        return np.where(x[..., None] == np.arange(num_classes), 1, 0)
    return where(x[..., None] == positions(x.trace, num_classes, 0, 1), 1, 0)


def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements whose place along ``axis2`` is ``offset`` behind that along ``axis1``.

    They are along a new last axis.
    """
    if not isinstance(x, TracedArray):
        return x.diagonal(offset, axis1, axis2)
    if x.ndim < 2:
        raise trace_error("diagonal takes matrices", hint="an array of two axes and more")
    apart = x if x.ndim == 2 and (axis1, axis2) == (0, 1) else moveaxis(x, (axis1, axis2), (-2, -1))
    found = _of_matrices(apart, offset)
    return shown(found, x, lambda base: diagonal(base, offset, axis1, axis2))


def _of_matrices(x: TracedArray, offset: int) -> TracedArray:
    if offset:
        x = x[..., offset:] if offset > 0 else x[..., -offset:, :]
    wide = x.trace.dims.reaches(x.axes[-1], x.axes[-2])
    if wide is None:
        reason = f"which axis of {x.trace.dims.show(x.axes)} ends the diagonal is not known"
        raise trace_error(reason, hint='give the axes sizes: "M=4 N=3"')
    rows, columns = (_positions(extent, 1 - at) for at, extent in enumerate(x.shape[-2:]))
    return element_where(rows == columns, x, -1 if wide else -2, False)


def torch_diagonal(x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """``diagonal`` as torch spells it."""
    return diagonal(x, offset, dim1, dim2)


def sum_of_diagonal(x: Array, offset: int = 0) -> Array:
    """The sum of the elements whose column is ``offset`` behind their row."""
    return sum(diagonal(x, offset))


def _positions(extent: Any, after: int) -> Array:
    """0, 1, ... along an axis with ``after`` axes behind it."""
    return arange(extent)[(slice(None), *(None,) * after)]


_GROUP = "Choices by position"
_CALL = "Of several positions, a library's function runs between kernels."
_WHOLE = "Reads the whole axis for each position: a mask chooses."

ROWS = (
    Row(take_along_axis, _GROUP, ("take_along_axis",), note=_WHOLE, examples=(
        example("M N", "int: M K", axis=1), example("M N", "int: K N", axis=0),
        example("int: M N", "int: M K=1"), example("N", "int: K", axis=None)),
        torch=("take_along_dim", "Tensor.take_along_dim")),
    Row(index_copy, _GROUP, torch=("index_copy", "Tensor.index_copy"), public=False, examples=(
        example("M N", 0, "int: K=1", "K=1 N"), example("B M=3 N", 1, "int: K=2", "B K=2 N")),
        reference=_index_copied, note=_CALL),
    Row(one_hot, _GROUP, examples=(example("int: M", 4), example("int: M N", 5)),
        reference=lambda x, n: (x[..., None] == np.arange(n)).astype(np.int64)),
    Row(diagonal, _GROUP, ("diagonal",), ("diagonal",), (),
        (example("M M"), example("M=3 N=4"), example("M=4 N=3"), example("M=4 N=3", -1),
         example("B M M", 0, 1, 2), example("M N=3 M", 1, axis1=2, axis2=0)),
        note="Of matrices, which it reads whole."),
    Row(torch_diagonal, _GROUP, torch=("diagonal", "Tensor.diagonal"), public=False,
        examples=(example("B M M", 0, -2, -1),), reference=np.diagonal),
    Row(sum_of_diagonal, _GROUP, ("trace",), (), ("trace",),
        (example("M M"),), note="Of a matrix, which it reads whole.", public=False),
)  # fmt: skip
