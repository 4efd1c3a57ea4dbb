"""What the chunks of a loop accumulated becomes one result: in one tile, or chunk by chunk.

An accumulator that is a number or a vector is loaded with an entry per chunk in every row, and its
rows are reduced. A block of numbers, or what would not fit in registers so, is folded chunk by
chunk: with the statement that the loop itself has, groups that share a running exponent included.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from blockbuster.emit.schedule.defer_lane_sums import MOST, REDUCTION
from blockbuster.emit.tile.program import Chunks, Fold, For, Init, Let, Load, Stmt, Tile, View
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.ir.ops import Functional, Pointwise
from blockbuster.ir.origin import Origin

Views = Mapping[Tile, View]


def combined(
    fold: Fold,
    views: Views,
    chunks: Chunks,
    tiling: Tiling,
    names: Iterator[str],
    origin: Origin,
) -> list[Stmt]:
    """Statements that make the accumulators of ``fold`` from the workspaces ``views``."""
    tiles = (fold.target, *(member.target for member in fold.members))
    rows = all(len(t.axes) < 2 and set(fold.target.axes) <= set(t.axes) for t in tiles)
    lanes = max(math.prod(tiling.blocks[d] for d in tiling.lanes(tile)) for tile in tiles)
    if rows and lanes * chunks.count <= MOST:
        return _at_once(fold, views, chunks, names, origin)
    return _one_by_one(fold, views, chunks, names, origin)


def _loaded(tile: Tile, view: View, names: Iterator[str], origin: Origin) -> Load:
    hint = f"{tile.hint}_chunks" if tile.hint else ""
    return Load(Tile(next(names), tile.axes, hint, dtype=view.buffer.dtype), view, origin)


def _at_once(
    fold: Fold, views: Views, chunks: Chunks, names: Iterator[str], origin: Origin
) -> list[Stmt]:
    def chunks_of(tile: Tile) -> Load:
        view = views[tile]
        dims = tuple(chunks.lanes if d == chunks.number else d for d in view.dims)
        load = _loaded(tile, replace(view, dims=dims), names, origin)
        return replace(load, target=replace(load.target, axes=(*tile.axes, chunks.lanes)))

    def reduced(target: Tile, monoid: str, rows: Tile) -> Let:
        return Let(target, Functional(REDUCTION[monoid]), (rows,), origin)

    leads = chunks_of(fold.target)
    made: list[Stmt] = [leads, reduced(fold.target, fold.monoid, leads.target)]
    for member in fold.members:
        load = chunks_of(member.target)
        axes = load.target.axes
        scaled = Tile(next(names), axes, dtype=member.target.dtype)
        args = (load.target, leads.target, fold.target)
        made += [
            load,
            Let(scaled, Pointwise(member.factor, axes), args, origin),
            reduced(member.target, member.monoid, scaled),
        ]
    return made


def _one_by_one(
    fold: Fold, views: Views, chunks: Chunks, names: Iterator[str], origin: Origin
) -> list[Stmt]:
    monoids = {fold.target: fold.monoid, **{m.target: m.monoid for m in fold.members}}
    loads = {tile: _loaded(tile, views[tile], names, origin) for tile in monoids}
    members = tuple(replace(m, value=loads[m.target].target) for m in fold.members)
    again = replace(fold, value=loads[fold.target].target, members=members, origin=origin)
    return [
        *(Init(tile, monoid) for tile, monoid in monoids.items()),
        For(chunks.number, False, (*loads.values(), again), origin),
    ]
