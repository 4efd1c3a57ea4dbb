"""What statements of one iteration of a running tile program can read: tiles and rings of loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

from blockbuster.emit.interpret.memory import Path
from blockbuster.emit.interpret.scope import Scope
from blockbuster.emit.interpret.slots import Ring
from blockbuster.emit.tile.program import Tile
from blockbuster.interp.layout import Array
from blockbuster.ir.types import Dim


class Lead(NamedTuple):
    """The axes of a lead, its total before, what is folded into it, and its total behind that."""

    axes: Sequence[Dim]
    old: Array
    own: Array
    new: Array


@final
@dataclass
class Total:
    """An accumulator, as wide as the semantics adds up, and the iteration that it belongs to."""

    array: Array
    path: Path


@final
@dataclass(frozen=True)
class Arrived:
    """The tile of an iteration, where a load that ran ahead brought it."""

    array: Array
    ring: Ring
    iteration: int


Tiles = dict[Tile, Array | Total | Arrived]


@dataclass
class Frame:
    """The tiles that statements of one iteration see, and the rings of its loop, by token."""

    scope: Scope
    tiles: Tiles = field(default_factory=dict)
    numbers: dict[Tile, Array] = field(default_factory=dict)
    """What tiles hold, from which bounds of loops are computed: under any semantics."""
    rings: dict[str, Ring] = field(default_factory=dict)
    iteration: int = 0
    later: Callable[[int], Scope | None] = lambda _: None

    def inside(
        self,
        scope: Scope,
        rings: dict[str, Ring],
        iteration: int,
        later: Callable[[int], Scope | None],
    ) -> Frame:
        """The frame of an iteration of a loop here."""
        tiles, numbers = dict(self.tiles), dict(self.numbers)
        return Frame(scope, tiles, numbers, rings, iteration, later)
