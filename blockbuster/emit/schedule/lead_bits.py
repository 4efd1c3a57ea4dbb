"""A running maximum that nothing but powers of 2 reads is kept in base 2.

before   t8 = t7 * |D| ** -0.5            after   t8 = t7 * (log2 e * |D| ** -0.5)
         t9 = maximum(t1, t8)                     t9 = maximum(t1, t8)
         t10 = t9 * log2 e
         t11 = finite(t10)                        t11 = finite(t9)
         t15 = 2 ** (t1 * log2 e - t11)           t15 = 2 ** (t1 - t11)
         t1 = t9                                  t1 = t9

log2 e is positive, so the maximum of the products is the product of the maximum. A row takes one
multiplication less, and the factor is the one of its elements (see factor.py), rounded alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blockbuster.emit.schedule.lets import expression_of, lets_of
from blockbuster.emit.schedule.scaling import compacted, scaled_of
from blockbuster.emit.tile.dataflow import expanded, readers_of, renamed
from blockbuster.emit.tile.monoids import LARGER
from blockbuster.emit.tile.program import Fold, Init, Let, Stmt, Tile, statements
from blockbuster.ir.base_two import LOG2_E
from blockbuster.ir.expr import Arg, Const, Expr, arguments, call, replaced
from blockbuster.ir.ops import Pointwise


def with_lead_bits(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """``body`` with those running maxima in base 2 that only powers read."""
    for stmt in tuple(statements(body)):
        if isinstance(stmt, Init) and not needed_as_it_is(stmt.target, body):
            body = _rewritten(body, _in_bits(stmt.target, body))
    return body


def needed_as_it_is(lead: Tile, body: tuple[Stmt, ...]) -> str:
    """Why the accumulator ``lead`` cannot be kept in base 2, or ""."""
    lets, readers = lets_of(body), readers_of(body)
    folds = [stmt for stmt in statements(body) if isinstance(stmt, Fold) and stmt.target == lead]
    if not folds:
        return f"nothing is folded into {lead.name}"
    for fold in folds:
        value = _compared(fold, lets)
        if value is None:
            return f"{fold.value.name} is no maximum of {lead.name} and a value of its own"
        if len(readers[value]) > 1:
            return f"{value.name} is read besides"
    for tile in dict.fromkeys((lead, *(fold.value for fold in folds))):
        for stmt in readers.get(tile, ()):
            if stmt not in folds and not _is_maximum(stmt, lead) and not _in_powers(stmt, tile):
                return f"{tile.name} is read besides"
    return ""


def _compared(fold: Fold, lets: Mapping[Tile, Let]) -> Tile | None:
    """The value that is compared with a lead, if it is made by an operator of elements."""
    new = lets.get(fold.value)
    if not fold.ahead or fold.members or new is None or not _is_maximum(new, fold.target):
        return None
    made = lets.get(new.args[1])
    return new.args[1] if made is not None and isinstance(made.op, Pointwise) else None


def _is_maximum(stmt: Stmt, lead: Tile) -> bool:
    if not isinstance(stmt, Let) or not isinstance(stmt.op, Pointwise):
        return False
    return stmt.op.expr == LARGER and stmt.args[0] == lead


def _in_powers(stmt: Stmt, tile: Tile) -> bool:
    """True if ``stmt`` reads ``tile`` only times log2 e."""
    expr = expression_of(stmt)
    if expr is None or not isinstance(stmt, Let):
        return False
    at = stmt.args.index(tile)
    return stmt.args.count(tile) == 1 and at not in arguments(_without(expr, at, Const(0.0)))


def _without(expr: Expr, at: int, other: Expr) -> Expr:
    """``expr`` with ``other`` for the argument of number ``at`` times log2 e."""
    return replaced(expr, {call("mul", Arg(at), LOG2_E): other})


def _in_bits(lead: Tile, body: tuple[Stmt, ...]) -> dict[Let, Let]:
    """The operators that make the values of ``lead`` or read it, as they are with it in base 2."""
    lets, readers, made = lets_of(body), readers_of(body), dict[Let, Let]()
    folds = [stmt for stmt in statements(body) if isinstance(stmt, Fold) and stmt.target == lead]
    for fold in folds:
        value = _compared(fold, lets)
        assert value is not None
        made[lets[value]] = _scaled(lets[value])
    for tile in (lead, *(fold.value for fold in folds)):
        for stmt in readers.get(tile, ()):
            if isinstance(stmt, Let) and not _is_maximum(stmt, lead):
                now = made.get(stmt, stmt)
                assert isinstance(now.op, Pointwise)
                at = now.args.index(tile)
                expr = _without(now.op.expr, at, Arg(at))
                made[stmt] = replace(now, op=replace(now.op, expr=expr))
    return made


def _scaled(let: Let) -> Let:
    """``let`` times log2 e."""
    assert isinstance(let.op, Pointwise)
    found = scaled_of(let.op.expr, let.args, {}, lambda tile: False)
    product = call("mul", found.expr, found.scaling(Const(LOG2_E)))
    expr, args = compacted(product, found.args)
    return replace(let, op=replace(let.op, expr=expr), args=args)


def _rewritten(body: tuple[Stmt, ...], made: Mapping[Let, Let]) -> tuple[Stmt, ...]:
    """``body`` with operators as ``made`` says; what only passes a tile on becomes that tile."""
    names: dict[Tile, Tile] = {}

    def change(stmt: Stmt) -> tuple[Stmt, ...]:
        now = made.get(stmt) if isinstance(stmt, Let) else None
        if now is not None and isinstance(now.op, Pointwise) and now.op.expr == Arg(0):
            names[now.target] = now.args[0]
            return ()
        return (renamed(now or stmt, names),)

    return expanded(body, change)
