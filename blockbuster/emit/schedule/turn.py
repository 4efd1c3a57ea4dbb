"""turn: a product is accumulated transposed, so that its left operand is the computed one.

before   for n in range(N):                   after   for n in range(N):
          t3 = exp(dot(p,x))     [F,N]                 t3 = exp(dot(p,x))     [F,N]
          t4 = load(V[n])        [D,N]                 t4 = load(V[n])        [D,N]
          t5 = dot(t4,t3)        [D,F]                 t5 = dot(t3,t4)        [F,D]
          t1 += t5               [D,F]                 t1 += t5               [F,D]
         store(t1,P[f,d])                             store(t1,P[f,d])

Hopper's matrix units read a left operand from registers, where it was computed, but a right operand
only from shared memory: a computed one is stored there first, and all warps wait for it. The sums
are the same, element by element. Costs nothing if the accumulator is only stored: an array has its
own order of axes, whatever that of the tile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import BodyMove
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, statement_at, with_body
from blockbuster.emit.tile.dataflow import folded, mapped, readers_of, retargeted
from blockbuster.emit.tile.program import Fold, Let, Stmt, Store, TileProgram, statements
from blockbuster.emit.tile.typed import takes_matrix_units

Body = tuple[Stmt, ...]


class Turn(BodyMove):
    """Exchange the operands of a product that is added up and then stored."""

    name: ClassVar[str] = "turn"

    def not_in(self, program: TileProgram, site: Site, dot: Stmt, /) -> str:
        """The statement is a dot of two blocks, and its sum is only stored."""
        if not takes_matrix_units(dot, program.units):
            return "it is no dot of two blocks"
        assert isinstance(dot, Let)
        body = program.nests[site.nest - 1].body
        return added_up_otherwise(dot, body) or used_otherwise(dot, body)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with the axes of the dot and of its sum exchanged."""
        draft = scheduled.draft
        dot, body = statement_at(draft, site), draft.nests[site.nest - 1].body
        assert isinstance(dot, Let)
        fold = sum_of(dot, body)
        assert fold is not None
        new = {t: replace(t, axes=t.axes[::-1]) for t in (dot.target, fold.target)}

        def change(stmt: Stmt) -> Stmt:
            if stmt == dot:
                return replace(dot, target=new[dot.target], args=dot.args[::-1])
            return retargeted(stmt, new)

        return with_body(draft, site, mapped(body, change))


def sum_of(dot: Let, body: Body) -> Fold | None:
    """The only reader of ``dot``, if that adds it up by itself."""
    readers = readers_of(body)[dot.target]
    match readers:
        case [Fold(value=dot.target, monoid="+", members=(), onto=None) as fold]:
            return fold
    return None


# predicates ------------------------------------------------------------------------


def added_up_otherwise(dot: Let, body: Body) -> str:
    """The dot is read once, by a fold that adds it up alone."""
    fold = sum_of(dot, body)
    if fold is None:
        return f"{dot.target.name} is not only added up, by itself"
    if len(dot.target.axes) != 2 or fold.target.axes != dot.target.axes or fold.target.per_lane:
        return f"{dot.target.name} and {fold.target.name} have more than the two axes of blocks"
    others = (stmt for stmt in statements(body) if stmt != fold and isinstance(stmt, Fold))
    if any(fold.target in folded(other) for other in others):
        return f"{fold.target.name} adds up something else, too"
    return ""


def used_otherwise(dot: Let, body: Body) -> str:
    """The sum is only stored: whatever else reads it may want its axes in order."""
    fold = sum_of(dot, body)
    assert fold is not None
    readers = readers_of(body).get(fold.target, [])
    other = next((stmt for stmt in readers if not isinstance(stmt, Store)), None)
    if other is not None:
        return f"{fold.target.name} is not only stored"
    return ""
