"""The NumPy text of folds in groups: each member is repaired for its leads before it is folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from blockbuster.emit.print.numpy.spelling import MONOID_TEXT, aligned
from blockbuster.emit.tile.program import Fold, Member, Tile
from blockbuster.ir.expr import Expr

Spelled = Callable[[Tile, Expr, Sequence[str]], str]
"""The text of a factor, whose arguments are texts, for the target of a member."""


class _Lead(NamedTuple):
    """A lead, and the texts of its total before, what is folded into it, and the new total."""

    tile: Tile
    old: str
    own: str
    new: str


def group_lines(
    fold: Fold, value: str, folded: str, given: Callable[[Tile, Tile], str], spelled: Spelled
) -> list[str]:
    """The lines of a fold with members. ``value`` is what its target is folded with to ``folded``.

    ``given`` is the text of what a member's target is folded with.
    """
    lead = fold.target
    new = value if fold.ahead else f"{lead.name}_new"
    lines, ends = [] if fold.ahead else [f"{new} = {folded}"], [f"{lead.name} = {new}"]
    leads = [_Lead(lead, lead.name, value, new)]
    leading = {number for member in fold.members for number in member.leads}
    for number, member in enumerate(fold.members, 1):
        made, own = member.target, given(member.value, member.target)
        read = [leads[at] for at in member.leads]
        old = _rescaled(member, made.name, [each.old for each in read], read, spelled)
        added = aligned(own, member.value.axes, made.axes)
        if not fold.ahead:
            added = _rescaled(member, own, [each.own for each in read], read, spelled)
        name = made.name
        if number in leading:
            name = f"{made.name}_new"
            ends.append(f"{made.name} = {name}")
        leads.append(_Lead(made, made.name, own, name))
        lines.append(f"{name} = {MONOID_TEXT[member.monoid].format(old, added)}")
    return [*lines, *ends]


def _rescaled(
    member: Member, x: str, before: Sequence[str], leads: Sequence[_Lead], spelled: Spelled
) -> str:
    axes = member.target.axes
    old = [aligned(text, lead.tile.axes, axes) for text, lead in zip(before, leads, strict=True)]
    new = [aligned(lead.new, lead.tile.axes, axes) for lead in leads]
    return spelled(member.target, member.factor, (x, *old, *new))
