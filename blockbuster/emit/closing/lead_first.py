"""lead-first: the running exponent is updated before the values that are scaled by it.

before   for n in range(N):               after   for n in range(N):
          t5 = row_max(t4)                         t5 = row_max(t4)
                                                   t9 = maximum(t1, t5)
          t6 = exp(sub0(t4,t5))                    t6 = exp(sub0(t4,t9))
          t7 = row_sum(t6)                         t7 = row_sum(t6)
          t1 = max(t1,t5)                          t1 = t9
          t2 (+)= t7                               t2 (+)= t7      (only the old t2 is rescaled)

A *lead* is the running exponent of a group. If it is known before the significands are computed,
these need no factor of their own: this saves one multiplication and one rounding for every element
that a loop accumulates. The online softmax of attention kernels has this order. Legal if a lead
that is larger by d makes every member's value exp(d) times smaller: ``Moves`` follows d through the
loop's operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import (
    defined,
    folded,
    operands,
    reads,
    renamed,
    same_or,
    with_parts,
)
from blockbuster.emit.tile.each_nest import Around, naming_body
from blockbuster.emit.tile.monoids import LARGER, kept_empty
from blockbuster.emit.tile.program import Fold, For, Let, Nest, Stmt, Store, Tile
from blockbuster.ir.expr import Arg, Call, Expr
from blockbuster.ir.ops import Cast, Functional, Op, Pointwise, Transpose
from blockbuster.ir.regroup import Regroup
from blockbuster.rules.safety import RESCALED


@dataclass(frozen=True)
class Moves:
    """The change of a value if the lead grows by d: value + added * d, * exp(scaled * d).

    At most one of the two is not 0.
    """

    added: float = 0.0
    scaled: float = 0.0


STAYS, SMALLER = Moves(), Moves(scaled=-1.0)
Known: TypeAlias = Moves | None  # None: nothing is known


@naming_body()
def lead_first(nest: Nest, _: Around, names: Iterator[str]) -> Nest:
    """A nest with its groups folded under a lead that is brought up to date before them."""
    return with_parts(nest, body=_walked(nest.body, names))


def not_leading(fold: Fold, body: tuple[Stmt, ...]) -> str:
    """Why the lead of ``fold`` in a loop's ``body`` cannot be folded before its members, or ""."""
    lead, value = fold.target, fold.value
    if fold.ahead or not fold.members or fold.monoid != "max":
        return f"{lead.name} leads no group that waits for it"
    for member in fold.members:
        if (member.factor, member.leads) != (kept_empty(RESCALED, member.monoid), (0,)):
            return f"how {member.target.name} is rescaled is not known"
    if value not in map(defined, body):
        return f"{value.name} is not made in the loop itself"
    if lead in reads(body):
        return f"{lead.name} is read in the loop"
    moves, reason = _followed(fold, body)
    if reason:
        return reason
    for member in fold.members:
        if moves.get(member.value) != SMALLER:
            return f"{member.value.name} is not computed under {value.name}"
    return ""


def _walked(body: tuple[Stmt, ...], names: Iterator[str]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            inner = _walked(stmt.body, names)
            for fold in [s for s in inner if isinstance(s, Fold)]:
                if not not_leading(fold, inner):
                    inner = _led(fold, inner, names)
            stmt = with_parts(stmt, body=inner)
        out.append(stmt)
    return same_or(body, tuple(out))


def _led(fold: Fold, body: tuple[Stmt, ...], names: Iterator[str]) -> tuple[Stmt, ...]:
    lead = fold.target
    hint = f"{lead.hint}_next" if lead.hint else "running"
    new = Tile(next(names), lead.axes, hint, dtype=lead.dtype)
    folded_lead = Let(new, Pointwise(LARGER, lead.axes), (lead, fold.value), fold.origin)
    at = next(i for i, stmt in enumerate(body) if defined(stmt) == fold.value) + 1
    behind = (
        changed(fold, value=new, ahead=True) if stmt == fold else renamed(stmt, {fold.value: new})
        for stmt in body[at:]
    )
    return (*body[:at], folded_lead, *behind)


def _followed(fold: Fold, body: tuple[Stmt, ...]) -> tuple[Mapping[Tile, Moves], str]:
    """How the tiles move that depend on the lead's value, and what stands in the way, or ""."""
    moves = {fold.value: Moves(added=1.0)}
    for stmt in body:
        if isinstance(stmt, For):
            if any(tile in moves for tile in (*operands(stmt), *reads(stmt.body))):
                return moves, f"a loop over {stmt.dim} reads what is computed under the lead"
        elif stmt != fold and any(tile in moves for tile in operands(stmt)):
            reason = _follow(stmt, moves, fold.value)
            if reason:
                return moves, reason
    return moves, ""


def _follow(stmt: Stmt, moves: dict[Tile, Moves], lead: Tile) -> str:
    """Note how the result of ``stmt`` moves; or why it must not be computed under another lead."""
    if isinstance(stmt, Store):
        return f"{stmt.value.name} is stored"
    if folded(stmt):
        return f"{folded(stmt)[0].name} is folded under the lead, too"
    target = defined(stmt)
    assert target is not None
    known = None
    if isinstance(stmt, Let) and set(lead.axes) <= set(target.axes):
        known = _through(stmt.op, [moves.get(arg, STAYS) for arg in stmt.args])
    if known is None:
        return f"{target.name} does not only shift or scale with the lead"
    moves[target] = known
    return ""


def _through(op: Op, args: Sequence[Moves]) -> Known:
    match op:
        case Pointwise(expr):
            return _of(expr, args)
        case Functional(name):
            return LAWS[name](*args)
        case Transpose() | Regroup():
            return args[0]
        case Cast():
            return LAWS["mul"](*args, STAYS)
    return None


def _of(expr: Expr, args: Sequence[Moves]) -> Known:
    """How the value of ``expr`` moves where its operands move like ``args``."""
    if isinstance(expr, Arg):
        return args[expr.index]
    if not isinstance(expr, Call):
        return STAYS
    parts = [_of(part, args) for part in expr.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if all(part == STAYS for part in known):
        return STAYS
    return LAWS[expr.fn](*known) if expr.fn in LAWS else None


def _sum(sign: float) -> Callable[[Moves, Moves], Known]:
    def law(a: Moves, b: Moves) -> Known:
        if a.scaled or b.scaled:
            return a if a == b else None
        return Moves(added=a.added + sign * b.added)

    return law


def _product(sign: float) -> Callable[[Moves, Moves], Known]:
    def law(a: Moves, b: Moves) -> Known:
        return None if a.added or b.added else Moves(scaled=a.scaled + sign * b.scaled)

    return law


LAWS: dict[str, Callable[..., Known]] = {
    "add": _sum(1.0),
    "sub": _sum(-1.0),
    "sub0": _sum(-1.0),
    "neg": lambda a: Moves(-a.added, a.scaled),
    "mul": _product(1.0),
    "dot": _product(1.0),
    "div": _product(-1.0),
    "exp": lambda a: None if a.scaled else Moves(scaled=a.added),
    "maximum": lambda a, b: a if a == b else None,
    "minimum": lambda a, b: a if a == b else None,
    "where": lambda c, a, b: a if c == STAYS and a == b else None,
    "row_max": lambda a: a,
    "row_min": lambda a: a,
    "row_sum": lambda a: None if a.added else a,
    "row_prod": lambda a: a if a == STAYS else None,
}
