"""accumulate: a matrix dot whose only use is a sum adds its products to that sum directly.

before   t3 = dot(t1,t2)                  after   t3 = dot(t1,t2)   into t4
         t4 += t3                                 t4 += t3

Saves the dot's own accumulator and an addition per element. In float32, each dot is first summed
from zero and then added: one long chain of additions has several times the rounding error. Triton
turns a plain sum of a dot and an accumulator back into that chain, so the fold is kept ``apart``.
"""

from __future__ import annotations

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import folded, same_or, with_parts
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import Fold, For, Let, Nest, Stmt, statements
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.tiling import tiling_in
from blockbuster.emit.tile.uses import Uses, is_matrix_dot
from blockbuster.emit.tile.workarounds import FROM_ZERO


@each_body()
def accumulate(nest: Nest, around: Around) -> Nest:
    """A nest with its dots marked that the matrix units add to sums."""
    uses = Uses(nest, tiling_in(nest, around.units))
    return with_parts(nest, body=_marked(nest.body, uses))


def not_accumulated(dot: Let, body: tuple[Stmt, ...], uses: Uses) -> str:
    """Why ``dot`` of ``body`` cannot be made where it is added, or ""."""
    if not is_matrix_dot(dot, uses.tiling):
        return f"{dot.target.name} is no dot on the matrix units"
    readers = uses.of(dot.target)
    if len(readers) != 1:
        return f"{dot.target.name} is read {len(readers)} times"
    (fold, _), *_ = readers
    if not isinstance(fold, Fold) or fold.value != dot.target:
        return f"{dot.target.name} is not folded as it is"
    if fold.monoid != "+" or fold.ahead:
        return f"{dot.target.name} is folded, but not added"
    if fold.members:
        return f"{dot.target.name} leads a group: its own fold comes before others"
    if fold not in body:
        return f"{dot.target.name} is added in another loop than it is made in"
    between = body[body.index(dot) : body.index(fold)]
    changing = [tile for stmt in statements(between) for tile in folded(stmt) if tile in dot.args]
    if changing:
        return f"{changing[0].name} changes before {dot.target.name} is added"
    return ""


def _marked(body: tuple[Stmt, ...], uses: Uses) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    lets = [stmt for stmt in body if isinstance(stmt, Let)]
    dots = [let.target for let in lets if not not_accumulated(let, body, uses)]
    apart = [let.target for let in lets if let.target in dots and let.args[0].dtype == FLOAT]
    for stmt in body:
        if isinstance(stmt, For):
            stmt = with_parts(stmt, body=_marked(stmt.body, uses))
        elif isinstance(stmt, Let) and stmt.target in dots:
            ((fold, _),) = uses.of(stmt.target)
            assert isinstance(fold, Fold)
            stmt = stmt if stmt.target in apart else changed(stmt, into=fold.target)
        elif isinstance(stmt, Fold) and stmt.value in apart:
            stmt = changed(stmt, apart=FROM_ZERO)
        out.append(stmt)
    return same_or(body, tuple(out))
