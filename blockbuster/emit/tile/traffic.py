"""What a tile program moves and computes, by trip counts. Its oracle is a counting run.

Ragged blocks count with the elements that they have, entries per lane as those of their dim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blockbuster.emit.tile.dataflow import accessed
from blockbuster.emit.tile.extents import Extents, Loops, extents_of
from blockbuster.emit.tile.program import ACCESSES, Let, Tile, TileProgram
from blockbuster.ir.expr import calls
from blockbuster.ir.ops import Functional, Pointwise, Scan
from blockbuster.ir.types import Dim


def elements_moved(extents: Extents) -> int:
    """The elements that a nest loads and stores, over all arrays."""
    return sum(
        extents.elements(stmt.view.sliced(accessed(stmt)), loops)
        for stmt, loops in extents.walk()
        if isinstance(stmt, ACCESSES)
    )


@dataclass(frozen=True)
class Arithmetic:
    """Operations: of matrix units (dots: a multiplication and an addition each) and of others."""

    matrix: int = 0
    vector: int = 0

    def __add__(self, other: Arithmetic) -> Arithmetic:
        return Arithmetic(self.matrix + other.matrix, self.vector + other.vector)


def arithmetic(
    program: TileProgram, sizes: Mapping[Dim, int], block_sizes: Mapping[Dim, int] | None = None
) -> Arithmetic:
    """The operations of all nests but for folds, one per element; sizes as for ``extents_of``."""
    found = Arithmetic()
    for extents in extents_of(program, sizes, block_sizes):
        for stmt, loops in extents.walk():
            if isinstance(stmt, Let):
                found += _of_let(stmt, loops, extents)
    return found


def _of_let(stmt: Let, loops: Loops, extents: Extents) -> Arithmetic:
    def times(*tiles: Tile) -> int:
        return extents.elements(dict.fromkeys(dim for tile in tiles for dim in tile.axes), loops)

    match stmt.op:
        case Functional("dot"):
            return Arithmetic(matrix=2 * times(*stmt.args))
        case Functional() | Scan():
            return Arithmetic(vector=times(stmt.args[0]))
        case Pointwise(expr, _):
            return Arithmetic(vector=calls(expr) * times(stmt.target))
        case _:
            return Arithmetic()
