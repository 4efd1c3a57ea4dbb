"""Combining the accumulators of a loop's chunks into one result: in one tile, or chunk by chunk.

In one tile, an accumulator is loaded with one entry per chunk behind each of its elements, and
these entries are reduced: all loads are under way at once. Chunk by chunk, each accumulator is
folded with the loop's own fold statement, groups that share a running exponent included: this holds
no more values at once than the loop does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import folded
from blockbuster.emit.tile.program import Chunks, Fold, For, Init, Let, Load, Stmt, Tile, View
from blockbuster.ir.ops import ROW_FOLDS, Functional, Pointwise
from blockbuster.ir.origin import Origin

Views = Mapping[Tile, View]


def combined(
    fold: Fold,
    views: Views,
    chunks: Chunks,
    names: Iterator[str],
    origin: Origin,
    *,
    at_once: str,
) -> list[Stmt]:
    """Statements that make the accumulators of ``fold`` from the workspaces ``views``.

    ``at_once``: which of them in one tile, in the words of a schedule.
    """
    if not AT_ONCE[at_once](fold):
        return _at_once(fold, views, chunks, names, origin)
    return _one_by_one(fold, views, chunks, names, origin)


def not_in_one_tile(fold: Fold) -> str:
    """Why partial results of ``fold`` cannot be combined in one tile each, or ""."""
    for member in fold.members:
        if not set(fold.target.axes) <= set(member.target.axes):
            return f"{member.target.name} lacks an axis of {fold.target.name}"
    return ""


def no_rows(fold: Fold) -> str:
    """Why partial results of ``fold`` cannot lie side by side in the rows of one tile, or ""."""
    block = next((tile.name for tile in folded(fold) if len(tile.axes) > 1), "")
    return f"{block} is a block" if block else not_in_one_tile(fold)


AT_ONCE: Mapping[str, Callable[[Fold], str]] = {
    "": lambda fold: f"{fold.target.name} is combined chunk by chunk",
    "at once": no_rows,
    "all at once": not_in_one_tile,
}
"""By the words of a schedule: why partial results of a fold are not combined in one tile, or ""."""


def _loaded(tile: Tile, view: View, names: Iterator[str], origin: Origin) -> Load:
    hint = f"{tile.hint}_chunks" if tile.hint else ""
    return Load(Tile(next(names), tile.axes, hint, dtype=view.buffer.dtype), view, origin)


def _at_once(
    fold: Fold, views: Views, chunks: Chunks, names: Iterator[str], origin: Origin
) -> list[Stmt]:
    def chunks_of(tile: Tile) -> Load:
        view = views[tile]
        dims = tuple(chunks.lanes if d == chunks.number else d for d in view.dims)
        load = _loaded(tile, changed(view, dims=dims), names, origin)
        return changed(load, target=changed(load.target, axes=(*tile.axes, chunks.lanes)))

    def reduced(target: Tile, monoid: str, rows: Tile) -> Let:
        return Let(target, Functional(ROW_FOLDS[monoid]), (rows,), origin)

    leads = chunks_of(fold.target)
    made: list[Stmt] = [leads, reduced(fold.target, fold.monoid, leads.target)]
    parts, wholes = [leads.target], [fold.target]
    for member in fold.members:
        load = chunks_of(member.target)
        axes = load.target.axes
        scaled = Tile(next(names), axes, dtype=member.target.dtype)
        args = (load.target, *(each[at] for each in (parts, wholes) for at in member.leads))
        made += [
            load,
            Let(scaled, Pointwise(member.factor, axes), args, origin),
            reduced(member.target, member.monoid, scaled),
        ]
        parts.append(load.target)
        wholes.append(member.target)
    return made


def _one_by_one(
    fold: Fold, views: Views, chunks: Chunks, names: Iterator[str], origin: Origin
) -> list[Stmt]:
    monoids = {fold.target: fold.monoid, **{m.target: m.monoid for m in fold.members}}
    loads = {tile: _loaded(tile, views[tile], names, origin) for tile in monoids}
    members = tuple(changed(m, value=loads[m.target].target) for m in fold.members)
    again = changed(fold, value=loads[fold.target].target, members=members, origin=origin)
    return [
        *(Init(tile, monoid) for tile, monoid in monoids.items()),
        For(chunks.number, False, (*loads.values(), again), origin),
    ]
