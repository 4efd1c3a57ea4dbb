"""Legality predicates of the move ``chunk``: which loops can be cut into chunks."""

from __future__ import annotations

from blockbuster.emit.tile.cut import Body
from blockbuster.emit.tile.dataflow import folded, reads
from blockbuster.emit.tile.program import Fold, For, Init, Store, statements


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
    started = [s.target for s in (*before, *statements(loop.body)) if isinstance(s, Init)]
    totals = totals_of(loop, before)
    if reason := not_apart(before) or not_side_by_side(loop):
        return reason
    for fold in inside:
        for tile in folded(fold):
            if tile not in started:
                return f"{tile.name} does not start beside the loop"
    for fold in totals:
        for tile in folded(fold):
            if tile in reads(loop.body):
                return f"{tile.name} is read in the loop, before it is complete"
            if sum(folded(s).count(tile) for s in statements((*before, loop, *behind))) > 1:
                return f"{tile.name} is folded at two places"
            if tile.per_lane:
                return f"{tile.name} has an entry per lane"
    return ""


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
