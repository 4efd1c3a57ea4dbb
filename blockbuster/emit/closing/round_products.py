"""round-products: a product whose lanes are summed is rounded before the sum.

before   t2 = t1 * t1                     after   t2 = t1 * t1   apart
         t3 = row_sum(t2)                         t3 = row_sum(t2)

By default a compiler fuses the product with the first addition of the sum, in which each lane
rounds the other lane's product but not its own. Then lanes hold different sums of one row, and a
race decides which of them is stored: results would differ from run to run. Costs nothing: an fma
with zero. Products of integers are exact, and stay integers.
"""

from __future__ import annotations

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import mapped, with_parts
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import Fold, Guard, Let, Nest, Stmt, Tile
from blockbuster.emit.tile.tiling import tiling_in
from blockbuster.emit.tile.uses import Uses, is_matrix_dot
from blockbuster.emit.tile.workarounds import ROUNDED
from blockbuster.ir.dtypes import INTEGERS
from blockbuster.ir.ops import Cast, Functional, Pointwise, Relabel, Transpose
from blockbuster.ir.regroup import Regroup


@each_body()
def round_products(nest: Nest, around: Around) -> Nest:
    """A nest with the products marked that lanes add up."""
    uses = Uses(nest, tiling_in(nest, around.units))

    def mark(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Let) and not not_summed(stmt, uses):
            return changed(stmt, apart=ROUNDED)
        return stmt

    return with_parts(nest, body=mapped(nest.body, mark))


def not_summed(let: Let, uses: Uses) -> str:
    """Why no lanes of products in ``let`` are added up, or ""."""
    if let.op == Functional("dot"):
        return "the matrix units add" if is_matrix_dot(let, uses.tiling) else ""
    if not isinstance(let.op, Pointwise):
        return f"{let.target.name} is no scalar function"
    if let.target.dtype in INTEGERS:
        return "integers are not rounded"
    return "" if _added_up(let.target, uses) else f"lanes of {let.target.name} are not added up"


def _added_up(tile: Tile, uses: Uses) -> bool:
    """True if lanes of ``tile`` are added up, as it is or after moves, casts and masks."""
    return any(_adds(stmt, uses) for stmt, _ in uses.of(tile))


def _adds(stmt: Stmt, uses: Uses) -> bool:
    match stmt:
        case Let(op=Functional("row_sum")):
            return True
        case Fold(target, "+") if target.per_lane:
            return True  # a loop of one iteration leaves the product itself
        case Guard() | Let(op=Relabel() | Transpose() | Regroup() | Cast()):
            return _added_up(stmt.target, uses)
    return False
