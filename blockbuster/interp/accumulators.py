"""Folds over the iterations of a map, alone or in groups that share an exponent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from blockbuster.interp.layout import Array, Nested
from blockbuster.interp.semantics import Semantics, Shape, SizeOf
from blockbuster.ir.expr import Expr
from blockbuster.ir.ops import Collect, Rescale, Result
from blockbuster.ir.types import Dim, Type


def folded(
    results: Sequence[Result],
    columns: Sequence[list[Nested]],
    types: Sequence[Type],
    semantics: Semantics,
    size: SizeOf,
    stack: Shape = (),
) -> Sequence[Nested]:
    """A map's results over one iteration or more: lists stay, others are folded.

    ``columns`` are what the iterations give for each, ``types`` those of what it becomes. The first
    iteration gives the start, so no identity is needed. ``stack``: the leading axes of items, which
    belong to many runs of the map.
    """
    wide = semantics.accumulator
    made: list[Nested] = list(columns)
    running: dict[int, list[Array]] = {}
    for port, result in enumerate(results):
        if isinstance(result, Collect):
            continue
        parts = [wide.item(item) for item in columns[port]]
        fold = partial(wide.fold, result.monoid)
        if isinstance(result, Rescale):
            own = [wide.item(item) for item in columns[result.lead]]
            axes = types[port].axes, types[result.lead].axes
            rescaled = partial(_rescaled, wide, size, result.factor, *axes, stack)
            totals = parts[:1]
            for at, (before, joint) in enumerate(pairwise(running[result.lead]), 1):
                old, new = rescaled(totals[-1], before, joint), rescaled(parts[at], own[at], joint)
                totals.append(fold(old, new))
        else:
            totals = [*accumulate(parts, fold)]
        running[port] = totals
        made[port] = semantics.item(totals[-1])
    return made


def _rescaled(
    wide: Semantics,
    size: SizeOf,
    factor: Expr,
    axes: Sequence[Dim],
    lead_axes: Sequence[Dim],
    stack: Shape,
    part: Array,
    own: Array,
    joint: Array,
) -> Array:
    """A partial value, made to go with the joint lead instead of its own."""
    leads = aligned(own, lead_axes, axes), aligned(joint, lead_axes, axes)
    return np.asarray(wide.expression(factor, (part, *leads), size, stack))


def aligned(item: Array, axes: Sequence[Dim], target: Sequence[Dim]) -> Array:
    """An item with the axes ``target``: missing ones have extent 1, others are dropped.

    Axes in front of ``axes``, along which items are stacked, stay.
    """
    lead = item.ndim - len(axes)
    extents = dict(zip(axes, item.shape[lead:], strict=True))
    for dim, extent in extents.items():
        if dim not in target and extent != 1:
            raise ValueError(f"axis {dim} of extent {extent} is dropped: only extent 1 can be")
    return item.reshape([*item.shape[:lead], *(extents.get(d, 1) for d in target)])
