"""Functions that join arrays, cut them, or reorder their elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from blockbuster.errors import a_kind
from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.at_positions import as_slice, expect_on_axis
from blockbuster.frontend.functions.cuts import cut, roll, torch_roll
from blockbuster.frontend.functions.filled import alike
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.functions.shapes import (
    FREE,
    broadcast_to,
    expand_dims,
    ravel,
    reshape,
)
from blockbuster.frontend.in_place import IN_NUMPY, IN_TORCH, library
from blockbuster.frontend.kinds import FLOAT, MASK, WHOLES, dtype_of_kind
from blockbuster.frontend.memory import own, perhaps, shown
from blockbuster.frontend.moves import Flip, Take
from blockbuster.frontend.shapes import axes_of, listed
from blockbuster.frontend.sizes import fixed, rest
from blockbuster.frontend.source import trace_error
from blockbuster.frontend.taking import positions_of
from blockbuster.frontend.torch import is_tensor


def concat(arrays: Sequence[Array], axis: int = -1) -> Array:
    """Arrays joined along an axis; their other axes are the same.

    Free where it is returned, where a pointwise function or a product reads it beside arrays that
    are joined in the same way, in a sum over the axis, and where a product of batches, or of a
    matrix with it on the right, has at most eight parts as rows or columns: a cache of keys and
    a new one. A rolled axis, and an axis with a number around it, are views, as those of ``roll``
    and ``pad``. Elsewhere it is a copy, which ``program.notes`` names.
    """
    return apply("concat", *arrays, axis=axis)


def concatenate(arrays: Sequence[Array], axis: int = 0) -> Array:
    """``concat`` with NumPy's default: along the first axis if none is given."""
    return apply("concat", *arrays, axis=axis)


def stack(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Arrays of one shape joined along a new axis."""
    for array in arrays:
        if not hasattr(array, "shape"):
            raise trace_error(f"stack joins arrays, and {a_kind(array)} is none")
    return apply("concat", *(expand_dims(array, axis) for array in arrays), axis=axis)


def vstack(arrays: Sequence[Array]) -> Array:
    """``concat`` along the first axis; a number and an array of one axis are rows."""
    return apply("concat", *(of_axes(array, 2) for array in arrays), axis=0)


def hstack(arrays: Sequence[Array]) -> Array:
    """``concat`` along the second axis, or along the only one of vectors and numbers."""
    parts = [of_axes(array, 1) for array in arrays]
    return apply("concat", *parts, axis=0 if len(parts[0].shape) == 1 else 1)


def of_axes(x: Array, count: int) -> Array:
    """The array with axes of one element in front, if it has fewer than ``count``."""
    return x[(None,) * (count - len(x.shape))] if len(x.shape) < count else x


def split(x: Array, parts: int | Sequence[Any], axis: int = 0) -> list[Array]:
    """An axis cut into a number of equal parts, or at given positions."""
    (at,) = axes_of("split", axis, len(x.shape))
    extent = x.shape[at]
    if isinstance(parts, int):
        if rest(extent, parts):
            raise trace_error(f"split of {extent} elements into {parts} equal parts")
        ends: list[Any] = [extent * n // parts for n in range(parts)]
    else:
        ends = [0, *parts]
    return [cut(x, at, start, stop) for start, stop in pairwise([*ends, None])]


def chunk(x: Array, chunks: int, axis: int = 0) -> list[Array]:
    """An axis cut into a number of parts of one size; the last one may be smaller."""
    (at,) = axes_of("chunk", axis, len(x.shape))
    extent = x.shape[at]
    if rest(extent, chunks):
        size = (extent + chunks - 1) // chunks
        return split(x, [size * n for n in range(1, fixed(-(-extent // size)))], axis)
    return split(x, chunks, axis)


def unbind(x: Array, axis: int = 0) -> list[Array]:
    """The arrays along an axis of known size, without that axis."""
    (at,) = axes_of("unbind", axis, len(x.shape))
    return [x[(*(slice(None),) * at, n)] for n in range(fixed(x.shape[at]))]


def diff(x: Array, n: int = 1, axis: int = -1) -> Array:
    """The differences of elements side by side along an axis, ``n`` times over."""
    (at,) = axes_of("diff", axis, len(x.shape))
    made = x
    for _ in range(n):
        later, sooner = cut(made, at, 1, None), cut(made, at, 0, -1)
        made = later != sooner if getattr(x, "kind", "") == MASK else later - sooner
    return perhaps(x, x, "diff of no steps copies tensors alone") if n == 0 else made


def flip(x: Array, axis: int | Sequence[int] | None = None) -> Array:
    """The elements of some axes, or of all, in reverse order."""
    axes = axes_of("flip", range(len(x.shape)) if axis is None else axis, len(x.shape))
    if not isinstance(x, TracedArray):
        return Flip(axes)(x)
    made = x.trace.custom(Flip(axes), (x,), x.axes, str(Flip(axes)), x.kind)
    known = library(x.trace)
    if known == IN_NUMPY:
        return shown(made, x, lambda base: flip(base, axes), lambda _, new: flip(new, axes))
    return made if known == IN_TORCH else perhaps(made, x, "flip copies tensors alone")


def fliplr(x: Array) -> Array:
    """``flip`` of the second axis."""
    return flip(x, 1)


def flipud(x: Array) -> Array:
    """``flip`` of the first axis."""
    return flip(x, 0)


def torch_flip(x: Array, dims: Any, *more: int) -> Array:
    """``flip`` as torch spells it: the axes one by one, or as a tuple."""
    return own(flip(x, (*dims, *more) if isinstance(dims, tuple | list) else (dims, *more)))


def tile(x: Array, reps: int | Sequence[int]) -> Array:
    """The whole array repeated a number of times along each axis."""
    times = (reps,) if isinstance(reps, int) else tuple(reps)
    rank = max(len(times), len(x.shape))
    x = reshape(x, (*(1,) * (rank - len(x.shape)), *x.shape))
    for axis, count in enumerate((*(1,) * (rank - len(times)), *times)):
        x = _repeated(x, count, axis, axis) if count != 1 else x
    return own(x)


def repeat(x: Array, repeats: int, axis: int | None = None) -> Array:
    """Each element repeated a number of times, next to each other."""
    if axis is None:
        return repeat(ravel(x), repeats, 0)
    (at,) = axes_of("repeat", axis, len(x.shape))
    return _repeated(x, repeats, at + 1, at)


def tiled(x: Array, *reps: Any) -> Array:
    """``tile`` as torch's tensors spell it: the numbers one by one, or as a tuple."""
    return tile(x, listed(reps))


def _repeated(x: Array, count: Any, place: int, axis: int) -> Array:
    """``x`` with a new axis of ``count`` elements at ``place``, merged into ``axis``."""
    new = expand_dims(x, place)
    shape = [*x.shape]
    whole = broadcast_to(new, [*shape[:place], count, *shape[place:]])
    return own(reshape(whole, (*shape[:axis], count * shape[axis], *shape[axis + 1 :])))


def constant(x: Array, shape: Sequence[Any], value: Any) -> Array:
    """One number everywhere, in the library and dtype of ``x``."""
    if is_tensor(x):
        return x.new_full(shape, value)
    if isinstance(x, TracedArray):
        return alike(x, shape, value)
    return np.full(shape, value, x.dtype)


def take(x: Array, indices: Array, axis: int | None = None) -> Array:
    """The elements at ``indices`` along an axis, or of the flattened array (None).

    Indices along the first axis of a matrix are the rows of an embedding.
    """
    indices = positions_of(indices)
    if axis is None:
        x, axis = ravel(x), 0
    (at,) = axes_of("take", axis, len(x.shape))
    traced = [given for given in (x, indices) if isinstance(given, TracedArray)]
    if not traced:
        return Take(at)(x, indices)
    trace = traced[0].trace
    expect_on_axis(x, at, indices, "take")
    x = trace.array(x)
    if (steps := as_slice(x, at, indices)) is not None:
        return own(x[(*(slice(None),) * at, steps)])
    indices = trace.array(indices)
    if x.kind == MASK:
        return take(apply("add", x, 0), indices, at) != 0
    if indices.kind not in WHOLES:
        kinds = f"{x.kind} elements at {indices.kind} positions"
        raise trace_error(f"take of {kinds}", hint="positions are integers: ids.astype(np.int64)")
    shape = (*x.axes[:at], *indices.axes, *x.axes[at + 1 :])
    if x.kind == FLOAT:
        return trace.custom(Take(at), (x, indices), shape, str(Take(at)))
    met = np.result_type(*(np.dtype(dtype_of_kind(each.kind)) for each in (x, indices)))
    found = trace.custom(Take(at), (x, indices), shape, str(Take(at)), met.name)
    return found if met.name == x.kind else found.astype(dtype_of_kind(x.kind))


def torch_take(x: Array, index: Array) -> Array:
    """``take`` as torch spells it: of the flattened tensor."""
    return take(x, index)


def index_select(x: Array, axis: int, index: Array) -> Array:
    """``take`` as torch spells it."""
    expect_on_axis(x, axis, index, "index_select", from_end=False)
    return take(x, index, axis)


def embedding(indices: Array, weight: Array) -> Array:
    """The rows of ``weight`` at ``indices``."""
    expect_on_axis(weight, 0, indices, "embedding", from_end=False)
    return take(weight, indices, 0)


def indexed(x: Array, key: Any) -> Array:
    """``x[key]`` as torch spells it, where ``x`` is a tensor that was captured."""
    return x[key]


_GROUP = "Joins, cuts and orders"
_CALL = "A library's function runs between kernels."


def _concat(arrays: Sequence[Any], axis: int = -1) -> Any:
    return np.concatenate(arrays, axis)


ROWS = (
    Row(concat, _GROUP, examples=(example(("M N", "M K")),), reference=_concat, note=FREE),
    Row(concatenate, _GROUP, ("concatenate", "concat"), (), ("cat", "concat", "concatenate"),
        (example(("M N", "K N")), example(("M N", "M K"), axis=1)), note=FREE),
    Row(stack, _GROUP, ("stack",), torch=("stack",), note=FREE,
        examples=(example(("M N", "M N")), example(("M N", "M N", "M N"), axis=-1))),
    Row(vstack, _GROUP, ("vstack",), torch=("vstack", "row_stack"), note=FREE,
        examples=(example(("M N", "N")), example(("N", "N")))),
    Row(hstack, _GROUP, ("hstack",), torch=("hstack",), note=FREE,
        examples=(example(("M N", "M K")), example(("N", "K")))),
    Row(split, _GROUP, ("split",), note=FREE,
        examples=(example("M L", 3, axis=1), example("L N", (2, 4)))),
    Row(chunk, _GROUP, note=FREE,
        examples=(example("M L", 3, -1),), reference=np.split),
    Row(unbind, _GROUP, torch=("unbind", "Tensor.unbind"), note=FREE,
        examples=(example("H M N"), example("M N", 1)),
        reference=lambda x, axis=0: [*np.moveaxis(x, axis, 0)]),
    Row(diff, _GROUP, ("diff",), torch=("diff", "Tensor.diff"),
        examples=(example("M N"), example("M N", axis=0), example("M N", n=2))),
    Row(flip, _GROUP, ("flip",),
        examples=(example("M N"), example("B M N", (0, 2)), example("M N", axis=1))),
    Row(fliplr, _GROUP, ("fliplr",), torch=("fliplr", "Tensor.fliplr"),
        examples=(example("M N"),)),
    Row(flipud, _GROUP, ("flipud",), torch=("flipud", "Tensor.flipud"),
        examples=(example("M N"),)),
    Row(roll, _GROUP, ("roll",), note=FREE,
        examples=(example("M N", 1, 0), example("M N", -2, axis=1),
                  example("M N", (1, 1), (0, 1)))),
    Row(torch_flip, _GROUP, torch=("flip", "Tensor.flip"), public=False,
        examples=(example("M N", 0, 1), example("M N", (1,))),
        reference=lambda x, *axes: np.flip(x, axes[0] if len(axes) == 1 else axes)),
    Row(torch_roll, _GROUP, torch=("roll", "Tensor.roll"), public=False,
        examples=(example("M N", (1, -1), (0, 1)),), reference=np.roll),
    Row(tile, _GROUP, ("tile",), torch=("tile",), note=FREE,
        examples=(example("M N", (2, 3)), example("N", 2), example("N", (2, 1)))),
    Row(tiled, _GROUP, torch=("Tensor.repeat", "Tensor.tile"), public=False,
        examples=(example("M N", 2, 1),), reference=lambda x, *reps: np.tile(x, reps)),
    Row(repeat, _GROUP, ("repeat",), note=FREE,
        torch=("repeat_interleave", "Tensor.repeat_interleave"),
        examples=(example("M N", 2, axis=0), example("B M N", 3, 1), example("M N", 2))),
    Row(take, _GROUP, ("take",), ("take",), note=_CALL,
        examples=(example("N K", "int: B M", axis=0),)),
    Row(torch_take, _GROUP, torch=("take", "Tensor.take"), public=False,
        examples=(example("M N", "int: B"),), reference=np.take),
    Row(index_select, _GROUP, torch=("index_select", "Tensor.index_select"), public=False,
        examples=(example("M N", 1, "int: B"),), reference=lambda x, axis, i: np.take(x, i, axis)),
    Row(embedding, _GROUP, torch=("nn.functional.embedding",), note=_CALL,
        examples=(example("int: B M", "N K"),), reference=lambda i, w: np.take(w, i, 0)),
    Row(indexed, _GROUP, torch=("Tensor.__getitem__",), public=False,
        examples=(example("N K", "int: B"),), reference=lambda x, i: x[i]),
)  # fmt: skip
