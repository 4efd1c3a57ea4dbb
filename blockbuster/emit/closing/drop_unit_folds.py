"""drop-unit-folds: a fold of one element is that element.

before   for a in range(A):    (single elements)     after   for a in range(A):
          t2 = row_max(t1)     [M]                            t2 = row_max(t1)
          t3 = t2 over [M,A]                                  t5 max= t2
          t4 = row_max(t3)     [M]
          t5 max= t4

An array that is folded along two axes, one of which is in single elements, leaves such folds. They
compute nothing, but stood between a fold in the loop and the fold across lanes that it may wait
for (schedule/defer_lane_sums.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.emit.tile.dataflow import defined, folded, renamed, same_or, with_parts
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import For, Let, Nest, Stmt, Tile
from blockbuster.emit.tile.tiling import Tiling, tiling_in
from blockbuster.emit.tile.uses import Uses
from blockbuster.ir.expr import Arg
from blockbuster.ir.ops import MONOID_OF, Functional, Pointwise


@each_body()
def drop_unit_folds(nest: Nest, around: Around) -> Nest:
    """A nest without folds of what was spread along single elements."""
    uses = Uses(nest, tiling_in(nest, around.units))
    return with_parts(nest, body=_dropped(nest.body, uses, {}))


def not_the_same(spread: Stmt | None, fold: Let, behind: Sequence[Stmt], tiling: Tiling) -> str:
    """Why ``fold`` does not give what ``spread`` reads, for what stands ``behind`` that, or ""."""
    if not (isinstance(fold.op, Functional) and fold.op.name in MONOID_OF):
        return f"{fold.target.name} is no fold of rows"
    if not tiling.is_unit(fold.args[0].axes[-1]):
        return f"{fold.args[0].name} may have several elements in a row"
    if not isinstance(spread, Let) or spread.op != Pointwise(Arg(0), fold.args[0].axes):
        return f"{fold.args[0].name} is no value spread along its rows"
    (value,) = spread.args
    if (value.axes, value.dtype) != (fold.target.axes, fold.target.dtype):
        return f"{value.name} has other axes than {fold.target.name}, or another dtype"
    if any(value in folded(stmt) for stmt in behind):
        return f"{value.name} changes"
    return ""


def _dropped(body: tuple[Stmt, ...], uses: Uses, alias: dict[Tile, Tile]) -> tuple[Stmt, ...]:
    """``body`` without such folds; ``alias`` notes for each of them the tile that it repeats."""
    out: list[Stmt] = []
    makers: dict[Tile | None, tuple[int, Stmt]] = {}
    for at, stmt in enumerate(body):
        stmt = renamed(stmt, alias)
        if isinstance(stmt, For):
            stmt = with_parts(stmt, body=_dropped(stmt.body, uses, alias))
        if isinstance(stmt, Let) and len(stmt.args) == 1 and stmt.args[0].axes:
            begun, spread = makers.get(stmt.args[0], (0, None))
            if not not_the_same(spread, stmt, body[begun + 1 :], uses.tiling):
                assert isinstance(spread, Let)
                alias[stmt.target] = spread.args[0]
                if len(uses.of(spread.target)) == 1:
                    out.remove(spread)
                continue
        makers[defined(stmt)] = at, stmt
        out.append(stmt)
    return same_or(body, tuple(out))
