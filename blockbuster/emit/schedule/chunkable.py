"""Legality predicates of the move ``chunk``: which loops can be cut into chunks."""

from __future__ import annotations

from itertools import product

import numpy as np

from blockbuster.emit.tile.chains import chained
from blockbuster.emit.tile.cut import Body
from blockbuster.emit.tile.dataflow import folded, reads
from blockbuster.emit.tile.program import Fold, For, Init, Member, Store, statements
from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Float64
from blockbuster.ir.expr import arguments

LEADS = ((0.5, 1.0), (1.0, 1.5), (1.5, 4.0))
"""Numbers of leads, each step at least as large as that before: maxima and sums grow."""
ITEMS = (0.0, 0.75, 3.0)


def totals_of(loop: For, before: Body) -> list[Fold]:
    """The folds of ``loop`` into accumulators that start ``before`` it."""
    started = [stmt.target for stmt in before if isinstance(stmt, Init)]
    folds = (stmt for stmt in statements(loop.body) if isinstance(stmt, Fold))
    return [fold for fold in folds if fold.target in started]


def not_side_by_side(loop: For) -> str:
    """Why what iterations of ``loop`` store cannot be stored side by side, or ""."""
    for stmt in statements(loop.body):
        if isinstance(stmt, Store) and loop.dim not in stmt.view.runs:
            return f"all its iterations store {stmt.view.buffer.name} at one place"
    return ""


def not_chunkable(loop: For, before: Body, behind: Body) -> str:
    """Why ``loop``, between ``before`` and ``behind``, cannot be run in chunks, or ""."""
    inside = [stmt for stmt in statements(loop.body) if isinstance(stmt, Fold)]
    if loop.within:
        return f"the loop over {loop.dim} has one iteration"
    started = [s.target for s in (*before, *statements(loop.body)) if isinstance(s, Init)]
    totals = totals_of(loop, before)
    if reason := chained(loop) or not_apart(before) or not_side_by_side(loop):
        return reason
    for fold in inside:
        for tile in folded(fold):
            if tile not in started:
                return f"{tile.name} does not start beside the loop"
        if fold in totals and not all(map(combines, fold.members)):
            return f"what {fold.target.name} rescales is not known to combine"
    for fold in totals:
        for tile in folded(fold):
            if tile in reads(loop.body):
                return f"{tile.name} is read in the loop, before it is complete"
            if sum(folded(s).count(tile) for s in statements((*before, loop, *behind))) > 1:
                return f"{tile.name} is folded at two places"
            if tile.per_lane:
                return f"{tile.name} has an entry per lane"
    return ""


def combines(member: Member) -> bool:
    """True if, at some numbers, it does not matter over which leads a partial result is taken.

    From leads r to r2, and on to r3, is as from r to r3: else chunks would change the result. A
    lead whose r the factor does not read is the same number throughout.
    """
    count, read = len(member.leads), arguments(member.factor)
    steps = [np.array([*product(values, repeat=count)]).T for values in LEADS]
    for lead in range(count):
        if 1 + lead not in read:
            steps[1][lead] = steps[2][lead] = steps[0][lead]
    items = np.array(ITEMS)[:, None]

    def taken(x: Array, old: Array, new: Array) -> Array:
        args = (x, *old, *new)
        return np.asarray(Float64.expression(member.factor, args, lambda _: 7))

    with np.errstate(all="ignore"):
        at_once = taken(items, steps[0], steps[2])
        by_way = taken(taken(items, steps[0], steps[1]), steps[1], steps[2])
    return bool(np.allclose(at_once, by_way, rtol=1e-9, atol=0, equal_nan=True))


def not_apart(before: Body) -> str:
    """Why what stands ``before`` a loop cannot run in a nest of its own, or ""."""
    started = [stmt.target for stmt in statements(before) if isinstance(stmt, Init)]
    for stmt in statements(before):
        for tile in folded(stmt):
            if tile not in started:
                return f"{tile.name}, which starts outside, is folded before the loop"
            if tile.per_lane and any(isinstance(s, Init) and s.target == tile for s in before):
                return f"{tile.name}, which has an entry per lane, would cross to another kernel"
    return ""
