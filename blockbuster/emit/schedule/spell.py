"""spell: tanh is computed by an exponential in base 2.

before   t5 = tanh(t4 * |D| ** -0.5 / 50)
after    t5 = 1 - 2 / (1 + 2 ** (t4 * (2 log2 e * |D| ** -0.5 / 50)))

Takes two operations of special units and five others, where tanh takes some twenty: the targets'
tanh also has a polynomial for small arguments. The error is a unit or two in the last place of 1,
so small results lose digits. That does not matter for scaled scores whose exponentials follow;
results of a program should not use this form.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import NEST, Move
from blockbuster.emit.schedule.lets import expression_of, lets_of, without_unread
from blockbuster.emit.schedule.scaling import compacted, reading_once, scaled_of
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, with_nests
from blockbuster.emit.tile.dataflow import mapped, readers_of
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import Let, Nest, Stmt, TileProgram, statements
from blockbuster.ir.base_two import LOG2_E, tanh_by
from blockbuster.ir.expr import Arg, Call, Expr, call, calls_in, replaced, substitute
from blockbuster.ir.ops import Pointwise

SPELLED = "tanh"


class Spell(Move):
    """Make tanh of an exponential in base 2."""

    name: ClassVar[str] = "spell"
    takes: ClassVar[str] = NEST

    def not_here(
        self, scheduled: Scheduled, site: Site, nests: tuple[Nest, ...], /, **args: Any
    ) -> str:
        """There is a tanh."""
        found = any(_has_tanhs(Same(nest.body)) for nest in nests)
        return "" if found else f"there is no {SPELLED}"

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft without the tanh of these nests."""
        return with_nests(scheduled.draft, site, spelled)


@lru_cache(maxsize=KEPT)
def _has_tanhs(body: Same[Body]) -> bool:
    return any(tanhs_of(stmt) for stmt in statements(body.one))


def tanhs_of(stmt: Stmt) -> tuple[Call, ...]:
    """The parts of ``stmt`` that are a tanh."""
    expr = expression_of(stmt)
    return tuple(part for part in calls_in(expr) if part.fn == SPELLED) if expr is not None else ()


def spelled(nest: Nest) -> Nest:
    """``nest`` with every tanh made of an exponential; its argument's scale is folded in."""
    lets, readers = lets_of(nest.body), readers_of(nest.body)

    def change(stmt: Stmt) -> Stmt:
        if not tanhs_of(stmt) or not isinstance(stmt, Let) or not isinstance(stmt.op, Pointwise):
            return stmt
        stmt = reading_once(stmt, stmt.op)
        assert isinstance(stmt.op, Pointwise)
        found = tanhs_of(stmt)
        pool = {tile: Arg(index) for index, tile in enumerate(stmt.args)}
        made = dict[Expr, Expr]()
        for part in reversed(found):  # inner ones first
            inner = replaced(part.args[0], made)
            x = scaled_of(inner, tuple(pool), lets, lambda tile: len(readers[tile]) == 1)
            args = [pool.setdefault(tile, Arg(len(pool))) for tile in x.args]
            scale = x.scaling(call("mul", 2.0, LOG2_E))
            made[part] = tanh_by(call("mul", substitute(x.expr, args), scale))
        expr, args_read = compacted(replaced(stmt.op.expr, made), tuple(pool))
        return replace(stmt, op=replace(stmt.op, expr=expr), args=args_read)

    body = mapped(nest.body, change)
    return replace(nest, body=without_unread(body, nest.body))
