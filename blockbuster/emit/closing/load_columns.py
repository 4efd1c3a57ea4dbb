"""load-columns: a tile that is only the second operand of matrix dots is loaded as columns.

before   t2 = load(KT[n,:])               after   t2 = load(KT[n,:])   as columns
         t3 = dot(t1,t2)                          t3 = dot(t1,t2)

The matrix units multiply rows by columns; a dot of a block program multiplies rows by rows. Without
this pass the tile would be transposed in registers on its way from shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import mapped
from blockbuster.emit.tile.program import Await, Load, Nest, Stmt, Tile, TileProgram
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import Uses, is_matrix_dot


def load_columns(program: TileProgram) -> TileProgram:
    """``program`` with the loads marked whose tiles the matrix units want as columns."""
    return changed(program, nests=tuple(_marked(program)))


def not_columns(tile: Tile, uses: Uses) -> str:
    """Why ``tile`` is wanted as rows, or ""."""
    readers = uses.behind_casts(tile)
    if not readers:
        return f"nothing reads {tile.name}"
    for stmt, position in readers:
        if not is_matrix_dot(stmt, uses.tiling):
            return f"{tile.name} is read by what is no dot on the matrix units"
        if position == 0:
            return f"{tile.name} is the first operand of a dot"
    return ""


def _marked(program: TileProgram) -> Iterator[Nest]:
    for nest in program.nests:
        uses = Uses(nest, tiling_of(program, nest))

        def mark(stmt: Stmt, uses: Uses = uses) -> Stmt:
            if isinstance(stmt, Load | Await) and not not_columns(stmt.target, uses):
                return changed(stmt, columns=True)
            return stmt

        yield changed(nest, body=mapped(nest.body, mark))
