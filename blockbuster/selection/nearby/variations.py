"""Schedules near the default one, in the order of their closed-form cost.

Lanes of blocks, chunks, warps and stages vary. The default schedule is built anew for each choice
of lanes, because lanes decide which loops are cut into chunks, narrowed or kept. From the default
lanes, and from wider ones, the search moves to the best neighbour with one dim halved or doubled,
as long as that is cheaper. Then it varies chunks, and last the warps and stages of each kernel,
which it halves again where warps exchange what they fold; these and the lanes once more where
another form of single kernels (edits.py) is better. The order is fixed: the same program and sizes
give the same schedules on any computer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, zip_longest
from math import inf

from blockbuster.costs import known_time
from blockbuster.emit.schedule.base import Move
from blockbuster.emit.schedule.block import least_lanes
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.each_nest import Same
from blockbuster.emit.tile.layouts import WARP
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.ir.types import Dim
from blockbuster.selection.cost import Cost
from blockbuster.selection.decisions.default_schedule import begun_of
from blockbuster.selection.decisions.default_tiles import widest_computed
from blockbuster.selection.decisions.grouped_grid import grouped
from blockbuster.selection.decisions.overlapping import overlapped
from blockbuster.selection.decisions.persistent import may_run_in_pairs
from blockbuster.selection.decisions.usual_settings import KernelSetting, with_settings
from blockbuster.selection.nearby.arrangements import Arrangement, Arrangements, Chunks
from blockbuster.selection.nearby.edits import JAM, RECUT, WALK, edits
from blockbuster.selection.nearby.fitting import fitting
from blockbuster.selection.nearby.roles import Roles
from blockbuster.selection.nearby.settings import deeper, others, usual, with_stages
from blockbuster.selection.nearby.variation import Variation, apart
from blockbuster.selection.priors import PRIORS


def variations(
    scheduled: Scheduled, *, in_chunks: bool = True, other: float = inf
) -> tuple[Variation, ...]:
    """At most ``most_schedules`` schedules of the program of ``scheduled``, the cheapest first.

    ``in_chunks``: loops may be run in chunks. ``other``: the microseconds of another program, which
    is the better one if the first schedules are much slower, or those of the best lanes are slower:
    then these are all. None wants more registers or shared memory than a program can have; there
    are none if none that was looked at fits, or the machine lacks a rate that the program needs.
    """
    bare = begun_of(scheduled.start, scheduled.known, scheduled.target)
    search = _Search(bare, in_chunks)
    starts = search.starts()
    if min((one.microseconds for one in starts), default=0.0) > PRIORS.hopeless_factor * other:
        return search.ranked()
    for start in starts:
        search.walk(start)
    if search.least > PRIORS.hopeless_lanes_factor * other:
        return search.ranked()
    search.vary_chunks()
    search.vary_kernels()
    if len(bare.draft.nests) > 1 and search.products > 1:
        search.edit_kernels(RECUT)  # kernels of one nest have blocks of their own already
    search.vary_settings()
    search.part_warps()
    search.vary_chunks()
    if search.edit_kernels(WALK, JAM):
        search.vary_kernels()
        search.vary_settings()
    return search.ranked()


class _Search:
    """What was costed, by the text of its schedule; None: it does not fit. ``texts``: by the text
    of the moves before warps and stages, and by these."""

    def __init__(self, bare: Scheduled, in_chunks: bool) -> None:
        self.bare = bare
        self.default = Arrangement(chunks=None if in_chunks else ())
        self.roles = Roles.of(bare)
        self.arranged = Arrangements(bare, self.roles)
        self.texts: dict[tuple[str, tuple[KernelSetting, ...], bool], str] = {}
        self.found: dict[str, Variation | None] = {}
        self._usual: dict[Same[Scheduled], tuple[KernelSetting, ...]] = {}

    def usual(self, made: Scheduled) -> tuple[KernelSetting, ...]:
        """The default setting of each kernel."""
        key = Same(made)
        if key not in self._usual:
            self._usual[key] = usual(made)
        return self._usual[key]

    def ranked(self) -> tuple[Variation, ...]:
        """All that fit, the cheapest first; of equals, the one that was found first."""
        fit = (one for one in self.found.values() if one is not None)
        return tuple(sorted(fit, key=lambda one: one.microseconds))

    @property
    def least(self) -> float:
        """The microseconds of the best that fits; 0 if none does."""
        return min((one.microseconds for one in self.found.values() if one), default=0.0)

    @property
    def products(self) -> int:
        """How many kernels of the best have dots."""
        best = next(iter(self.ranked()), None)
        nests = best.scheduled.draft.nests if best else ()
        return sum(bool(least_lanes(nest, self.bare.draft.units)) for nest in nests)

    def starts(self) -> list[Variation]:
        """The default arrangement and a wider one, as far as they fit; single rows that are wide
        enough to be read from the cache again start without chunks, too.
        """
        first = self._costed(self.default)
        wide = replace(self.default, lanes=self.roles.wide(self.arranged.lanes(self.default)))
        found = [first, self._costed(wide)]
        if found[1] is not None and found[1].scheduled.draft.chunks and not self.roles.dots:
            found.append(self._costed(replace(wide, chunks=())))
        return [one for one in found if one is not None]

    def walk(self, here: Variation | None) -> None:
        """From a start to better lanes, one dim at a time, as long as that helps."""
        while here is not None and len(self.found) < PRIORS.walked_schedules:
            near = [self._costed(one) for one in self.arranged.neighbours(here.arrangement)]
            better = [one for one in near if one and one.microseconds < here.microseconds]
            here = min(better, key=_microseconds, default=None)

    def vary_chunks(self) -> None:
        """Half and twice the chunks of the best, and none, with the settings of the best."""
        if self.default.chunks is not None:
            return
        for one in self.ranked()[: PRIORS.refined_arrangements]:
            counts = {chunks.dim: chunks.count for chunks in one.scheduled.draft.chunks}
            for chunks in _other_chunks(counts):
                for settings in (one.settings, deeper(one.scheduled, one.settings)):
                    self._costed(replace(one.arrangement, chunks=chunks), settings)

    def vary_kernels(self) -> None:
        """From the best to other lanes for single kernels, one dim of each kernel at a time."""
        here, limit = next(iter(self.ranked()), None), len(self.found) + PRIORS.own_walked_schedules
        while here is not None and len(self.found) < limit:
            better: dict[int, Variation] = {}
            for number, arrangement in self.arranged.with_own(here.arrangement):
                one, best = self._costed(arrangement), better.get(number, here)
                if one is not None and one.microseconds < best.microseconds:
                    better[number] = one
            own = dict(here.arrangement.own)
            own |= {at: dict(one.arrangement.own)[at] for at, one in better.items()}
            together = replace(here.arrangement, own=tuple(sorted(own.items())))
            found = [*better.values(), self._costed(together)] if better else []
            here = min((one for one in found if one), key=_microseconds, default=None)

    def edit_kernels(self, *moves: Move) -> bool:
        """From the best to other forms of single kernels (edits.py), as long as one is better; True
        if that gave the best of all.
        """
        first = best = next(iter(self.ranked()), None)
        here = first and self._costed(first.arrangement, first.settings, in_groups=RECUT in moves)
        while here is not None:
            best = here
            tried = [self._edited(here, one) for one in self._edits(here.arrangement, moves)]
            here = min((one for one in tried if one), key=_microseconds, default=None)
        return best is not first

    def _edits(self, here: Arrangement, moves: Sequence[Move]) -> Iterator[Arrangement]:
        """Single kernels of an arrangement in other forms, or of those beside it."""
        beside = self.arranged.neighbours(here) if RECUT not in moves else ()
        for arrangement in (here, *beside):
            made = self.arranged.at(arrangement)
            for lines in edits(made, here.later, moves) if made else ():
                yield replace(arrangement, later=lines)

    def _edited(self, here: Variation, near: Arrangement) -> Variation | None:
        """``here`` with edits, if that is better."""
        made = self.arranged.at(near)
        if made is None:
            return None
        known = self.usual(made)
        alike = len(known) == len(here.settings)
        settings = with_stages(known, here.settings) if alike else known
        one = self._costed(near, settings, in_groups=near.later[-1].move == RECUT.name)
        if one is not None and near.later[-1].move == JAM.name and not _pays(one, here):
            self.found[one.scheduled.schedule] = None
            return None
        return one if one and one.microseconds < here.microseconds else None

    def vary_settings(self) -> None:
        """Other warps and stages for each kernel of the best, and for each what suited it best."""
        for one in self._best_arrangements():
            draft, tried = one.scheduled.draft, [one]
            each = [
                others(setting, draft, nest)
                for setting, nest in zip(one.settings, draft.nests, strict=True)
            ]
            for level in zip_longest(*each):
                settings = tuple(a or b for a, b in zip(level, one.settings, strict=True))
                made = self._costed(one.arrangement, settings)
                tried += [made] if made else []
            self._costed(one.arrangement, _best_of_each(tried))

    def part_warps(self) -> None:
        """From the best, if its warps exchange what they fold of short rows, to half of them, which
        have more of a row each, with as many rows or others, as long as that is cheaper.
        """
        here = next(iter(self.ranked()), None)
        while here is not None and len(here.settings) == 1 and _folds_across_warps(here.cost):
            half = replace(here.settings[0], warps=here.settings[0].warps // 2)
            near = (here.arrangement, *self.arranged.neighbours(here.arrangement))
            short = [one for one in near if _holds_little(self.arranged.at(one), half.warps)]
            tried = [self._costed(one, (half,)) for one in short]
            better = [one for one in tried if one and one.microseconds < here.microseconds]
            here = min(better, key=_microseconds, default=None)

    def _best_arrangements(self) -> list[Variation]:
        """The best few, and the best one whose warps multiply together: on an H200 a product of
        128 rows took 5.4 microseconds in tiles of 64 rows, 6.3 to 8.4 in tiles of 32. And the best
        whose programs run two to a processor in turn, which other warps may suit much better.
        """
        best: dict[Arrangement, Variation] = {}
        for one in self.ranked():
            best.setdefault(one.arrangement, one)
        ranked, few = list(best.values()), PRIORS.refined_arrangements
        first, others = ranked[:few], ranked[few:]
        together = (one for one in others if not apart(one))
        pairs = (one for one in others if may_run_in_pairs(one.cost.works, one.cost.machine))
        return [*first, *islice(together, 1 if all(map(apart, first)) else 0), *islice(pairs, 1)]

    def _costed(
        self,
        arrangement: Arrangement,
        settings: tuple[KernelSetting, ...] | None = None,
        *,
        in_groups: bool = False,
    ) -> Variation | None:
        """The schedule, costed unless it was before, or ``most_schedules`` were. ``in_groups``: its
        blocks are in groups where that saves loads.
        """
        made = self.arranged.at(arrangement)
        if made is None:
            return None
        known = self.usual(made)
        settings = settings if settings and len(settings) == len(known) else known
        key = made.schedule, settings, in_groups
        if key in self.texts:
            return self.found.get(self.texts[key])
        scheduled = overlapped(with_settings(made, settings))
        scheduled = grouped(scheduled) if in_groups else scheduled
        text = self.texts[key] = scheduled.schedule
        if text not in self.found and len(self.found) < PRIORS.most_schedules:
            cost = fitting(scheduled, made)
            unusual = sum(a.warps != b.warps for a, b in zip(settings, known, strict=True))
            one = Variation(scheduled, cost, arrangement, settings, unusual) if cost else None
            self.found[text] = one
        return self.found.get(text)


def _pays(two: Variation, one: Variation) -> bool:
    """True if two blocks to a program are better than ``one`` for certain, and load less.

    Programs side by side overlap better than two blocks in one: with depth 64, where 128 rows are
    one block of eight warps, two blocks of 64 rows by four warps took an H200 159 microseconds for
    4096 positions instead of 154.
    """
    faster = PRIORS.near_schedules_factor * two.microseconds < one.microseconds
    return faster and two.cost.moved < PRIORS.jammed_bytes_part * one.cost.moved


def _folds_across_warps(cost: Cost) -> bool:
    phases = [phase for work in cost.works for phase in work.phases]
    return any(phase.exchanges for phase in phases) and not any(phase.dots for phase in phases)


def _holds_little(made: Scheduled | None, warps: int) -> bool:
    """True if so many warps hold a few elements of each tile to a lane."""
    if made is None or not warps:
        return False
    widest = max(widest_computed(nest, tiling_of(made.draft, nest)) for nest in made.draft.nests)
    return widest <= PRIORS.parted_elements * WARP * warps


def _usual(made: Scheduled) -> Scheduled:
    return overlapped(with_settings(made, usual(made)))


def _other_chunks(counts: Mapping[Dim, int]) -> Iterator[Chunks]:
    """None of them, and one of them doubled or halved."""
    if counts:
        yield ()
    for dim, count in counts.items():
        for other in (2 * count, count // 2):
            if other > 1:
                yield tuple({**counts, dim: other}.items())


def _microseconds(one: Variation) -> float:
    return one.microseconds


def _best_of_each(tried: Sequence[Variation]) -> tuple[KernelSetting, ...]:
    """For each kernel the setting with which it took least time."""
    numbers = range(len(tried[0].settings))
    return tuple(min(tried, key=partial(_seconds, at)).settings[at] for at in numbers)


def _seconds(at: int, one: Variation) -> float:
    """Of the kernel of this number alone."""
    return known_time(one.cost.works[at], one.cost.machine).seconds
