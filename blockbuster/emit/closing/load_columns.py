"""load-columns: a tile that is only the second operand of matrix dots is loaded as columns.

before   t2 = load(KT[n,:])               after   t2 = load(KT[n,:])   as columns
         t3 = dot(t1,t2)                          t3 = dot(t1,t2)

The matrix units multiply rows by columns; a dot of a block program multiplies rows by rows. Without
this pass the tile would be transposed in registers on its way from shared memory.
"""

from __future__ import annotations

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import mapped, with_parts
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import Await, Load, Nest, Stmt, Tile
from blockbuster.emit.tile.tiling import tiling_in
from blockbuster.emit.tile.uses import Uses, is_matrix_dot


@each_body()
def load_columns(nest: Nest, around: Around) -> Nest:
    """A nest with the loads marked whose tiles the matrix units want as columns."""
    uses = Uses(nest, tiling_in(nest, around.units))

    def mark(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Load | Await) and not not_columns(stmt.target, uses):
            return changed(stmt, columns=True)
        return stmt

    return with_parts(nest, body=mapped(nest.body, mark))


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
