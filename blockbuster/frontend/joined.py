"""Joins that are one view of an array: an axis that is rolled, or has a number around it.

    concat(x[n - 3:], x[:n - 3])       where(i < 3, x at i + n - 3, x at i - 3)
    concat(zeros, x)                   x at i - 3, zeros outside

A join is read part by part, so that each part of a result is stored by a kernel of its own. What
reads a view is one kernel, as is what reads ``pad``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from blockbuster.frontend.primitives import MIXED, Apply, Ref, Round
from blockbuster.frontend.program import Axis
from blockbuster.frontend.push import Pieces
from blockbuster.frontend.strips import Cut, Windows
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.expr import Arg, Call, Const, Expr, call
from blockbuster.ir.lengths import ONE, ZERO, Length, clamped
from blockbuster.ir.types import Dim

Parted = tuple[Ref, int, Cut]
"""An array, an axis of it and a piece of that axis."""


def as_one_view(
    recorder: Pieces, refs: Sequence[Ref], axis: int, dim: Axis, *, cuts: Mapping[Ref, Parted]
) -> Ref | None:
    """The join of ``refs`` along ``axis``, called ``dim`` there, as a view; None if it is none.

    ``cuts``: the pieces that were cut, and of what. The result has the dtype of its parts.
    """
    dtype = recorder.own_dtype(refs[0])
    if dtype == MIXED or not isinstance(dim, str):
        return None
    parts = [cuts[ref] for ref in refs if ref in cuts]
    made = _rolled(recorder, parts, axis, dim) if len(parts) == len(refs) == 2 else None
    made = made or _filled(recorder, refs, axis, dim)
    return recorder.round(made, dtype) if made and dtype not in ("", TRUTH) else made


def _rolled(recorder: Pieces, parts: Sequence[Parted], axis: int, dim: Dim) -> Ref | None:
    """The end of an axis joined to what stands in front of it."""
    (base, at, end), (other, beside, front) = parts
    extent = recorder.length(recorder.shape(base)[at])
    turns = (base, at) == (other, beside) and at == axis and end.step == front.step == 1
    is_end = end.length in (extent - end.start, clamped(extent - end.start))
    if not turns or not is_end or front.start != ZERO or front.length + end.length != extent:
        return None
    ends = _shown(recorder, base, axis, dim, end.length - extent)
    fronts = _shown(recorder, base, axis, dim, end.length)
    if ends is None or fronts is None:
        return None
    return recorder.apply(
        _choice(recorder, base, call("lt", Arg(0), end.length.expr), Arg(1), Arg(2)),
        _places(recorder, base, axis, dim), ends, fronts,
    )  # fmt: skip


def _filled(recorder: Pieces, refs: Sequence[Ref], axis: int, dim: Dim) -> Ref | None:
    """One array with the same number in front of it, behind it, or both."""
    numbers = [_number(recorder, ref) for ref in refs]
    known = dict.fromkeys(number for number in numbers if number is not None)
    arrays = [ref for ref, number in zip(refs, numbers, strict=True) if number is None]
    if len(arrays) != 1 or len(known) != 1 or recorder.own_dtype(arrays[0]) == TRUTH:
        return None
    (x,), (number,) = arrays, known
    before = ZERO
    for ref in refs[: refs.index(x)]:
        before = before + recorder.length(recorder.shape(ref)[axis])
    shown = _shown(recorder, x, axis, dim, before)
    if shown is None:
        return None
    stop = before + recorder.length(recorder.shape(x)[axis])
    inside = call("and", call("ge", Arg(0), before.expr), call("lt", Arg(0), stop.expr))
    place = _places(recorder, x, axis, dim)
    return recorder.apply(call("where", inside, Arg(1), number), place, shown)


def _choice(recorder: Pieces, x: Ref, condition: Expr, one: Expr, other: Expr) -> Expr:
    if recorder.own_dtype(x) != TRUTH:
        return call("where", condition, one, other)
    return call("or", call("and", condition, one), call("and", call("not", condition), other))


def _places(recorder: Pieces, x: Ref, axis: int, dim: Dim) -> Ref:
    """0, 1, ... along ``axis``."""
    return recorder.count(dim).view((0, *(None,) * (len(x.axes) - axis - 1)))


def _shown(recorder: Pieces, x: Ref, axis: int, dim: Dim, before: Length) -> Ref | None:
    """``x`` with its elements moved by ``before`` along an axis of ``dim``; what stands outside is
    undefined. None where that is no view.
    """
    extent = recorder.length(dim)
    piece = Windows(dim, 1, extent, ONE, step=1, dilation=1, before=before, padded=True)
    if x.axes[axis] is None or not recorder.is_free(x, axis, piece):
        return None
    moved = recorder.split(x, axis, piece, len(x.axes))
    return moved.view([0 if at == axis else at + 1 for at in range(len(x.axes))])


def _number(recorder: Pieces, ref: Ref) -> float | None:
    """The number that an array holds everywhere, if it is made as one."""
    primitive = recorder.primitives[ref.value]
    while isinstance(primitive.op, Round):
        primitive = recorder.primitives[primitive.operands[0].value]
    match primitive.op:
        case Apply(Call("where", (_, Const(one), Const(other)))) if one == other:
            is_rounded = primitive is not recorder.primitives[ref.value]
            return one if one in (0, math.inf, -math.inf) or not is_rounded else None
    return None
