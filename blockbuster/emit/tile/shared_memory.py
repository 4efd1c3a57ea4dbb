"""The peak of a kernel's shared memory: the sum of what lies there at the same time.

- Each slot of a ring, while its loop runs. The awaited iteration has a slot of its own only if
  matrix units read it there: other readers have it in registers before the next load starts. If
  programs take several places of a grid, all the time: the loads of the next place begin before
  this place's results are stored.
- What the loads of a loop over places bring ahead, all the time.
- A tile that is loaded for dots, from its load to the last dot that reads it.
- An operand of dots that is computed, unless it has the layout that matrix units require of their
  first operand.
- Both parts of the second operand of a split dot, while it runs.
- For the time of one statement: values that warps reduce together, and tiles that change their
  layout, because they meet a tile of another layout or are stored in one.

``layouts.py`` defines the layouts of tiles. tests/costs/test_shared_memory.py compares with Triton.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blockbuster.emit.tile.dataflow import defined
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.layouts import (
    HOPPER,
    VECTOR,
    WARP,
    WORD,
    Layout,
    Layouts,
    inward,
    layouts_of,
    of_lanes,
)
from blockbuster.emit.tile.program import (
    Await,
    For,
    Issue,
    Let,
    Load,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.ops import Cast, Functional, Scan
from blockbuster.ir.views import dims_along

PARTS = 2
"""Parts of a split dot's second operand, which matrix units read from shared memory."""


@dataclass(frozen=True)
class Held:
    """Bytes that lie in shared memory from one statement up to another, both included."""

    first: int
    last: int
    bytes: int


def shared_bytes(program: TileProgram, nest: Nest, target: str = HOPPER) -> int:
    """Bytes that a program of the grid of ``nest`` takes; ``program`` has dtypes."""
    return shared_by(layouts_of(program, nest, target))


def shared_by(layouts: Layouts) -> int:
    """The same, where it is known how the tiles of the nest lie."""
    held = list(_Memory(layouts).held())
    begun = {one.first for one in held}
    return max((sum(h.bytes for h in held if h.first <= at <= h.last) for at in begun), default=0)


def tile_bytes(tile: Tile, tiling: Tiling) -> int:
    """Bytes of all lanes of a tile."""
    width = MEMORY[tile.dtype].bytes if tile.dtype in MEMORY else WORD
    return width * tiling.elements(tile)


class _Memory:
    """What a nest holds in shared memory; ``order`` has its statements with the loops around."""

    def __init__(self, layouts: Layouts) -> None:
        nest, self.layouts = layouts.nest, layouts
        self.tiling, self.uses = layouts.tiling, layouts.uses
        self.order: list[tuple[Stmt, tuple[int, ...]]] = []
        self.ends: dict[int, int] = {}
        self._number(nest.body, ())
        self.at = {defined(stmt): at for at, (stmt, _) in enumerate(self.order)}
        awaits = (s for s in statements(nest.body) if isinstance(s, Await))
        self.arrived = {stmt.token: stmt.target for stmt in awaits}
        self._always = (0, len(self.order) - 1)

    def _number(self, body: tuple[Stmt, ...], loops: tuple[int, ...]) -> None:
        for stmt in body:
            at = len(self.order)
            self.order.append((stmt, loops))
            if isinstance(stmt, For):
                self._number(stmt.body, (*loops, at))
                self.ends[at] = len(self.order) - 1

    def held(self) -> Iterator[Held]:
        """All that lies there, and when."""
        nest = self.layouts.nest
        for at, (stmt, loops) in enumerate(self.order):
            match stmt:
                case Issue():
                    span = (loops[-1], self.ends[loops[-1]])
                    yield Held(*(self._always if nest.programs else span), self._ring(stmt))
                case Load(target) if nest.stages:
                    ahead = nest.stages - 1
                    yield Held(*self._always, ahead * tile_bytes(target, self.tiling))
                case Load(target) if any(self._dots_of(target)):
                    yield self._until_read(target, at)
                case Let(target, Cast()) if self._in_memory(target):
                    yield self._until_read(target, at)
                case Let() if is_matrix_dot(stmt, self.tiling):
                    if stmt.split and self.layouts.grouped(stmt):
                        yield Held(at, at, PARTS * tile_bytes(stmt.args[1], self.tiling))
                case Let(target, Functional(), args):
                    yield Held(at, at, self._reduced(target, args[0]))
                case Let(target, Scan()):
                    yield Held(at, at, self._totals(target))
                case Let():
                    yield Held(at, at, self._converted(stmt))
                case Store():
                    yield Held(at, at, self._stored(stmt))

    def _ring(self, stmt: Issue) -> int:
        dots = [use for use, _ in self.uses.of(self.arrived[stmt.token])]
        kept = any(isinstance(d, Let) and not d.split and self._is_grouped(d) for d in dots)
        return tile_bytes(stmt.tile, self.tiling) * (stmt.ahead + (1 if kept else 0))

    def _is_grouped(self, stmt: Let) -> bool:
        return is_matrix_dot(stmt, self.tiling) and self.layouts.grouped(stmt)

    def _until_read(self, tile: Tile, at: int) -> Held:
        """A tile from the statement that makes it to the last dot, or the end of the dot's loop."""
        last = at
        for use in self._dots_of(tile):
            place = next(n for n, (stmt, _) in enumerate(self.order) if stmt is use)
            outer = [loop for loop in self.order[place][1] if loop > at]
            last = max(last, self.ends[outer[0]] if outer else place)
        return Held(at, last, tile_bytes(tile, self.tiling))

    def _dots_of(self, tile: Tile) -> list[Stmt]:
        """The dots that read a tile as it is."""
        return [use for use, _ in self.uses.of(tile) if is_matrix_dot(use, self.tiling)]

    def _in_memory(self, tile: Tile) -> bool:
        """True if a computed operand of a dot passes through shared memory."""
        dots = [(u, at) for u, at in self.uses.of(tile) if is_matrix_dot(u, self.tiling)]
        layout = self.layouts.known.get(tile)
        rows = layout is not None and not layout.dense and layout.warps_along(tile.axes[-1]) == 1
        return any(at == 1 or not rows for _, at in dots)

    def _reduced(self, target: Tile, tile: Tile) -> int:
        layout = self.layouts.known.get(tile)
        lanes = self.tiling.lanes(tile)
        if layout is None or not lanes:
            return 0
        kept = self.tiling.lanes(target)
        parts = layout.warps_along(*(dim for dim in lanes if dim not in kept))
        return WORD * parts * self.layouts.lanes(*kept) if parts > 1 else 0

    def _totals(self, tile: Tile) -> int:
        """Bytes of the totals of warps in a scan: one for each row and piece that a lane has."""
        layout, lanes = self.layouts.known.get(tile), self.tiling.lanes(tile)
        if layout is None or not lanes or layout.warps_along(lanes[-1]) < 2:
            return 0
        pieces = self.layouts.lanes(*lanes) // (layout.neighbours(lanes[-1]) * WARP)
        return WORD * max(1, pieces)

    def _converted(self, stmt: Let) -> int:
        """Bytes of the largest operand that meets one of another layout."""
        met = self.layouts.known.get(stmt.target)
        at_once = WORD if self.layouts.target == HOPPER else VECTOR
        found = (self._moved(tile, met, WORD, at_once) for tile in stmt.args)
        return max(found, default=0)

    def _stored(self, stmt: Store) -> int:
        lanes = self.tiling.lanes(stmt.value)
        width = MEMORY[stmt.view.buffer.dtype].bytes
        order = [dim for dim in inward(stmt.view, stmt.value) if dim in lanes]
        if not order:
            return 0
        dense = order[-1] in dims_along(stmt.view.dims[-1])
        to = self.layouts.blocked(
            order, self.layouts.neighbours(stmt.view, stmt.value) if dense else 1
        )
        words = self.layouts.target == HOPPER and width < WORD  # as stmatrix writes them
        return self._moved(stmt.value, to, width, WORD if words else VECTOR)

    def _moved(self, tile: Tile, to: Layout | None, width: int, at_once: int) -> int:
        """Bytes that pass through shared memory when a tile takes another layout.

        Lanes of a warp exchange theirs without it. Digits that one lane holds before and after are
        taken in turns, but for those of the bytes that it moves at once.
        """
        layout, lanes = self.layouts.known.get(tile), self.tiling.lanes(tile)
        if layout is None or to is None or not layout.crosses(to, lanes):
            return 0
        both = of_lanes(layout.registers, lanes) & of_lanes(to.registers, lanes)
        turns = max(0, len(both) - (at_once // width).bit_length() + 1)
        return width * self.layouts.lanes(*lanes) >> turns
