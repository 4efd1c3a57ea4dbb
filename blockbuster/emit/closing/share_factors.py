"""share-factors: the factor that rescales a group's partial results is computed once.

before   t1 = max(t1,t4)                          after   t8 = max(t1,t4)
         t2 (+)= t5   # rescaled by t1                    t9 = exp(sub0(t1,t8))
         t3 (+)= t6   # rescaled by t1                    t10 = exp(sub0(t4,t8))
                                                          t11 = t2 * t9
                                                          t12 = t5 * t10
                                                          t2 = t11 + t12
                                                          t13 = t3 * t9
                                                          t14 = t6 * t10
                                                          t3 = t13 + t14
                                                          t1 = t8

A factor belongs to a lead, and a row has one lead, so all members of the group share the factor. If
the lead is folded first, new values are already scaled by the new lead and need no factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import same_or, with_parts
from blockbuster.emit.tile.each_nest import Around, naming_body
from blockbuster.emit.tile.monoids import COMBINED
from blockbuster.emit.tile.program import (
    Fold,
    For,
    Let,
    Member,
    Nest,
    Stmt,
    Tile,
)
from blockbuster.ir.expr import Arg, Call, Expr, arguments, substitute
from blockbuster.ir.ops import Pointwise

PRODUCT = Call("mul", (Arg(0), Arg(1)))


@naming_body()
def share_factors(nest: Nest, around: Around, names: Iterator[str]) -> Nest:
    """A nest without groups: every fold has one target, which is rescaled before it."""
    made = (Tile(name, (), dtype=around.arithmetic) for name in names)
    return with_parts(nest, body=_walked(nest.body, made))


def not_shared(factor: Expr) -> str:
    """Why partial results under one lead have no factor in common, or "".

    They have one where ``factor`` is x * g(r, r2), whatever x is.
    """
    match factor:
        case Call("mul", (Arg(0), scale)) | Call("mul", (scale, Arg(0))):
            if 0 not in arguments(scale):
                return ""
    return "it is no product of the partial result and a function of the leads"


def _scale(factor: Expr) -> Expr:
    assert isinstance(factor, Call)
    left, right = factor.args
    return right if left == Arg(0) else left


def _walked(body: tuple[Stmt, ...], made: Iterator[Tile]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            out.append(with_parts(stmt, body=_walked(stmt.body, made)))
        elif isinstance(stmt, Fold) and stmt.members:
            out += _Group(stmt, made).statements()
        else:
            out.append(stmt)
    return same_or(body, tuple(out))


@dataclass
class _Group:
    fold: Fold
    tiles: Iterator[Tile]
    made: list[Stmt] = field(default_factory=list)
    scales: dict[tuple[Expr, Tile], Tile] = field(default_factory=dict)

    def statements(self) -> list[Stmt]:
        """The statements that take the place of the fold."""
        fold, lead = self.fold, self.fold.target
        new = fold.value
        if not fold.ahead:
            hint = f"{lead.hint or lead.name}_next"
            new = self._let(hint, COMBINED[fold.monoid], lead.axes, (lead, fold.value))
        for member in fold.members:
            onto = self._rescaled(member, member.target, lead, new)
            value = member.value
            if not fold.ahead:
                value = self._rescaled(member, value, fold.value, new)
            self.made.append(
                Fold(member.target, member.monoid, value, origin=fold.origin, onto=onto)
            )
        self.made.append(changed(fold, value=new, members=(), ahead=True))
        return self.made

    def _rescaled(self, member: Member, item: Tile, old: Tile, new: Tile) -> Tile:
        """``item``, which was computed under the lead ``old``, under the lead ``new``."""
        axes, word = member.target.axes, f"{item.hint or item.name}_rescaled"
        if not_shared(member.factor):
            return self._let(word, member.factor, axes, (item, old, new))
        scale = _scale(member.factor)
        if (scale, old) not in self.scales:
            side = "old" if old == self.fold.target else "new"
            of_leads = substitute(scale, (Arg(0), Arg(0), Arg(1)))  # it does not read x
            args = (old, new)
            self.scales[scale, old] = self._let(f"scale_{side}", of_leads, new.axes, args)
        return self._let(word, PRODUCT, axes, (item, self.scales[scale, old]))

    def _let(self, hint: str, expr: Expr, axes: tuple[str, ...], args: tuple[Tile, ...]) -> Tile:
        tile = changed(next(self.tiles), axes=axes, hint=hint)
        self.made.append(Let(tile, Pointwise(expr, axes), args, self.fold.origin))
        return tile
