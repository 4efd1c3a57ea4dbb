"""sum-on: dots of an inner loop are added to the sum of the loop around it.

before   for r:                           after   for r:
           t4 = 0                                   for s:
           for s:                                     t3 = dot(t1,t2)
             t3 = dot(t1,t2)                          t5 += t3
             t4 += t3
           t5 += t4

Saves the registers of an accumulator, and an addition of all of its elements for each iteration of
the outer loop. Sums of other values keep theirs: many short sums, added up, have smaller rounding
errors than one long sum, which the products of a dot are in any case.
"""

from __future__ import annotations

from functools import partial

from blockbuster.emit.tile.dataflow import folded, mapped, operands, retargeted, same_or, with_parts
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import Fold, For, Init, Let, Nest, Stmt, statements
from blockbuster.emit.tile.tiling import tiling_in
from blockbuster.emit.tile.uses import Uses, is_matrix_dot


@each_body()
def sum_on(nest: Nest, around: Around) -> Nest:
    """A nest whose dots are added to the outermost sums that they are part of."""
    uses = Uses(nest, tiling_in(nest, around.units))
    return with_parts(nest, body=_summed_on(nest.body, uses))


def not_summed_on(outer: Fold, body: tuple[Stmt, ...], uses: Uses) -> str:
    """Why what ``outer`` of ``body`` adds cannot be added bit by bit inside a loop, or ""."""
    inner = outer.value
    if not _is_plain(outer):
        return f"{outer.target.name} is more than a sum"
    if Init(inner, "+") not in body or len(uses.of(inner)) != 1:
        return f"{inner.name} is no sum that begins here and is read once"
    if (inner.axes, inner.per_lane, inner.dtype) != (
        outer.target.axes, outer.target.per_lane, outer.target.dtype,
    ):  # fmt: skip
        return f"{inner.name} and {outer.target.name} have other lanes, or another dtype"
    between = body[body.index(Init(inner, "+")) + 1 : body.index(outer)]
    inside = [*statements(between)]
    adding = [stmt for stmt in inside if inner in folded(stmt)]
    makers = {stmt.target: stmt for stmt in inside if isinstance(stmt, Let)}
    if len(adding) != 1 or not isinstance(adding[0], Fold) or not _is_plain(adding[0]):
        return f"{inner.name} is summed in several places, or is more than a sum"
    if not is_matrix_dot(makers.get(adding[0].value, outer), uses.tiling):
        return f"{inner.name} is no sum of dots"
    if any(outer.target in (*operands(stmt), *folded(stmt)) for stmt in inside):
        return f"{outer.target.name} is used while {inner.name} is summed"
    return ""


def _is_plain(fold: Fold) -> bool:
    return fold.monoid == "+" and not fold.members and not fold.ahead and fold.onto is None


def _summed_on(body: tuple[Stmt, ...], uses: Uses) -> tuple[Stmt, ...]:
    made = tuple(
        with_parts(stmt, body=_summed_on(stmt.body, uses)) if isinstance(stmt, For) else stmt
        for stmt in body
    )
    for fold in [stmt for stmt in made if isinstance(stmt, Fold)]:
        if not not_summed_on(fold, made, uses):
            ended = (Init(fold.value, "+"), fold)
            left = tuple(stmt for stmt in made if stmt not in ended)
            made = mapped(left, partial(retargeted, new={fold.value: fold.target}))
    return same_or(body, made)
