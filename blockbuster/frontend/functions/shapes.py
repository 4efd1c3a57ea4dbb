"""Functions that move elements and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.numerics import NUMPY


def transpose(x: Array, axes: Sequence[int] | None = None) -> Array:
    """The axes of ``x`` in another order; reversed if none is given."""
    return x.transpose(axes) if isinstance(x, TracedArray) else apply("transpose", x, axes=axes)


def swapaxes(x: Array, axis1: int, axis2: int) -> Array:
    """Two axes exchanged."""
    return x.swapaxes(axis1, axis2)


def expand_dims(x: Array, axis: int) -> Array:
    """A new axis of one element before axis ``axis``, or as the last one for -1."""
    before = axis if axis >= 0 else axis + len(x.shape) + 1
    return x[(*(slice(None),) * before, None)]


def reshape(x: Array, shape: Any, *more: Any) -> Array:
    """The elements in order under other axes: ints, sizes, their products, one -1.

    Splits and merges of axes are free where ``concat`` is.
    """
    entries = (*shape, *more) if isinstance(shape, tuple | list) else (shape, *more)
    if isinstance(x, TracedArray):
        return x.trace.reshape(x, entries)
    return apply("reshape", x, shape=entries)


def concat(arrays: Sequence[Array], axis: int = -1) -> Array:
    """Arrays one behind the other along an axis; their other axes are the same.

    Free where it is returned, where a pointwise function or a product reads it next to others that
    are joined alike, and in a sum over the axis; elsewhere a copy, which ``program.notes`` names.
    """
    return apply("concat", *arrays, axis=axis)


def concatenate(arrays: Sequence[Array], axis: int = 0) -> Array:
    """``concat`` as NumPy spells it: along the first axis if none is given."""
    return apply("concat", *arrays, axis=axis)


def split_heads(x: Array, h: int) -> Array:
    """(..., S, H*E) as (..., H, S, E) with H = ``h``: a view of an input or of a product."""
    return apply("split_heads", x, heads=h)


def merge_heads(x: Array) -> Array:
    """(..., H, S, E) as (..., S, H*E), the inverse of ``split_heads``."""
    return apply("merge_heads", x)


_GROUP = "Shapes"
_FREE = "Free where the array is an input, a result or a product; else a copy."


def _concat(arrays: Sequence[Any], axis: int = -1) -> Any:
    return np.concatenate(arrays, axis)


ROWS = (
    Row(transpose, _GROUP, ("transpose", "permute_dims"), torch=("permute",),
        examples=(example("M N"), example("B M N", axes=(1, 2, 0)))),
    Row(swapaxes, _GROUP, ("swapaxes",), torch=("swapaxes", "swapdims", "transpose"),
        examples=(example("B M N", -1, 0),)),
    Row(expand_dims, _GROUP, ("expand_dims",), torch=("unsqueeze", "Tensor.unsqueeze"),
        examples=(example("M N", 0), example("M N", axis=-1))),
    Row(reshape, _GROUP, ("reshape",), ("reshape", "view"), ("reshape",),
        (example("M L", (-1, 2, 3)), example("B M N", (6, 4)), example("B M N", 2, -1)),
        reference=lambda x, *shape: np.reshape(x, shape if len(shape) > 1 else shape[0]),
        note=_FREE),
    Row(concat, _GROUP, examples=(example(("M N", "M K")),), reference=_concat, note=_FREE),
    Row(concatenate, _GROUP, ("concatenate", "concat"), (), ("cat", "concat", "concatenate"),
        (example(("M N", "K N")), example(("M N", "M K"), axis=1)), note=_FREE),
    Row(split_heads, _GROUP, examples=(example("M N=6", 3),), note=_FREE,
        reference=lambda x, h: NUMPY["split_heads"](x, heads=h)),
    Row(merge_heads, _GROUP, examples=(example("H M N"),), reference=NUMPY["merge_heads"],
        note=_FREE),
)  # fmt: skip
