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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import expanded, with_parts
from blockbuster.emit.tile.each_nest import Around, naming_body
from blockbuster.emit.tile.monoids import COMBINED
from blockbuster.emit.tile.program import Fold, Let, Member, Nest, Stmt, Tile
from blockbuster.ir.expr import Arg, Call, Expr, arguments, substitute
from blockbuster.ir.ops import Pointwise

PRODUCT = Call("mul", (Arg(0), Arg(1)))


@naming_body()
def share_factors(nest: Nest, around: Around, names: Iterator[str]) -> Nest:
    """A nest without groups: every fold has one target, which is rescaled before it."""
    made = (Tile(name, (), dtype=around.arithmetic) for name in names)

    def taken_apart(stmt: Stmt) -> Sequence[Stmt]:
        if isinstance(stmt, Fold) and stmt.members:
            return _Group(stmt, made).statements()
        return (stmt,)

    return with_parts(nest, body=expanded(nest.body, taken_apart))


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


class _Lead(NamedTuple):
    """A lead of a group before its fold, the value that is folded into it, and what it becomes."""

    old: Tile
    value: Tile
    new: Tile


@dataclass
class _Group:
    fold: Fold
    tiles: Iterator[Tile]
    made: list[Stmt] = field(default_factory=list)
    scales: dict[tuple[Expr, tuple[Tile, ...]], Tile] = field(default_factory=dict)

    def statements(self) -> list[Stmt]:
        """The statements that take the place of the fold."""
        fold, lead = self.fold, self.fold.target
        new = fold.value if fold.ahead else self._next(lead, fold.monoid, fold.value)
        leads = [_Lead(lead, fold.value, new)]
        leading = {number for member in fold.members for number in member.leads}
        ends: list[Stmt] = []
        for number, member in enumerate(fold.members, 1):
            read = [leads[each] for each in member.leads]
            onto, value = member.target, member.value
            if read:
                onto = self._rescaled(member, onto, [each.old for each in read], read)
            if read and not fold.ahead:
                value = self._rescaled(member, value, [each.value for each in read], read)
            target, origin = member.target, fold.origin
            if number in leading:  # those that it leads read its value before, too
                new = self._next(onto, member.monoid, value, target)
                leads.append(_Lead(target, member.value, new))
                ends.append(Fold(target, member.monoid, new, ahead=True, origin=origin))
                continue
            leads.append(_Lead(target, member.value, target))
            onto_else = None if onto == target else onto
            self.made.append(Fold(target, member.monoid, value, origin=origin, onto=onto_else))
        first = changed(fold, value=leads[0].new, members=(), ahead=True)
        return [*self.made, *ends, first]

    def _next(self, old: Tile, monoid: str, value: Tile, named: Tile | None = None) -> Tile:
        named = named or old
        hint = f"{named.hint or named.name}_next"
        return self._let(hint, COMBINED[monoid], named.axes, (old, value))

    def _rescaled(
        self, member: Member, item: Tile, old: Sequence[Tile], leads: Sequence[_Lead]
    ) -> Tile:
        """``item``, which was computed under the leads ``old``, under the new ones."""
        axes, word = member.target.axes, f"{item.hint or item.name}_rescaled"
        args = (*old, *(lead.new for lead in leads))
        if not_shared(member.factor):
            return self._let(word, member.factor, axes, (item, *args))
        scale = _scale(member.factor)
        if (scale, args) not in self.scales:
            side = "old" if old[0] == leads[0].old else "new"
            self.scales[scale, args] = self._scale(f"scale_{side}", scale, axes, args)
        return self._let(word, PRODUCT, axes, (item, self.scales[scale, args]))

    def _scale(self, hint: str, scale: Expr, axes: tuple[str, ...], args: tuple[Tile, ...]) -> Tile:
        """The factor of all items: it does not read x, nor leads that it does not need."""
        used = arguments(scale)
        place = {index: Arg(at) for at, index in enumerate(used)}
        of_leads = substitute(scale, [place.get(index, Arg(0)) for index in range(len(args) + 1)])
        read = tuple(args[index - 1] for index in used)
        shown = tuple(dim for dim in axes if any(dim in tile.axes for tile in read))
        return self._let(hint, of_leads, shown, read)

    def _let(self, hint: str, expr: Expr, axes: tuple[str, ...], args: tuple[Tile, ...]) -> Tile:
        tile = changed(next(self.tiles), axes=axes, hint=hint)
        self.made.append(Let(tile, Pointwise(expr, axes), args, self.fold.origin))
        return tile
