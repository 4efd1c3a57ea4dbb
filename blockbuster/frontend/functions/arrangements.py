"""NumPy's and torch's functions that add axes, cut along them, and put arrays side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.functions.choices import diagonal
from blockbuster.frontend.functions.cuts import cut
from blockbuster.frontend.functions.filled import positions
from blockbuster.frontend.functions.joins import concat, of_axes, split, unbind
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.functions.shapes import broadcast_to, is_unit
from blockbuster.frontend.memory import own
from blockbuster.frontend.shapes import axes_of, listed
from blockbuster.frontend.sizes import fixed
from blockbuster.frontend.source import trace_error


def atleast_1d(*arrays: Array) -> Any:
    """Arrays of no axes get one."""
    return _each(lambda x: of_axes(x, 1), arrays)


def atleast_2d(*arrays: Array) -> Any:
    """Arrays of fewer than two axes get axes of one element in front."""
    return _each(lambda x: of_axes(x, 2), arrays)


def atleast_3d(*arrays: Array) -> Any:
    """Arrays of fewer than three axes get axes of one element: a matrix at the end."""
    return _each(_of_three_axes, arrays)


def _of_three_axes(x: Array) -> Array:
    keys = {0: (None,) * 3, 1: (None, slice(None), None), 2: (..., None)}
    return x[keys[len(x.shape)]] if len(x.shape) in keys else x


def _each(function: Any, arrays: Sequence[Array]) -> Any:
    given = listed(arrays)
    found = tuple(map(function, given))
    return found[0] if given is arrays and len(found) == 1 else found


def column_stack(arrays: Sequence[Array]) -> Array:
    """Vectors as columns and matrices, joined along the second axis."""
    return concat([x if len(x.shape) > 1 else x.reshape(-1, 1) for x in arrays], 1)


def dstack(arrays: Sequence[Array]) -> Array:
    """Arrays joined along the third axis, which matrices and vectors get."""
    return concat([*map(_of_three_axes, arrays)], 2)


def array_split(x: Array, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """An axis cut into a number of parts, of which the first are larger by one, or at places."""
    (at,) = axes_of("array_split", axis, len(x.shape))
    if not isinstance(indices_or_sections, int):
        return split(x, _on_axis(x, at, indices_or_sections), at)
    if indices_or_sections < 1:
        raise trace_error(f"an axis cut into {indices_or_sections} parts", hint="into 1 or more")
    extent = fixed(x.shape[at])
    size, more = divmod(extent, indices_or_sections)
    ends = [size * n + min(n, more) for n in range(indices_or_sections + 1)]
    return [cut(x, at, *ends[n : n + 2]) for n in range(indices_or_sections)]


def _on_axis(x: Array, axis: int, places: Sequence[Any]) -> list[Any]:
    """Positions that lie on the axis; those behind its end are its end."""
    if not all(isinstance(place, int) for place in places):
        return [*places]
    extent = fixed(x.shape[axis])
    return [min(place if place >= 0 else max(place + extent, 0), extent) for place in places]


def hsplit(x: Array, indices_or_sections: Any) -> list[Array]:
    """The second axis, or the only one, cut into equal parts or at positions."""
    if not x.shape:
        raise trace_error("hsplit of an array of no axes", hint="it needs one")
    return split(x, indices_or_sections, 0 if len(x.shape) == 1 else 1)


def vsplit(x: Array, indices_or_sections: Any) -> list[Array]:
    """The first axis cut into equal parts or at positions."""
    return _split_of(x, indices_or_sections, 0, "vsplit")


def dsplit(x: Array, indices_or_sections: Any) -> list[Array]:
    """The third axis cut into equal parts or at positions."""
    return _split_of(x, indices_or_sections, 2, "dsplit")


def _split_of(x: Array, parts: Any, axis: int, name: str) -> list[Array]:
    least = max(axis + 1, 2)
    if len(x.shape) < least:
        reason = f"{name} of an array of {len(x.shape)} axes"
        raise trace_error(reason, hint=f"it needs {least}: split takes any axis")
    return split(x, parts, axis)


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Arrays repeated to their common shape."""
    rank = max(len(x.shape) for x in arrays)
    extents: list[Any] = [1] * rank
    for x in arrays:
        for axis, extent in enumerate(x.shape):
            if not is_unit(x, axis):
                extents[rank - len(x.shape) + axis] = extent
    return tuple(broadcast_to(x, extents) for x in arrays)


def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Vectors repeated to a grid: the first along its second axis, or with "ij" along its first."""
    return tuple(map(own, grid(arrays, indexing)))


def grid(arrays: Sequence[Array], indexing: str) -> tuple[Array, ...]:
    """The same, as views."""
    if indexing not in ("xy", "ij"):
        raise trace_error(f"meshgrid has no indexing {indexing!r}", hint='"xy" or "ij"')
    rank, order = len(arrays), [*range(len(arrays))]
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    extents = [0] * rank
    for x, at in zip(arrays, order, strict=True):
        extents[at] = x.shape[0] if x.shape else 1
    shaped = [
        x.reshape([-1 if place == at else 1 for place in range(rank)])
        for x, at in zip(arrays, order, strict=True)
    ]
    return tuple(broadcast_to(x, extents) for x in shaped)


def diag(x: Array, k: int = 0) -> Array:
    """The diagonal of a matrix, or the matrix that has a vector on its diagonal and 0 elsewhere."""
    if len(x.shape) == 2:
        return diagonal(x, k)
    if len(x.shape) != 1 or k:
        reason = f"diag of {len(x.shape)} axes, {k} beside the diagonal, cannot be traced"
        raise trace_error(reason, hint="diag takes a matrix, or a vector with k=0")
    return on_diagonal(x)


def on_diagonal(x: Array) -> Array:
    """The matrices with the elements of the last axis on their diagonals, and 0 elsewhere."""
    if not isinstance(x, TracedArray):
        return x[..., None] * np.eye(x.shape[-1], dtype=x.dtype)
    rows, columns = (positions(x.trace, x.shape[-1], at, 2) for at in (0, 1))
    return apply("where", rows == columns, x[..., None], 0 if x.kind != "float" else 0.0)


def unstack(x: Array, *, axis: int = 0) -> tuple[Array, ...]:
    """The arrays along an axis of known size, without that axis."""
    return tuple(unbind(x, axis))


def matrix_transpose(x: Array) -> Array:
    """The last two axes exchanged."""
    return x.swapaxes(-1, -2)


def positive(x: Array) -> Array:
    """A copy of ``x``."""
    return own(x)


_GROUP = "Axes, cuts and grids"


def _of(
    function: Any, *names: str, numpy: str = "", examples: Any = ()
) -> Row:
    return Row(function, _GROUP, (numpy,) if numpy else (), torch=names, examples=examples,
               public=False)  # fmt: skip


ROWS = (
    _of(atleast_1d, "atleast_1d", numpy="atleast_1d", examples=(example("M"),)),
    _of(atleast_2d, "atleast_2d", numpy="atleast_2d", examples=(example("M"), example("M N"))),
    _of(atleast_3d, "atleast_3d", numpy="atleast_3d", examples=(example("M"), example("M N"))),
    _of(unstack, numpy="unstack", examples=(example("M=3 N"), example("M N=2", axis=1))),
    _of(matrix_transpose, numpy="matrix_transpose", examples=(example("M N"), example("B M N"))),
    _of(positive, numpy="positive", examples=(example("M N"),)),
    _of(column_stack, "column_stack", numpy="column_stack",
        examples=(example(("M N", "M")), example(("M", "M")))),
    _of(dstack, "dstack", numpy="dstack", examples=(example(("M N", "M N")),)),
    _of(array_split, numpy="array_split", examples=(
        example("M L=6", 3, -1), example("L=6 N", (2, 4)))),
    _of(hsplit, numpy="hsplit", examples=(example("M L=6", 3), example("L=6", (2, 4)))),
    _of(vsplit, numpy="vsplit", examples=(example("L=6 M", 2),)),
    _of(dsplit, numpy="dsplit", examples=(example("M N L=6", 2),)),
    _of(broadcast_arrays, numpy="broadcast_arrays", examples=(example("M N", "N"),)),
    _of(meshgrid, numpy="meshgrid", examples=(
        example("M", "N"), example("M", "N", indexing="ij"), example("M", "N", "K"))),
    _of(diag, "diag", "Tensor.diag", numpy="diag", examples=(
        example("M"), example("M M"), example("M=4 N=3", -1))),
)  # fmt: skip
