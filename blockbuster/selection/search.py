"""A search through the space of a program's schedules, by a price.

It climbs: at one spot of the script after another (space.py) it prices all edits, and goes on from
the best one, at the same spot first, if that is better by more than ``WORTH``. Spots of kernels
that take most of the time come first; kernels that take next to none of it are left as they are,
and so is what was in vain for a kernel until another line of it changes.

From each start it climbs by ``COARSE`` moves alone, ``LOOKED`` schedules at most; then, with all
moves, from the best of all. Some lines pay only together with others, such as two blocks of rows to
a program with larger blocks. So then it climbs, a few steps each, from the cheapest schedule of
each other *kind*, which has another number of lines of some of the moves ``KINDS``; from all
``BEAM`` best kinds, or until a budget of prices is spent. The budget counts schedules, not
seconds, so the same program gives the same schedule on every computer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.stage import BY_DESCRIPTORS
from blockbuster.emit.tile.program import Block, TileProgram
from blockbuster.selection.price import Times
from blockbuster.selection.space import DROP, INSERT, Space, Spot

BEAM = 6
"""Kinds of schedules from which the search climbs."""

KINDS = ("chunk", "walk", "persist", "jam", "pack")
"""The moves whose lines make schedules of another kind: they change who computes what."""

COARSE, LOOKED = ("block", "chunk", "recut", "warps"), 12
"""The moves by which the search climbs from each start, and how many schedules of one kernel it
prices there; half as many more for each kernel more."""

FAR = 1.25
"""How many times ``hopeless`` all starts may take for a first climb."""

WORTH = 0.997
"""The part of the price up to which an edit is worth a step: edits that matter gain more. Only
descriptors may gain less, for they let places take turns, which another line says."""


Price = Callable[[Scheduled], Times]


@dataclass(frozen=True)
class Priced:
    """A schedule with its times. ``edits`` lead to it from the one that the search began with."""

    times: Times
    scheduled: Scheduled
    edits: tuple[str, ...] = ()

    @property
    def microseconds(self) -> float:
        """Its price."""
        return self.times.microseconds

    def share(self, nest: int) -> float:
        """The part of the time that a kernel takes, or all for the whole program."""
        each = self.times.each
        return each[nest - 1] / self.microseconds if 0 < nest <= len(each) else 1.0


def beam(
    starts: Iterable[Scheduled],
    price: Price,
    *,
    budget: int,
    width: int = BEAM,
    moves: Collection[str] = (),
    hopeless: float = inf,
) -> tuple[Priced, ...]:
    """The schedules that a search from ``starts`` has priced, the cheapest first.

    All ``starts`` are schedules of one program for the same sizes; if there are several, the first
    is only priced. ``budget``: the most schedules that are priced beside them. ``moves``: those
    whose lines are edited, all if there are none. The search ends early if after the climbs from
    ``starts`` all take ``hopeless`` microseconds or more. Of two that cost the same, the one that
    was found first is first.
    """
    begun = tuple({one.draft: one for one in starts}.values())
    search = _Search(Space(begun[0]), price, budget + len(begun))
    for one in begun:
        search.add(Priced(price(one), one))
    found = search.ranked()
    if len(found) > 1 and found[0].microseconds < FAR * hopeless:
        others = (one for one in reversed(found) if one.scheduled is not begun[0])
        for start in {_blocks(one): one for one in others}.values():
            search.climb(start, COARSE, _looked(start))
    if search.ranked()[0].microseconds < hopeless:
        search.climb_all(moves, width)
    return search.ranked()


def _looked(start: Priced) -> int:
    """How many schedules are priced in the climb from a start."""
    return LOOKED * (1 + len(start.scheduled.draft.nests)) // 2


def _blocks(one: Priced) -> tuple[tuple[Block, ...], ...]:
    """Of starts with the same blocks, only the cheapest is climbed from."""
    return tuple(nest.blocks for nest in one.scheduled.draft.nests)


@dataclass
class _Search:
    """``found``: all that were priced. ``climbed``: those where a climb began or ended; ``looked``:
    the same of climbs that price few.
    """

    space: Space
    price: Price
    most: int
    found: dict[TileProgram, Priced] = field(default_factory=dict)
    climbed: set[TileProgram] = field(default_factory=set)
    looked: set[TileProgram] = field(default_factory=set)

    def add(self, one: Priced) -> None:
        """Remember one that was priced."""
        self.found.setdefault(one.scheduled.draft, one)

    def ranked(self) -> tuple[Priced, ...]:
        """All that were priced, the cheapest first."""
        return tuple(sorted(self.found.values(), key=_microseconds))

    def climb_all(self, moves: Collection[str], width: int) -> None:
        """From the best as long as there is a better one, then from the best other kinds."""
        while len(self.found) < self.most:
            best, *others = self._kinds()[:width]
            here = next((o for o in others if o.scheduled.draft not in self.looked), None)
            if best.scheduled.draft not in self.climbed:
                self.climb(best, moves)
            elif here is not None:
                self.climb(here, moves, LOOKED)
            else:
                break

    def _kinds(self) -> list[Priced]:
        """The cheapest schedule of each kind."""
        found = dict[tuple[str, ...], Priced]()
        for one in self.ranked():
            lines = sorted(line.move for line in one.scheduled.moves if line.move in KINDS)
            found.setdefault(tuple(lines), one)
        return list(found.values())

    def climb(self, here: Priced, moves: Collection[str] = (), most: int = 0) -> None:
        """From a schedule to better ones, by these moves, all if there are none, until no spot has
        one, or ``most`` schedules more are priced, if that is a number, or the budget is spent.
        """
        until = min(self.most, len(self.found) + most) if most else self.most
        left, in_vain = list(self._spots(here, moves)), set[Spot]()
        done = self.looked if most else self.climbed
        done.add(here.scheduled.draft)
        while left and len(self.found) < until:
            spot = left.pop(0)
            better = self._best_at(here, spot, until)
            if better is None:
                in_vain.add(spot)
                continue
            alike = len(better.scheduled.draft.nests) == len(here.scheduled.draft.nests)
            here, nest = better, spot.site.nest
            in_vain = {s for s in in_vain if alike and nest and s.site.nest not in (0, nest)}
            left = [s for s in _from(self._spots(here, moves), spot) if s not in in_vain]
        if not left:
            done.add(here.scheduled.draft)

    def _spots(self, here: Priced, moves: Collection[str]) -> Iterator[Spot]:
        """The spots that are worth a look, those of the slowest kernels first."""
        spots = [s for s in self.space.spots(here.scheduled) if not moves or s.move in moves]
        worth = (
            spot
            for spot in spots
            if here.share(spot.site.nest) > 1.0 - WORTH and not _is_told(spot, here.scheduled)
        )
        yield from sorted(worth, key=lambda s: (s.tier, -here.share(s.site.nest)))

    def _best_at(self, here: Priced, spot: Spot, until: int) -> Priced | None:
        """The cheapest edit at a spot; None if none is worth a step."""
        best: Priced | None = None
        for near in self.space.edited(here.scheduled, spot):
            made = near.scheduled
            if made.draft not in self.found:
                if len(self.found) >= until:
                    break
                self.add(Priced(self.price(made), made, (*here.edits, near.edit)))
            one = self.found[made.draft]
            worth = 1.0 if near.edit.endswith(" ".join(BY_DESCRIPTORS)) else WORTH
            least = best.microseconds if best else worth * here.microseconds
            best = one if one.microseconds < least else best
        return best


def _is_told(spot: Spot, scheduled: Scheduled) -> bool:
    """True if lines of ``block`` say already what one more line of ``recut`` would, or a nest would
    get its usual warps, which is an edit of its line.
    """
    alone = [line for line in scheduled.moves if line.move == "block" and line.site == spot.site]
    one = len(scheduled.draft.nests) == 1 or bool(alone)
    recut = spot.move == "recut" and spot.kind == INSERT and one and not scheduled.draft.chunks
    return recut or (spot.kind == DROP and spot.move == "warps")


def _from(spots: Iterable[Spot], first: Spot) -> Sequence[Spot]:
    """The same spots beginning at one, those before it last."""
    known = tuple(spots)
    at = known.index(first) if first in known else 0
    return (*known[at:], *known[:at])


def _microseconds(one: Priced) -> float:
    return one.microseconds
