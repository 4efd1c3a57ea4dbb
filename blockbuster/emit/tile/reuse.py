"""Which tile may take another tile's memory: facts for texts in which a tile is its own array.

    t7 = exp(t6)          t7 may take t6's memory: nothing reads t6 from here on
    t8 = row_sum(t7)
    t9 = t7 / t8          t9 takes t7's, or it is made where it is stored: nothing else reads it
    Y[m,:] = t9

Only the result of a pointwise operator or a dot is an array of its own. A loaded tile is a part of
an array, and operators that only relabel, transpose or pass on a tile share its memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blockbuster.emit.tile.dataflow import bodies, loaded, readers_of, reads
from blockbuster.emit.tile.program import Let, Nest, Stmt, Store, Tile
from blockbuster.emit.tile.result_dtypes import WIDTHS
from blockbuster.ir.expr import Call, arguments, is_predicate
from blockbuster.ir.ops import Functional, Pointwise


@dataclass(frozen=True)
class Reuse:
    """Of one nest. ``taken``: the operand whose memory is free for a tile of the same axes and
    dtype. ``stored``: the store that writes a tile, where nothing else reads it.
    """

    taken: Mapping[Tile, Tile] = field(default_factory=dict)
    stored: Mapping[Tile, Store] = field(default_factory=dict)


def reuse_in(nest: Nest) -> Reuse:
    """The tile whose memory each tile of a nest may take; empty for a program without dtypes."""
    readers = readers_of(nest.body)
    taken: dict[Tile, Tile] = {}
    stored: dict[Tile, Store] = {}
    for body in bodies(nest.body):
        last = {tile: at for at, stmt in enumerate(body) for tile in reads((stmt,))}
        made: dict[Tile, int] = {}
        for at, stmt in enumerate(body):
            if isinstance(stmt, Let) and _is_array(stmt):
                made[stmt.target] = at
                for tile in stmt.args if isinstance(stmt.op, Pointwise) else ():
                    alike = (tile.axes, tile.dtype) == (stmt.target.axes, stmt.target.dtype)
                    if alike and tile in made and last[tile] == at and _apart(readers[tile]):
                        taken.setdefault(stmt.target, tile)
            elif isinstance(stmt, Store) and stmt.value in made:
                between = body[made[stmt.value] + 1 : at]
                if readers[stmt.value] == [stmt] and _as_it_lies(stmt, between):
                    stored[stmt.value] = stmt
    return Reuse(taken, stored)


def _is_array(stmt: Let) -> bool:
    """True for an array of its own, with all of its axes."""
    target, op = stmt.target, stmt.op
    if not (target.axes and WIDTHS.get(target.dtype)) or target.per_lane:
        return False
    if not isinstance(op, Pointwise):
        return isinstance(op, Functional)
    if not isinstance(op.expr, Call) or is_predicate(op.expr):
        return False
    read = [stmt.args[at] for at in arguments(op.expr)]
    spanned = {dim for tile in read for dim in tile.axes}
    return spanned >= set(target.axes) and not any(tile.per_lane for tile in read)


def _apart(readers: list[Stmt]) -> bool:
    """True if no reader shares the memory of what it reads."""
    return all(isinstance(r, Store) or (isinstance(r, Let) and _is_apart(r)) for r in readers)


def _is_apart(stmt: Let) -> bool:
    if isinstance(stmt.op, Pointwise):
        return isinstance(stmt.op.expr, Call)
    return isinstance(stmt.op, Functional)


def _as_it_lies(store: Store, between: tuple[Stmt, ...]) -> bool:
    """True if a tile may be made in its place: as it is stored, and nothing reads that before."""
    tile, view = store.value, store.view
    alike = view.sliced(tile) == tile.axes and view.buffer.dtype == tile.dtype
    return alike and view.buffer not in loaded(between)
