"""Folds of windows side by side in two axes, recorded as torch's pools are.

    x.reshape(m, h // 2, 2, w // 2, 2).max((2, 4))      the maximum of x[:, 0::2, 0::2],
                                                        x[:, 0::2, 1::2], x[:, 1::2, 0::2] and
                                                        x[:, 1::2, 1::2]

An axis of two elements behind another such axis makes tiles that are mostly padding. A window in
one axis alone stays the fold of a split axis, which reads an array once.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from blockbuster.frontend.array import TracedArray, apply, array_at
from blockbuster.frontend.contractions import equation_of
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.limits import FACTORS, UNROLLED
from blockbuster.frontend.operation import Operation
from blockbuster.frontend.regrouping import parts_of
from blockbuster.frontend.sizes import fixed
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Length, whole

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace

POOLED = {"sum": "add", "mean": "add", "max": "maximum", "min": "minimum"}
"""The operator that folds the elements of a window."""

@dataclass(frozen=True)
class _Windows:
    """Windows of an array: their extent along each axis that they cut."""

    array: TracedArray
    extents: Mapping[int, int]


def as_pool(asked: Operation) -> TracedArray | None:
    """The pool over two or more axes whose last fold this is; None if it is the last of none."""
    trace, op, (x,), params, _ = asked
    if params["keepdims"] or not isinstance(x, TracedArray) or x.kind != FLOAT:
        return None
    found = _windows(trace, op, x, params["axis"] % x.ndim)
    if found is None or len(found.extents) < 2 or found.array.kind != FLOAT:
        return None  # of a mask, pieces would be joined by "or"
    total = math.prod(found.extents.values())
    if total > UNROLLED:
        return None
    pieces = [found.array]
    for axis, extent in sorted(found.extents.items()):
        key = (slice(None),) * axis
        pieces = [p[(*key, slice(at, None, extent))] for p in pieces for at in range(extent)]
    made = functools.reduce(functools.partial(apply, POOLED[op]), pieces)
    made = made * (1.0 / total) if op == "mean" else made
    kept = [size for at, size in enumerate(x.shape) if at != params["axis"] % x.ndim]
    pooled: TracedArray = made.reshape(kept)
    return pooled


def as_factors(asked: Operation) -> TracedArray | None:
    """The product along an axis of few elements, factor by factor: an axis that short makes tiles
    that are mostly padding. None for a longer axis, and for one of unknown length.
    """
    (x,), params = asked.operands, asked.params
    if not -x.ndim <= params["axis"] < x.ndim:
        return None  # refused where it is recorded
    axis = params["axis"] % x.ndim
    dims, own = asked.trace.dims, x.axes[axis]
    if x.kind != FLOAT or dims.has(own, FACTORS + 1) is not False or not dims.has(own, 1):
        return None
    before = (slice(None),) * axis
    places = (slice(at, at + 1) if params["keepdims"] else at for at in range(fixed(x.shape[axis])))
    found: TracedArray = functools.reduce(operator.mul, (x[(*before, at)] for at in places))
    return found


def _windows(trace: Trace, op: str, x: TracedArray, axis: int) -> _Windows | None:
    """The windows that a fold of ``x`` along an axis folds; None if it folds others.

    A chain of folds of a reshape: each axis that they fold has to be the inner part of an axis that
    the reshape splits in two.
    """
    folded, equation = [axis], equation_of(x)
    while equation is not None and equation.op == op and not equation.param("keepdims"):
        x = array_at(trace, _only(equation.operands))
        at = equation.param("axis") % x.ndim
        folded = [*(one + (one >= at) for one in folded), at]
        equation = equation_of(x)
    if equation is None or equation.op != "reshape":
        return None
    base = array_at(trace, _only(equation.operands))
    extents = _inner_parts(_lengths(trace, base.axes), _lengths(trace, x.axes), folded)
    if extents is None:
        return None
    return _of_windows(trace, op, base, extents) or _Windows(base, extents)


def _only(operands: Sequence[Any]) -> Value:
    (value,) = operands
    assert isinstance(value, Value)
    return value


def _lengths(trace: Trace, axes: Sequence[Any]) -> list[Length]:
    return [trace.dims.length(axis) for axis in axes]


def _inner_parts(
    old: Sequence[Length], new: Sequence[Length], folded: Sequence[int]
) -> dict[int, int] | None:
    """The extents of the folded axes of a reshape by the axis that each is the inner part of."""
    parts = parts_of(old, new)
    if parts is None:
        return None
    found = {}
    for axis in folded:
        mine = [part for part in parts if part.new == axis]
        if len(mine) != 1:
            return None
        beside = [part for part in parts if part.old == mine[0].old]
        outer, extent = beside[:-1], mine[0].length.constant
        if not outer or beside[-1] is not mine[0] or extent is None:
            return None
        if any(part.new in folded for part in outer):
            return None
        found[mine[0].old] = extent
    return found


def _of_windows(
    trace: Trace, op: str, base: TracedArray, extents: Mapping[int, int]
) -> _Windows | None:
    """The windows of another array, if ``base`` is a fold of windows whose shape it kept."""
    equation = equation_of(base)
    if equation is None or equation.op != op or equation.param("keepdims"):
        return None
    x = array_at(trace, _only(equation.operands))
    inner = _windows(trace, op, x, equation.param("axis") % x.ndim)
    if inner is None or inner.array.ndim != base.ndim:
        return None
    made = [length.over(whole(inner.extents.get(at, 1)))
            for at, length in enumerate(_lengths(trace, inner.array.axes))]  # fmt: skip
    if made != _lengths(trace, base.axes):
        return None
    both = {*inner.extents, *extents}
    total = {at: inner.extents.get(at, 1) * extents.get(at, 1) for at in both}
    return _Windows(inner.array, total)
