"""Folds over the iterations of a map, alone or in groups that share an exponent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

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
            own = [[*map(wide.item, columns[lead])] for lead in result.leads]
            steps = [running[lead] for lead in result.leads]
            axes = types[port].axes, [types[lead].axes for lead in result.leads]
            rescaled = partial(_rescaled, wide, size, result.factor, *axes, stack)
            totals = parts[:1]
            for at in range(1, len(parts)):
                before, joint = ([step[place] for step in steps] for place in (at - 1, at))
                new = rescaled(parts[at], [each[at] for each in own], joint)
                totals.append(fold(rescaled(totals[-1], before, joint), new))
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
    lead_axes: Sequence[Sequence[Dim]],
    stack: Shape,
    part: Array,
    own: Sequence[Array],
    joint: Sequence[Array],
) -> Array:
    """A partial value, made to go with the joint leads instead of its own."""
    leads = [
        aligned(lead, of, axes)
        for each in (own, joint)
        for lead, of in zip(each, lead_axes, strict=True)
    ]
    return np.asarray(wide.expression(factor, (part, *leads), size, stack))


def aligned(item: Array, axes: Sequence[Dim], target: Sequence[Dim]) -> Array:
    """An item with the axes ``target``: missing ones have extent 1, others are dropped.

    Axes in front of ``axes``, along which items are stacked, stay.
    """
    if axes == target:
        return item
    lead = item.ndim - len(axes)
    extents = dict(zip(axes, item.shape[lead:], strict=True))
    for dim, extent in extents.items():
        if dim not in target and extent != 1:
            raise ValueError(f"axis {dim} of extent {extent} is dropped: only extent 1 can be")
    return item.reshape([*item.shape[:lead], *(extents.get(d, 1) for d in target)])
