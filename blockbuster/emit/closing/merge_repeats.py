"""merge-repeats: a load or computation that was done just before is not repeated.

before   t2 = load(X[m,:])                after   t2 = load(X[m,:])
         t3 = row_max(t2)                          t3 = row_max(t2)
         t4 = sub0(t2,t3)                          t4 = sub0(t2,t3)
         t5 = row_sum(exp(t4))                     t5 = row_sum(exp(t4))
         t6 = load(X[m,:])                         t8 = row_scale(exp(t4),recip0(t5))
         t7 = sub0(t6,t3)
         t8 = row_scale(exp(t7),recip0(t5))

Loops over a dim that became one block leave such repeats. No tile is kept across a remaining loop:
it would occupy registers meanwhile, and a load after the loop finds its array in a cache. Loads of
arrays that the nest stores, and reads of accumulators, are left alone, because the value may have
changed. ``tidied`` skips nests that load what they store: merging would carry a tile across the
place where they are split.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from blockbuster.emit.tile.dataflow import (
    defined,
    folded,
    rebound,
    renamed,
    same_or,
    stored,
    with_parts,
)
from blockbuster.emit.tile.program import (
    BlockOf,
    Buffer,
    For,
    Guard,
    Iota,
    Let,
    Load,
    Nest,
    Stmt,
    Tile,
    TileProgram,
    statements,
)


def merge_repeats(program: TileProgram) -> TileProgram:
    """``program`` with each tile made once in a stretch of statements without a loop."""
    return replace(program, nests=tuple(map(merged, program.nests)))


def merged(nest: Nest) -> Nest:
    """``nest`` alone."""
    changing: set[Buffer | Tile] = {*stored(nest.body)}
    changing.update(tile for stmt in statements(nest.body) for tile in folded(stmt))
    return with_parts(nest, body=_walked(nest.body, changing, {}))


def _walked(
    body: tuple[Stmt, ...], changing: set[Buffer | Tile], alias: dict[Tile, Tile]
) -> tuple[Stmt, ...]:
    """``body`` without repeats; ``alias`` notes for each of them the tile that it repeats."""
    out: list[Stmt] = []
    made: dict[Hashable, Tile] = {}
    for stmt in body:
        if isinstance(stmt, For):
            loop = rebound(stmt, alias)
            out.append(with_parts(loop, body=_walked(stmt.body, changing, alias)))
            made = {}
            continue
        stmt = renamed(stmt, alias)
        what, target = _made_by(stmt, changing), defined(stmt)
        if what in made and target is not None:
            alias[target] = made[what]
            continue
        if what is not None and target is not None:
            made[what] = target
        out.append(stmt)
    return same_or(body, tuple(out))


def _made_by(stmt: Stmt, changing: set[Buffer | Tile]) -> Hashable | None:
    """Equal for two statements that make the same tile; None for what must not be merged."""
    match stmt:
        case Load(target, view) if view.buffer not in changing:
            return Load, target.axes, view
        case Let(target, op, args) if not changing.intersection(args):
            return Let, target.axes, op, args
        case Iota(target, dim, at=at):
            return Iota, target.axes, dim, at
        case BlockOf(target, dim, value) if value not in changing:
            return BlockOf, target.axes, dim, value
        case Guard(target, value, dim, fill) if value not in changing:
            return Guard, target.axes, value, dim, fill
    return None
