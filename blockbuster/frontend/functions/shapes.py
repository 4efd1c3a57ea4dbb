"""Functions that change axes and keep the elements."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.functions.filled import everywhere
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.in_place import IN_NUMPY, IN_TORCH, library
from blockbuster.frontend.memory import own, perhaps, shown
from blockbuster.frontend.shapes import axes_of, listed
from blockbuster.frontend.sizes import rest
from blockbuster.frontend.source import trace_error
from blockbuster.frontend.torch import is_tensor


def transpose(x: Array, axes: Sequence[int] | None = None) -> Array:
    """The axes of ``x`` in another order; reversed if none is given."""
    return x.transpose(axes) if isinstance(x, TracedArray) else apply("transpose", x, axes=axes)


def swapaxes(x: Array, axis1: int, axis2: int) -> Array:
    """Two axes exchanged."""
    return x.swapaxes(axis1, axis2)


def moveaxis(x: Array, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """One or several axes moved to other positions; the others keep their order."""
    rank = len(x.shape)
    froms, tos = (axes_of("moveaxis", given, rank) for given in (source, destination))
    if len(froms) != len(tos):
        raise trace_error(f"moveaxis moves {len(froms)} axes to {len(tos)} places")
    order = [axis for axis in range(rank) if axis not in froms]
    for at, axis in sorted(zip(tos, froms, strict=True)):
        order.insert(at, axis)
    return transpose(x, tuple(order))


def expand_dims(x: Array, axis: int | Sequence[int]) -> Array:
    """New axes of one element: before axis ``axis``, or as the last one for -1."""
    rank = len(x.shape) + (1 if isinstance(axis, int) else len(axis))
    new = axes_of("expand_dims", axis, rank)
    return x[tuple(None if at in new else slice(None) for at in range(rank))]


def squeeze(x: Array, axis: int | Sequence[int] | None = None) -> Array:
    """The array without ``axis``, or without all axes of one element."""
    if is_tensor(x):
        return x.squeeze() if axis is None else x.squeeze(axis)
    if not isinstance(x, TracedArray):
        return np.squeeze(x, axis)
    units = [at for at in range(x.ndim) if x.trace.dims.is_unit(x.axes[at])]
    gone = units if axis is None else axes_of("squeeze", axis, x.ndim)
    for at in gone:
        if at not in units:
            shown = x.trace.dims.show(x.axes)
            hint = 'give the axis the size 1: bb.trace(fn, x="M 1")'
            raise trace_error(f"axis {at} of {shown} is not known to have one element", hint=hint)
    kept = tuple(0 if at in gone else slice(None) for at in range(x.ndim))
    return x[(*kept, ...)] if gone else x  # with ... it is a view, also of no axes


def reshape(x: Array, shape: Any, *more: Any) -> Array:
    """The elements in order under other axes: ints, sizes, their products, and one -1.

    Splits and merges of axes are free in the same places as ``concat``.
    """
    entries = (*shape, *more) if isinstance(shape, tuple | list) else (shape, *more)
    if isinstance(x, TracedArray):
        return x.trace.reshape(x, entries)
    return apply("reshape", x, shape=entries)


def ravel(x: Array) -> Array:
    """All elements in order, along one axis."""
    return perhaps(reshape(x, -1), x, "ravel gives a view of some layouts and a copy of others")


def view(x: Array, shape: Any, *more: Any) -> Array:
    """``reshape`` of a tensor, which is always a view."""
    made = reshape(x, shape, *more)
    if made is x or not isinstance(x, TracedArray):
        return made
    extents = x.shape
    return shown(
        made, x, lambda base: reshape(base, shape, *more), lambda _, new: reshape(new, extents)
    )


def flatten(x: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    """The axes from ``start_dim`` to ``end_dim`` merged into one."""
    shape = x.shape
    rank = max(len(shape), 1)
    (first,), (last,) = (axes_of("flatten", axis, rank) for axis in (start_dim, end_dim))
    merged = functools.reduce(operator.mul, shape[first : last + 1], 1)
    made = reshape(x, (*shape[:first], merged, *shape[last + 1 :]))
    here = IN_TORCH if is_tensor(x) else IN_NUMPY
    known = library(x.trace) if isinstance(x, TracedArray) else here
    if known == IN_NUMPY:
        return own(made)
    return made if known == IN_TORCH else perhaps(made, x, "flatten copies an array of NumPy's")


def unflatten(x: Array, axis: int, sizes: Sequence[Any]) -> Array:
    """An axis split into several of these sizes, of which one may be -1."""
    (at,) = axes_of("unflatten", axis, len(x.shape))
    return reshape(x, (*x.shape[:at], *sizes, *x.shape[at + 1 :]))


def is_unit(x: Array, axis: int) -> bool:
    """True if an axis is known to have one element."""
    if isinstance(x, TracedArray):
        return x.trace.dims.is_unit(x.axes[axis])
    return bool(x.shape[axis] == 1)


def has_elements(x: Array, axis: int) -> bool:
    """False if an axis is known to have none."""
    if isinstance(x, TracedArray):
        return x.trace.dims.has(x.axes[axis], 1) is not False
    return bool(x.shape[axis])


def broadcast_to(x: Array, shape: Sequence[Any]) -> Array:
    """``x`` repeated along axes where it has one element, or none; -1 keeps an axis."""
    missing = len(shape) - len(x.shape)
    own = (*(1,) * missing, *x.shape)
    full = [own[at] if isinstance(s, int) and s == -1 else s for at, s in enumerate(shape)]
    if is_tensor(x):
        return x.expand(*full)
    if not isinstance(x, TracedArray):
        return np.broadcast_to(x, full)
    if missing < 0:
        raise trace_error(f"an array of {x.ndim} axes has no shape of {len(full)}")
    units = [at < missing or x.trace.dims.is_unit(x.axes[at - missing]) for at in range(len(full))]
    for at, (unit, extent) in enumerate(zip(units, full, strict=True)):
        if not unit:
            x.trace.keeps_extent(x, at - missing, extent)
    old = reshape(x, [1 if unit else extent for unit, extent in zip(units, full, strict=True)])
    made = everywhere(old, [e if unit else 1 for unit, e in zip(units, full, strict=True)])
    return shown(made, x, lambda base: broadcast_to(base, full))


def expand(x: Array, *sizes: Any) -> Array:
    """``broadcast_to`` as torch's tensors spell it: the extents one by one, or as a tuple."""
    return broadcast_to(x, listed(sizes))


def split_heads(x: Array, h: int) -> Array:
    """(..., S, H*E) as (..., H, S, E) with H = ``h``: a view of an input or of a product."""
    if not isinstance(h, int) or isinstance(h, bool) or h < 1:
        raise trace_error(f"the number of heads is {h!r}", hint="it is a positive int: 8")
    if len(x.shape) < 2:
        raise trace_error("heads are split off (..., rows, heads * columns)")
    if rest(x.shape[-1], h):
        raise trace_error(f"an axis of {x.shape[-1]} does not split into {h} heads")
    return swapaxes(unflatten(x, -1, (h, -1)), -2, -3)


def merge_heads(x: Array) -> Array:
    """(..., H, S, E) as (..., S, H*E), the inverse of ``split_heads``."""
    if len(x.shape) < 3:
        raise trace_error("heads are merged from (..., heads, rows, columns)")
    *leading, heads, rows, columns = x.shape
    return reshape(swapaxes(x, -2, -3), (*leading, rows, heads * columns))


_GROUP = "Shapes"
FREE = "Free where the array is an input, a result or a product; else a copy."

ROWS = (
    Row(transpose, _GROUP, ("transpose", "permute_dims"), torch=("permute",),
        examples=(example("M N"), example("B M N", axes=(1, 2, 0)))),
    Row(swapaxes, _GROUP, ("swapaxes",), torch=("swapaxes", "swapdims", "transpose"),
        examples=(example("B M N", -1, 0),)),
    Row(moveaxis, _GROUP, ("moveaxis",), torch=("moveaxis", "movedim", "Tensor.movedim"),
        examples=(example("B M N", 0, -1), example("B M N", (0, 2), (1, 0)))),
    Row(expand_dims, _GROUP, ("expand_dims",), torch=("unsqueeze", "Tensor.unsqueeze"),
        examples=(example("M N", 0), example("M N", axis=-1), example("M N", (0, 2)))),
    Row(squeeze, _GROUP, ("squeeze",), ("squeeze",), ("squeeze",),
        (example("M=1 N", 0), example("M=1 N K=1"))),
    Row(view, _GROUP, (), ("view",), examples=(example("M L", -1, 2, 3),), public=False, note=FREE,
        reference=lambda x, *shape: np.reshape(x, shape)),
    Row(reshape, _GROUP, ("reshape",), ("reshape",), ("reshape",),
        (example("M L", (-1, 2, 3)), example("B M N", (6, 4)), example("B M N", (2, -1))),
        note=FREE),
    Row(ravel, _GROUP, ("ravel",), ("ravel",), ("ravel",), (example("M N"),), note=FREE),
    Row(flatten, _GROUP, (), ("flatten",), ("flatten",),
        (example("B M N"), example("B M N", 1), example("B M N", 0, 1)), note=FREE,
        reference=lambda x, first=0, last=-1: np.reshape(
            x, (*x.shape[:first], -1, *x.shape[last % x.ndim + 1 :]))),
    Row(unflatten, _GROUP, (), (), ("unflatten", "Tensor.unflatten"), note=FREE,
        examples=(example("M L", 1, (2, 3)), example("M L", -1, (-1, 2))),
        reference=lambda x, axis, sizes: np.reshape(x, (x.shape[0], *sizes))),
    Row(broadcast_to, _GROUP, ("broadcast_to",), torch=("broadcast_to", "Tensor.broadcast_to"),
        examples=(example("M=1 N", (3, 4)), example("N", (2, 3, 4)))),
    Row(expand, _GROUP, torch=("Tensor.expand",), examples=(example("M=1 N", 3, -1),),
        reference=lambda x, rows, _: np.broadcast_to(x, (rows, x.shape[1])), public=False),
    Row(split_heads, _GROUP, examples=(example("M N=6", 3),), note=FREE,
        reference=lambda x, h: np.swapaxes(np.reshape(x, (*x.shape[:-1], h, -1)), -2, -3)),
    Row(merge_heads, _GROUP, examples=(example("H M N"),), note=FREE,
        reference=lambda x: np.reshape(np.swapaxes(x, -2, -3), (*x.shape[:-3], x.shape[-2], -1))),
)  # fmt: skip
