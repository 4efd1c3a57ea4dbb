"""Counts of a tile program's arithmetic, from trip counts; its oracle is a counting run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blockbuster.emit.tile.extents import Extents, Loops
from blockbuster.emit.tile.program import For, Let, Stmt, Tile, TileProgram
from blockbuster.emit.tile.trips import blocks_in, bound_blocks
from blockbuster.ir.expr import calls
from blockbuster.ir.ops import Functional, Pointwise
from blockbuster.ir.types import Dim


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
    """The operations of all nests but for folds, one per element; sizes as for ``tile_traffic``.

    Ragged blocks count with the elements that they have, entries per lane as those of their dim.
    """
    blocks, found = bound_blocks(program, sizes, block_sizes), Arithmetic()
    for nest in program.nests:
        extents = Extents(nest, sizes, blocks_in(nest, blocks))
        found += _of_body(nest.body, extents.grid, extents)
    return found


def _of_body(body: tuple[Stmt, ...], loops: Loops, extents: Extents) -> Arithmetic:
    found = Arithmetic()
    for stmt in body:
        if isinstance(stmt, For):
            found += _of_body(stmt.body, extents.inside(stmt, loops), extents)
        elif isinstance(stmt, Let):
            found += _of_let(stmt, loops, extents)
    return found


def _of_let(stmt: Let, loops: Loops, extents: Extents) -> Arithmetic:
    def times(*tiles: Tile) -> int:
        dims = dict.fromkeys(dim for tile in tiles for dim in tile.axes)
        return extents.elements(dims, loops)

    match stmt.op:
        case Functional("dot"):
            return Arithmetic(matrix=2 * times(*stmt.args))
        case Functional():
            return Arithmetic(vector=times(stmt.args[0]))
        case Pointwise(expr, _):
            return Arithmetic(vector=calls(expr) * times(stmt.target))
        case _:
            return Arithmetic()
