"""Which tiles of a kernel the matrix units read, which the arithmetic units, and which both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from blockbuster.emit.tile.dataflow import operands
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import For, Let, Nest, Stmt, Tile, TileProgram, statements
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.typed import takes_matrix_units
from blockbuster.ir.ops import Cast
from blockbuster.ir.types import Dim

SWIZZLED = 64  # lanes of two bytes that the widest swizzle takes


def is_matrix_dot(stmt: Stmt, tiling: Tiling) -> bool:
    """True if ``stmt`` is a dot of two blocks, which the matrix units take."""
    return isinstance(stmt, Let) and takes_matrix_units(stmt, tiling.units)


def matrix_dots(body: Body, tiling: Tiling) -> tuple[Let, ...]:
    """The dots of two blocks in ``body``, those in its loops included, in order."""
    return _matrix_dots(Same(body), tiling.units)


@lru_cache(maxsize=2 * KEPT)  # of bodies, and of loops
def _matrix_dots(body: Same[Body], units: tuple[Dim, ...]) -> tuple[Let, ...]:
    lets = (stmt for stmt in statements(body.one) if isinstance(stmt, Let))
    return tuple(let for let in lets if takes_matrix_units(let, units))


@lru_cache(maxsize=KEPT)
def _readers(body: Same[Body]) -> Mapping[Tile, Sequence[tuple[Stmt, int]]]:
    """The statements that read each tile of a body, with the operand position."""
    found: dict[Tile, list[tuple[Stmt, int]]] = {}
    for stmt in statements(body.one):
        for index, operand in enumerate(operands(stmt)):
            found.setdefault(operand, []).append((stmt, index))
    return found


def has_exact_dots(program: TileProgram) -> bool:
    """True if a dot takes float32: products of float8 alone do not, whatever is made of them."""
    tiling = Tiling({}, program.units)
    dots = (dot for nest in program.nests for dot in matrix_dots(nest.body, tiling))
    return any(arg.dtype == FLOAT for dot in dots for arg in dot.args)


@dataclass(frozen=True)
class Uses:
    """Per tile of one nest: each statement that reads it, once per operand position."""

    nest: Nest
    tiling: Tiling

    def of(self, tile: Tile) -> Sequence[tuple[Stmt, int]]:
        """The statements that read ``tile``, with the operand position."""
        return self._readers.get(tile, ())

    @cached_property
    def _readers(self) -> Mapping[Tile, Sequence[tuple[Stmt, int]]]:
        return _readers(Same(self.nest.body))

    def behind_casts(self, tile: Tile) -> list[tuple[Stmt, int]]:
        """The same, but the readers of what it is cast to instead of a cast."""
        found = list[tuple[Stmt, int]]()
        for stmt, index in self.of(tile):
            if isinstance(stmt, Let) and isinstance(stmt.op, Cast):
                found += self.behind_casts(stmt.target)
            else:
                found.append((stmt, index))
        return found

    def only_in_dots(self, tile: Tile) -> bool:
        """True if every use is as an operand of a matrix dot, as it is or cast."""
        uses = self.behind_casts(tile)
        return bool(uses) and all(is_matrix_dot(stmt, self.tiling) for stmt, _ in uses)

    def dots_of_several_widths(self) -> bool:
        """True if matrix dots of narrow dtypes may swizzle their operands in several ways.

        A tile's rows are swizzled by as many bytes as they have, up to those of ``SWIZZLED``
        lanes. Which axis is a row is known at launch only, so both are looked at.
        """
        dots = matrix_dots(self.nest.body, self.tiling)
        operands_ = [arg for dot in dots for arg in dot.args]
        blocks = [self.tiling.blocks[d] for arg in operands_ for d in self.tiling.lanes(arg)]
        return len(dots) > 1 and len({min(block, SWIZZLED) for block in blocks}) > 1

    def fewest_rows(self) -> int:
        """The fewest lanes down the result of a matrix dot; 0 if there is none."""
        dots = matrix_dots(self.nest.body, self.tiling)
        rows = [self.tiling.blocks[self.tiling.lanes(dot.target)[0]] for dot in dots]
        return min(rows, default=0)

    def mixed(self) -> bool:
        """True if a loop reads an array both for a matrix dot and for arithmetic.

        Triton's software pipeliner then overwrites the tile while the matrix units still read it
        (a silent race, whichever of its two reads came first): such a kernel must not be pipelined.
        """
        loops = (stmt for stmt in statements(self.nest.body) if isinstance(stmt, For))
        return any(self.read_in_two_ways(loop) for loop in loops)

    def read_in_two_ways(self, loop: For) -> str:
        """The name of an array that ``loop`` reads both for matrix dots and otherwise, or ""."""
        found: dict[str, str] = {}
        for tile, view in arrivals(loop.body):
            for use, _ in self.of(tile):
                way = self._way(use)
                if found.setdefault(view.buffer.name, way) != way:
                    return view.buffer.name
        return ""

    def _way(self, use: Stmt) -> str:
        if is_matrix_dot(use, self.tiling):
            return "dot"
        if isinstance(use, Let) and isinstance(use.op, Cast) and self.only_in_dots(use.target):
            return "a cast for dots"
        return "arithmetic"
