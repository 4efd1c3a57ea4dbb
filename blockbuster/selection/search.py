"""A beam search through the space of a program's schedules, by a price.

From the best few schedules so far the search looks at all neighbours, keeps the best few of all
that it has seen, and ends when a step makes none of them better, or a budget of prices is spent.
The budget counts schedules, not seconds, so the same program gives the same schedule on every
computer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.program import TileProgram
from blockbuster.selection.nearby.fitting import rooms
from blockbuster.selection.nearby.settings import is_held
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS
from blockbuster.selection.space import Space

Price = Callable[[Scheduled], float]
"""The microseconds of a schedule; infinite if its programs do not fit."""


@dataclass(frozen=True)
class Priced:
    """A schedule with its price. ``edits`` lead to it from the one that the search began with."""

    microseconds: float
    scheduled: Scheduled
    edits: tuple[str, ...] = ()


def beam(
    starts: Iterable[Scheduled], price: Price, *, budget: int, width: int = PRIORS.beam
) -> tuple[Priced, ...]:
    """The schedules that a search from ``starts`` has priced, the cheapest first.

    All ``starts`` are schedules of one program for the same sizes. ``budget``: the most schedules
    that are priced beside them. Of two that cost the same, the one that was found first is first.
    """
    begun = tuple(starts)
    space = Space(begun[0])
    found = {one.draft: Priced(price(one), one) for one in begun}
    expanded: dict[TileProgram, None] = {}
    while True:
        best = sorted(found.values(), key=_microseconds)[:width]
        left = [one for one in best if one.scheduled.draft not in expanded]
        if not left or len(found) >= budget + len(begun):
            return tuple(sorted(found.values(), key=_microseconds))
        for one in left:
            expanded[one.scheduled.draft] = None
            for near in space.neighbours(one.scheduled):
                if len(found) >= budget + len(begun):
                    break
                made = near.scheduled
                if made.draft not in found:
                    found[made.draft] = Priced(price(made), made, (*one.edits, near.edit))


def microseconds(scheduled: Scheduled) -> float:
    """The price of a schedule; infinite if a program does not fit, or wants more registers than
    there are.
    """
    if not is_held(scheduled):
        return inf
    try:
        cost = priced(scheduled)
    except ValueError:  # it does not fit a processor, or the machine lacks a rate
        return inf
    return inf if cost.spills_beside(rooms(scheduled)) else cost.microseconds


def _microseconds(one: Priced) -> float:
    return one.microseconds
