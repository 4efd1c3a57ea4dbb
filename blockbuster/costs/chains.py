"""How many chains of dots a loop's body has that do not wait for one another.

What one block of rows needs is a chain: a dot, the values computed from its result, the next dot.
Two blocks of rows in one program (``jam``) have two, and while the values of one are computed, the
matrix units have dots of the other, as if two programs ran side by side.
"""

from __future__ import annotations

from functools import lru_cache

from blockbuster.emit.tile.dataflow import defined, folded, operands
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import Await, For, Let, Load, Stmt, Tile
from blockbuster.emit.tile.typed import takes_matrix_units
from blockbuster.ir.types import Dim


def chains_in(body: Body, units: tuple[Dim, ...]) -> int:
    """The number of groups of statements of ``body``, with dots in them, that share no tile which
    one of them makes or folds: at least 1. Inner loops are not looked into. ``units``: dims whose
    blocks are elements.
    """
    return _chains_in(Same(body), units)


@lru_cache(maxsize=KEPT)
def _chains_in(body: Same[Body], units: tuple[Dim, ...]) -> int:
    stmts = [stmt for stmt in body.one if not isinstance(stmt, For)]
    own = {tile for stmt in stmts for tile in _changed(stmt)}
    group: dict[Tile, int] = {}
    members: dict[int, set[Tile]] = {}
    dotted: set[int] = set()
    for number, stmt in enumerate(stmts):
        tiles = {tile for tile in (*operands(stmt), *_changed(stmt)) if tile in own}
        joined = {group[tile] for tile in tiles if tile in group}
        members[number] = tiles.union(*(members.pop(old) for old in joined))
        group.update(dict.fromkeys(members[number], number))
        if takes_matrix_units(stmt, units) or not dotted.isdisjoint(joined):
            dotted = (dotted - joined) | {number}
    return max(1, len(dotted))


def _changed(stmt: Stmt) -> tuple[Tile, ...]:
    """The tiles that ``stmt`` computes; what is loaded, several chains may read."""
    made = defined(stmt)
    if made is None or isinstance(stmt, Load | Await):
        return folded(stmt)
    into = (stmt.into,) if isinstance(stmt, Let) and stmt.into else ()
    return (made, *folded(stmt), *into)
