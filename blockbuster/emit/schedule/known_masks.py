"""Statements under masks with known truth values: each choice is replaced by the chosen value.

before   t4 = i >= j                      after   (where i >= j at every point)
         t5 = where(t4, t3, -inf)
         t6 = row_max(t5)                         t6 = row_max(t3)

No law of arithmetic is used, so results are the same to the bit: where(true, x, y) is x for all x
and y, and "and", "or", "not" are simplified in the same way. Statements whose tiles nothing reads
any more, such as indices, are removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from blockbuster.emit.schedule.conditions import LONGEST, Formulas
from blockbuster.emit.tile.dataflow import defined, expanded, folded, operands, renamed
from blockbuster.emit.tile.program import For, Init, Let, Stmt, Tile, statements
from blockbuster.ir.expr import (
    Arg,
    Call,
    Const,
    Expr,
    arguments,
    call,
    calls,
    is_predicate,
    substitute,
)
from blockbuster.ir.ops import Pointwise


def under(
    body: tuple[Stmt, ...], known: Mapping[Expr, float], formulas: Formulas
) -> tuple[Stmt, ...]:
    """``body`` where each formula of ``known`` has its truth value at every point."""
    changing = frozenset(tile for stmt in statements(body) for tile in folded(stmt))
    simpler = expanded(body, _Simpler(known, formulas, changing).of)
    return without_unread(simpler, set())


def without_unread(body: tuple[Stmt, ...], needed: set[Tile]) -> tuple[Stmt, ...]:
    """``body`` without what makes tiles that nothing reads; ``needed`` are read behind it."""
    kept: list[Stmt] = []
    for stmt in reversed(body):
        if isinstance(stmt, For):
            stmt = replace(stmt, body=without_unread(stmt.body, needed))
        elif not isinstance(stmt, Init) and (made := defined(stmt)) and made not in needed:
            continue
        needed.update(operands(stmt))
        kept.append(stmt)
    return tuple(reversed(kept))


@dataclass
class _Simpler:
    """``same``: for a tile that chose another one at every point, that one.

    ``numbers``: tiles that are one number everywhere. ``changing``: accumulators.
    """

    known: Mapping[Expr, float]
    formulas: Formulas
    changing: frozenset[Tile]
    same: dict[Tile, Tile] = field(default_factory=dict)
    numbers: dict[Tile, float] = field(default_factory=dict)

    def of(self, stmt: Stmt) -> list[Stmt]:
        """``stmt``, simpler; none if its tile is another one."""
        if isinstance(stmt, Let) and isinstance(stmt.op, Pointwise):
            return self._let(stmt, stmt.op.expr)
        return [renamed(stmt, self.same)]

    def _let(self, stmt: Let, expr: Expr) -> list[Stmt]:
        simpler = self._expr(expr, stmt.args) if calls(expr) <= LONGEST else expr
        if isinstance(simpler, Const):
            self.numbers[stmt.target] = simpler.value
        if isinstance(simpler, Arg) and simpler != expr:
            chosen = stmt.args[simpler.index]
            if self._is_same(stmt.target, chosen):
                self.same[stmt.target] = self.same.get(chosen, chosen)
                return []
        read = arguments(simpler)
        places = {index: Arg(at) for at, index in enumerate(read)}
        slots = [places.get(index, Arg(0)) for index in range(len(stmt.args))]
        op = Pointwise(substitute(simpler, slots), stmt.target.axes)
        args = tuple(stmt.args[index] for index in read)
        made = stmt if simpler == expr else replace(stmt, op=op, args=args)
        return [renamed(made, self.same)]

    def _is_same(self, target: Tile, chosen: Tile) -> bool:
        """True if ``chosen`` can be read in place of ``target``: it has all its elements for good.

        An accumulator may have changed until it is read.
        """
        fits = (chosen.axes, chosen.dtype, chosen.per_lane)
        return chosen not in self.changing and fits == (
            target.axes,
            target.dtype,
            target.per_lane,
        )

    def _expr(self, expr: Expr, args: Sequence[Tile]) -> Expr:
        """``expr`` of the tiles ``args``, simpler."""
        if (truth := self._truth(expr, args)) is not None:
            return Const(truth)
        match expr:
            case Arg(index) if args[index] in self.numbers:
                return Const(self.numbers[args[index]])
            case Call(fn, parts):
                return self._chosen(fn, tuple(self._expr(part, args) for part in parts), args)
        return expr

    def _chosen(self, fn: str, parts: tuple[Expr, ...], args: Sequence[Tile]) -> Expr:
        """What a function of parts gives, if known truth values among these say it."""
        match fn, parts:
            case "where", (Const(truth), a, b):
                return a if truth else b
            case "not", (Const(truth),):
                return Const(0.0 if truth else 1.0)
            case "and" | "or", (Const(truth), x) | (x, Const(truth)):
                if bool(truth) != (fn == "and"):
                    return Const(1.0 if truth else 0.0)
                if isinstance(x, Const):
                    return Const(1.0 if x.value else 0.0)
                return x if self._is_truth(x, args) else call("ne", x, 0.0)
        return Call(fn, parts)

    def _is_truth(self, expr: Expr, args: Sequence[Tile]) -> bool:
        """True for truth values; any other number is true if it is not 0."""
        return is_predicate(expr) or (
            isinstance(expr, Arg) and is_predicate(self.formulas.of(args[expr.index]))
        )

    def _truth(self, expr: Expr, args: Sequence[Tile]) -> float | None:
        """The truth value of ``expr``, if it is known."""
        if not arguments(expr) or calls(expr) > LONGEST:
            return None
        return self.known.get(self.formulas.inside(expr, args))
