"""fold-together: a fold of what a fold gives is one fold, over the axes of both.

before   t2 = row_sum(t1)        [E]      after   t5 = guard t1 along E with 0     [E, C]
         t3 = guard t2 along E   [E]              t4 = row_sum(t5)                 []
         t4 = row_sum(t3)        []

Lanes and warps hand on what they have once, when each has folded all of its elements, instead of
once for each row that they hold and then again: the two sums of a group norm of 64 x 77 elements
take 18 shuffles instead of 168. Integers keep their folds, which have wider dtypes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import defined, folded, same_or, with_parts
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import For, Guard, Let, Nest, Stmt, Tile
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.tiling import Tiling, tiling_in
from blockbuster.emit.tile.typed import filled_dtype
from blockbuster.emit.tile.uses import Uses
from blockbuster.ir.ops import IDENTITY, MONOID_OF, Functional


@each_body()
def fold_together(nest: Nest, around: Around) -> Nest:
    """A nest with folds of folds made one."""
    uses = Uses(nest, tiling_in(nest, around.units))
    return with_parts(nest, body=_together(nest.body, uses))


def not_together(first: Let, second: Let, between: Sequence[Stmt], uses: Uses) -> str:
    """Why ``second``, which reads what ``first`` folds, cannot fold all of it itself, or "".

    ``between`` them may be a guard of what ``first`` gives.
    """
    name, (whole,) = first.target.name, first.args
    guards = [stmt for stmt in between if isinstance(stmt, Guard) and stmt.target in second.args]
    if first.op != second.op or not all(_is_fold(let, uses.tiling) for let in (first, second)):
        return f"{name} is not folded twice in the same way"
    if first.target.dtype not in ("", FLOAT):
        return f"{name} is no float32 number"
    read = [first.target, *(guard.target for guard in guards)]
    if any(len(uses.of(tile)) != 1 for tile in read):
        return f"{name} is read elsewhere, too"
    assert isinstance(second.op, Functional)
    folds_on = IDENTITY[MONOID_OF[second.op.name]]
    if any(guard.fill != folds_on or guard.dim != first.target.axes[-1] for guard in guards):
        return f"{name} has other numbers past its end than those that fold nothing"
    if any(whole in folded(stmt) for stmt in between):
        return f"{whole.name} changes before {name} is read"
    return ""


def _is_fold(let: Let, tiling: Tiling) -> bool:
    """True for a fold across lanes."""
    known = isinstance(let.op, Functional) and let.op.name in MONOID_OF
    return known and tiling.lanes(let.args[0]) != tiling.lanes(let.target)


def _together(body: tuple[Stmt, ...], uses: Uses) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            stmt = with_parts(stmt, body=_together(stmt.body, uses))
        while isinstance(stmt, Let) and _is_fold(stmt, uses.tiling):
            first = _first(stmt, out)
            if first is None or not_together(first, stmt, out[out.index(first) + 1 :], uses):
                break
            stmt = _joined(first, stmt, out)
        out.append(stmt)
    return same_or(body, tuple(out))


def _first(second: Let, before: Sequence[Stmt]) -> Let | None:
    """The operator of one tile whose result ``second`` reads, if only as it is guarded."""
    makers = {defined(stmt): stmt for stmt in before}
    made = makers.get(second.args[0])
    made = makers.get(made.value) if isinstance(made, Guard) else made
    return made if isinstance(made, Let) and len(made.args) == 1 else None


def _joined(first: Let, second: Let, out: list[Stmt]) -> Let:
    """``second`` as a fold of what ``first`` folds; ``out`` loses what stood between."""
    (whole,) = first.args
    value: Tile = whole
    for stmt in [stmt for stmt in out if defined(stmt) in (first.target, *second.args)]:
        out.remove(stmt)
        if isinstance(stmt, Guard):
            dtype = filled_dtype(whole.dtype)
            value = replace(whole, name=stmt.target.name, dtype=dtype)
            out.append(changed(stmt, target=value, value=whole))
    return changed(second, args=(value,))
