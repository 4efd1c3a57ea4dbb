"""Which schedule is taken of those that a search found, where prices do not tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from blockbuster.costs import Work
from blockbuster.emit.schedule.jam import Jam
from blockbuster.selection.cost import Cost
from blockbuster.selection.decisions.usual_warps import warps_of_rows
from blockbuster.selection.limits import is_early
from blockbuster.selection.search import Priced

NEAR = 1.02
"""How many times the least price counts as equal. The closed form tells no less apart than 1.05,
but an edit is a step because it is cheaper, so what is left out for a preference adds up. It was
fitted to products whose programs take places in turn, two to a processor or one: there 1.
Without dots launches do not count, which are most of a short kernel's time and the same for all:
LayerNorm of 256 rows of 1024 takes 3.7 by the closed form with two rows to a program and 3.5 with
one, and 2.0 and 1.8 microseconds on an H200.
"""

TWO = 2
"""Programs on a processor that take places in turn, at most: none was measured with more."""


SURE, FEWER = 0.95, 0.9
"""The part of the price, and of the bytes between memory and processors, up to which two blocks to
a program are better than one for certain: programs side by side overlap better than two blocks in
one. With depth 64, where 128 rows are one block of eight warps, two blocks of 64 rows by four warps
took an H200 159 microseconds for 4096 positions instead of 154.
"""


def preferred(found: Sequence[Priced]) -> list[Priced]:
    """Schedules that fit, the cheapest first, in the order in which they are taken.

    First those that cost about as little: of them, those whose warps multiply together, four by
    four (on an H200 a product of 128 rows took 5.4 microseconds in tiles of 64 rows, 6.3 to 8.4 in
    tiles of 32), then the one that moves least between memory and processors, in tenths of the
    least, then the one with the more usual numbers of warps, then the one whose dots read least, in
    tenths too, then the cheapest. By 64 keys a step instead of 128, causal attention of depth 64
    took an H200 111 microseconds for 4096 positions instead of 101; by the closed form 126.1 and
    126.7.
    """
    fit = _without_vain_pairs([one for one in found if one.times.cost and not _is_early(one)])
    if not fit:
        return []
    limit = _limit(_cost(fit[0]))
    near = [one for one in fit if one.microseconds <= limit]
    return [*sorted(near, key=partial(_preference, near)), *fit[len(near) :]]


def _without_vain_pairs(found: Sequence[Priced]) -> list[Priced]:
    """``found`` without two blocks to a program where that is not better for certain."""
    alone = next((one for one in found if not _has_pairs(one)), None)
    if alone is None:
        return list(found)
    most, moved = SURE * alone.microseconds, FEWER * _cost(alone).moved
    return [
        one
        for one in found
        if not _has_pairs(one) or (one.microseconds < most and _cost(one).moved < moved)
    ]


def _is_early(one: Priced) -> bool:
    return is_early(one.scheduled, _cost(one))


def _has_pairs(one: Priced) -> bool:
    return any(line.move == Jam.name for line in one.scheduled.moves)


def _cost(one: Priced) -> Cost:
    assert one.times.cost is not None, "it fits"
    return one.times.cost


def _limit(least: Cost) -> float:
    """The most microseconds that count as equal to those of ``least``."""
    dots = any(phase.dots for work in least.works for phase in work.phases)
    began = 0.0 if dots else least.launching
    near = 1.0 if any(_are_two_in_turn(work, least) for work in least.works) else NEAR
    return began + near * (least.microseconds - began)


def _are_two_in_turn(work: Work, cost: Cost) -> bool:
    return work.in_turn and work.footprint.resident(cost.machine) == TWO


def _preference(near: Sequence[Priced], one: Priced) -> tuple[bool, int, int, int, float]:
    """What the order of ``near`` schedules, the cheapest first, goes by."""
    least = max(min(_cost(other).moved for other in near), 1)
    fewest = max(min(map(_read, near)), 1)
    moved, tenths = 10 * _cost(one).moved // least, 10 * _read(one) // fewest
    return _apart(one), moved, _unusual(one), tenths, one.microseconds


def _unusual(one: Priced) -> int:
    """How many kernels have another number of warps than is usual for their blocks."""
    nests = one.scheduled.draft.nests
    return sum(nest.warps != warps_of_rows(one.scheduled, nest) for nest in nests)


def _read(one: Priced) -> int:
    """Bytes that dots read from shared memory."""
    return sum(phase.fetched for work in _cost(one).works for phase in work.phases)


def _apart(one: Priced) -> bool:
    """True if warps multiply alone that could do so together, with more rows."""
    return any(phase.apart for work in _cost(one).works for phase in work.phases)
