"""What the loops of a tile program say about its dims: which default tiles suit them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from blockbuster.emit.schedule.block import LEAST
from blockbuster.emit.tile.float8_dots import LEAST_DEPTH, in_float8
from blockbuster.emit.tile.layouts import inward
from blockbuster.emit.tile.program import For, Let, Load, Stmt, TileProgram
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Shape:
    """What the loops of a program say about its dims."""

    dots: dict[Dim, None]  # take part in a matrix dot
    summed: dict[Dim, None]  # of these, those that a dot sums over
    kept: dict[Dim, None]  # of these, those that a dot's result has
    columns: dict[Dim, None]  # last axis of a block
    rows: dict[Dim, None]  # first axis of a block
    serial: dict[Dim, None]  # walked by a serial loop
    repeated: dict[Dim, None]  # cut into blocks, work that does not depend on them is done again
    read_again: dict[Dim, None]  # likewise, all blocks that a serial loop loads are loaded again
    unlooped: dict[Dim, None]  # axis of a tile that no loop surrounds
    across: dict[Dim, None]  # last axis of a block, but not of the array that it is loaded from
    deep: dict[Dim, None]  # summed by dots of float8, which take more lanes at least

    def least(self, dim: Dim) -> int:
        """The fewest lanes of a dim."""
        return LEAST_DEPTH if dim in self.deep else LEAST if dim in self.dots else 1

    def is_line(self, dim: Dim) -> bool:
        """True if serial loops over ``dim`` read rows of memory, and what they give is a result.

        A loop over rows that adds up all elements sums lane by lane, and lanes at its end.
        """
        others = {**self.dots, **self.across, **self.repeated}
        return dim in self.serial and dim in self.columns and dim not in others


def shape_of(program: TileProgram, tiling: Tiling) -> Shape:
    """What all loops of ``program`` say about its dims."""
    shape = Shape(*({} for _ in range(11)))
    for nest in program.nests:
        _note(nest.body, (), shape, tiling)
    return shape


def _note(body: tuple[Stmt, ...], loops: tuple[For, ...], shape: Shape, tiling: Tiling) -> None:
    for stmt in body:
        if isinstance(stmt, For):
            if not stmt.parallel:
                shape.serial.setdefault(stmt.dim)
                if any(not loop.parallel for loop in loops):
                    shape.repeated.setdefault(stmt.dim)
            _note(stmt.body, (*loops, stmt), shape, tiling)
        elif isinstance(stmt, Let | Load):
            _note_tile(stmt, loops, shape, tiling)


def _note_tile(stmt: Let | Load, loops: tuple[For, ...], shape: Shape, tiling: Tiling) -> None:
    walked = [loop.dim for loop in loops]
    lanes = tiling.lanes(stmt.target)
    shape.unlooped.update(dict.fromkeys(d for d in lanes if d not in walked))
    if len(lanes) == 2:
        shape.rows.setdefault(lanes[0])
        shape.columns.setdefault(lanes[1])
        if isinstance(stmt, Load) and inward(stmt.view, stmt.target)[-1] != lanes[1]:
            shape.across.setdefault(lanes[1])
        if isinstance(stmt, Load):
            again = (d for d in _around_serial(loops) if d not in lanes and not tiling.is_unit(d))
            shape.read_again.update(dict.fromkeys(again))
    if isinstance(stmt, Let) and is_matrix_dot(stmt, tiling):
        dims = dict.fromkeys(d for arg in stmt.args for d in tiling.lanes(arg))
        shape.dots.update(dims)
        shape.kept.update(dict.fromkeys(lanes))
        summed = dict.fromkeys(d for d in dims if d not in lanes)
        shape.deep.update(summed if in_float8(stmt) else {})
        shape.summed.update(summed)
        shape.repeated.update(dict.fromkeys(d for d in walked if d not in dims))


def _around_serial(loops: Sequence[For]) -> Iterator[Dim]:
    """The dims of parallel loops that stand around a serial one."""
    serial = [at for at, loop in enumerate(loops) if not loop.parallel]
    return (loop.dim for loop in loops[: serial[-1] if serial else 0] if loop.parallel)
