"""Statements on other tiles; those for one of two parts of a dim, as ``split-lanes`` and ``jam``
write them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import makes, operands, retargeted
from blockbuster.emit.tile.program import Let, Load, Stmt, Store, Tile, TileProgram, View
from blockbuster.emit.tile.trips import sized
from blockbuster.ir.lengths import Rule
from blockbuster.ir.ops import Pointwise, Transpose
from blockbuster.ir.types import Dim


class Cut(Protocol):
    """Two parts of a dim, which have the dims ``dims``."""

    @property
    def dim(self) -> Dim: ...

    @property
    def dims(self) -> tuple[Dim, Dim]: ...

    def view(self, view: View, part: int) -> View:
        """An access to a part."""
        ...


class TwoParts:
    """What tiles and statements are for a part; the tiles of the first part keep their names."""

    def __init__(self, cut: Cut, names: Iterator[str]) -> None:
        self._cut, self._names = cut, names
        self._tiles: dict[Tile, tuple[Tile, Tile]] = {}

    def tile(self, tile: Tile, part: int) -> Tile:
        """A part of ``tile``; all of it, if it has no axis of the dim."""
        if self._cut.dim not in tile.axes:
            return tile
        if tile not in self._tiles:
            first, second = (
                tuple(new if dim == self._cut.dim else dim for dim in tile.axes)
                for new in self._cut.dims
            )
            renamed = replace(tile, axes=second, name=next(self._names))
            self._tiles[tile] = replace(tile, axes=first), renamed
        return self._tiles[tile][part]

    def stmt(self, stmt: Stmt, part: int) -> Stmt:
        """``stmt``, which holds no other statements, for a part."""
        new = {tile: self.tile(tile, part) for tile in named_in(stmt)}
        return on_tiles(stmt, new, lambda view: self._cut.view(view, part))


def name_taken(program: TileProgram, *rules: Rule) -> str:
    """Why the name of a dim of such a size means something else in ``program``, or ""."""
    taken = [rule.dim for rule in rules if rule.dim in sized(program)]
    if taken and not {*rules} <= {*program.rules}:
        return f"{taken[0]} is a dim of the program already"
    return ""


def with_rules(program: TileProgram, *rules: Rule) -> TileProgram:
    """``program`` with more facts about sizes."""
    return changed(program, rules=tuple(dict.fromkeys((*program.rules, *rules))))


def named_in(stmt: Stmt) -> tuple[Tile, ...]:
    """The tiles that ``stmt`` itself makes, reads, folds or stores."""
    return (*operands(stmt), *makes(stmt))


def has_axis(stmt: Stmt, dim: Dim) -> bool:
    """True if a tile that ``stmt`` itself makes, reads, folds or stores has an axis of ``dim``."""
    return any(dim in tile.axes for tile in named_in(stmt))


def on_tiles(
    stmt: Stmt, new: Mapping[Tile, Tile], other: Callable[[View], View] = lambda view: view
) -> Stmt:
    """``stmt`` with ``new[t]`` for each tile t, and ``other(view)`` for what it accesses."""
    made = retargeted(stmt, new)
    match made:
        case Load(view=view) | Store(view=view):
            return replace(made, view=other(view))
        case Let(target, Pointwise() | Transpose() as op):
            return replace(made, op=replace(op, axes=target.axes))
    return made
