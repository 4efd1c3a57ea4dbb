"""Schedules near the default one, the cheapest by the closed form first.

Lanes of blocks, chunks, warps and stages vary. The default schedule is arranged anew for each
choice of lanes, since it depends on them which loops are run in chunks, narrowed or kept. From the
default lanes, and from wider ones, the search goes on to the best of those with one dim halved or
doubled, as long as that is better; then come chunks, and last the warps and stages of each kernel.
All that in a fixed order: the same program and sizes give the same schedules on any computer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from math import inf

from blockbuster.costs import time_of
from blockbuster.emit.schedule.block import LEAST, dims_of_dots, unlooped
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.program import Let, TileProgram, statements
from blockbuster.emit.tile.tiling import Tiling, power_of_two, tiling_of
from blockbuster.emit.tile.trips import dims_in
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.errors import EmitError
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.cost import Cost, cost_of
from blockbuster.selection.default_schedule import arranged
from blockbuster.selection.default_tiles import WHOLE, repeated_dims
from blockbuster.selection.grouped_grid import grouped
from blockbuster.selection.overlapping import overlapped
from blockbuster.selection.own_blocks import (
    Own,
    kernels_of_dots,
    others_near,
    with_own_blocks,
)
from blockbuster.selection.settings import (
    STAGES,
    KernelSetting,
    deeper,
    is_held,
    others,
    usual,
    with_settings,
    with_stages,
)
from blockbuster.selection.split_floats import split_floats
from blockbuster.selection.split_tiles import split_tiles

MOST = 48
"""Schedules that are costed, at most."""

WALKED = 24
"""Of these, at most so many before chunks, warps and stages are varied."""

OWN = 16  # and so many more for each kernel of dots, where there are several

REFINED = 2
"""Arrangements whose chunks, warps and stages are varied: the best ones."""

HOPELESS = 1.6
"""How many times as long as another program the first schedules may take for more to be tried."""

WIDEST = 256
"""Lanes of a dim of dots, at most."""

NARROWEST = 32
"""Lanes of a dim of dots, at least, but of their rows: matrix units take half as many slowly."""

LINE = 1 << 14  # lanes of other dims, at most

Lanes = tuple[tuple[Dim, int], ...]
Chunks = tuple[tuple[Dim, int], ...] | None


@dataclass(frozen=True)
class Arrangement:
    """What the moves before warps and stages depend on.

    ``lanes``: those that are asked for instead of the default ones. ``chunks``: in how many chunks
    loops over some dims are run; None: as many as the default schedule has. ``own``: blocks of
    single kernels, after all that.
    """

    lanes: Lanes = ()
    chunks: Chunks = None
    own: Own = ()


@dataclass(frozen=True)
class Variation:
    """A schedule with its cost, and what it was made from. ``unusual``: kernels whose number of
    warps is not the usual one."""

    scheduled: Scheduled
    cost: Cost
    arrangement: Arrangement
    settings: tuple[KernelSetting, ...]
    unusual: int = 0

    @property
    def microseconds(self) -> float:
        """What it costs."""
        return self.cost.microseconds


NEAR = 1.05
"""How many times the least cost counts as equal: the closed form tells no less apart. It takes two
programs of 128 x 128 to a processor for 4% faster than one of 128 x 256, the best of all measured.
"""


def preferred(found: Sequence[Variation]) -> list[Variation]:
    """Variations, the cheapest of which is the first, in the order in which they are taken.

    First those that cost about as little: of them, the one that moves least between memory and
    processors, in tenths of the least, then the one with the more usual numbers of warps, then the
    cheapest.
    """
    limit = NEAR * found[0].microseconds if found else 0.0
    near = [one for one in found if one.microseconds <= limit]
    least = max(min((one.cost.moved for one in near), default=1), 1)
    return [*sorted(near, key=partial(_preference, least)), *found[len(near) :]]


def _preference(least: int, one: Variation) -> tuple[int, int, float, int]:
    stages = sum(STAGES.index(setting.stages) for setting in one.settings)
    return 10 * one.cost.moved // least, one.unusual, one.microseconds, stages


def variations(
    scheduled: Scheduled, *, in_chunks: bool = True, other: float = inf
) -> tuple[Variation, ...]:
    """At most ``MOST`` schedules of the program of ``scheduled``, the cheapest first.

    ``in_chunks``: loops may be run in chunks. ``other``: the microseconds of another program, which
    is the better one if the first schedules are much slower: then these are all. None of the
    schedules wants more registers or shared memory than a program can have; there are none at all
    if none that was looked at fits, or the machine lacks a rate that the program needs.
    """
    search = _Search(replace(scheduled, draft=scheduled.start, moves=()), in_chunks)
    starts = search.starts()
    if min((one.microseconds for one in starts), default=0.0) > HOPELESS * other:
        return search.ranked()
    for start in starts:
        search.walk(start)
    search.vary_chunks()
    search.vary_kernels()
    search.vary_settings()
    search.vary_chunks()
    return search.ranked()


class _Search:
    """What was costed, by the text of its schedule; None: it does not fit. ``texts``: by the text
    of the moves before warps and stages, and by these."""

    def __init__(self, bare: Scheduled, in_chunks: bool) -> None:
        self.bare = bare
        self.default = Arrangement(chunks=None if in_chunks else ())
        self.roles = _Roles.of(bare)
        self.most = MOST
        self.arranged: dict[Arrangement, Scheduled | None] = {}
        self.texts: dict[tuple[str, tuple[KernelSetting, ...], bool], str] = {}
        self.found: dict[str, Variation | None] = {}

    def ranked(self) -> tuple[Variation, ...]:
        """All that fit, the cheapest first; of equals, the one that was found first."""
        fit = (one for one in self.found.values() if one is not None)
        return tuple(sorted(fit, key=_microseconds))

    def starts(self) -> list[Variation]:
        """The default arrangement and a wider one, as far as they fit."""
        first = self._costed(self.default)
        lanes = dict(self._lanes(self.default))
        wide = {dim: self.roles.wider(dim, count) for dim, count in lanes.items()}
        second = self._costed(replace(self.default, lanes=tuple(wide.items())))
        return [one for one in (first, second) if one is not None]

    def walk(self, here: Variation | None) -> None:
        """From a start to better lanes, one dim at a time."""
        while here is not None and len(self.found) < WALKED:
            least, near = here.microseconds, self._neighbours(here.arrangement)
            better = [v for v in map(self._costed, near) if v and v.microseconds < least]
            here = min(better, key=_microseconds, default=None)

    def vary_kernels(self) -> None:
        """Other blocks for each kernel of dots, as long as that is better."""
        best = next(iter(self.ranked()), None)
        for number in kernels_of_dots(best.scheduled) if best else ():
            self.most += OWN
            assert best is not None
            stages = best.settings
            here = self._costed(best.arrangement, stages, in_groups=True)
            while here:
                best, owns = here, others_near(here.scheduled, number, here.arrangement.own)
                tried = (replace(here.arrangement, own=own) for own in owns)
                costed = [self._costed(one, stages, in_groups=True) for one in tried]
                better = [o for o in costed if o and o.microseconds < best.microseconds]
                here = min(better, key=_microseconds, default=None)

    def vary_chunks(self) -> None:
        """Half and twice the chunks of the best, and none, with the settings of the best."""
        if self.default.chunks is not None:
            return
        for one in self.ranked()[:REFINED]:
            counts = {chunks.dim: chunks.count for chunks in one.scheduled.draft.chunks}
            for chunks in _other_chunks(counts):
                for settings in (one.settings, deeper(one.scheduled, one.settings)):
                    self._costed(replace(one.arrangement, chunks=chunks), settings)

    def vary_settings(self) -> None:
        """Other warps and stages for each kernel of the best, and for each what suited it best."""
        for one in self._best_arrangements() if not _split(self.bare) else ():
            draft, tried = one.scheduled.draft, [one]
            each = [
                others(setting, nest, tiling_of(draft, nest))
                for setting, nest in zip(one.settings, draft.nests, strict=True)
            ]
            for level in zip_longest(*each):
                settings = tuple(a or b for a, b in zip(level, one.settings, strict=True))
                made = self._costed(one.arrangement, settings)
                tried += [made] if made else []
            self._costed(one.arrangement, _best_of_each(tried))

    def _best_arrangements(self) -> list[Variation]:
        best: dict[Arrangement, Variation] = {}
        for one in self.ranked():
            best.setdefault(one.arrangement, one)
        return list(best.values())[:REFINED]

    def _costed(
        self,
        arrangement: Arrangement,
        settings: tuple[KernelSetting, ...] | None = None,
        *,
        in_groups: bool = False,
    ) -> Variation | None:
        """The schedule, costed unless it was before, or ``MOST`` were. ``in_groups``: its grids
        are in groups where that saves loads, and only the stages of ``settings`` are taken."""
        made = self._arranged(arrangement)
        if made is None:
            return None
        known = usual(made)
        settings = settings if settings and len(settings) == len(known) else known
        settings = with_stages(known, settings) if in_groups else settings
        key = made.schedule, settings, in_groups
        if key in self.texts:
            return self.found.get(self.texts[key])
        scheduled = overlapped(with_settings(made, settings))
        scheduled = grouped(scheduled) if in_groups else scheduled
        text = self.texts[key] = scheduled.schedule
        if text not in self.found and len(self.found) < self.most:
            cost = _fitting(scheduled)
            unusual = sum(a.warps != b.warps for a, b in zip(settings, known, strict=True))
            one = Variation(scheduled, cost, arrangement, settings, unusual) if cost else None
            self.found[text] = one
        return self.found.get(text)

    def _arranged(self, arrangement: Arrangement) -> Scheduled | None:
        if arrangement not in self.arranged:
            self.arranged[arrangement] = self._arrange(arrangement)
        return self.arranged[arrangement]

    def _arrange(self, arrangement: Arrangement) -> Scheduled | None:
        if arrangement.own:
            made = self._arranged(replace(arrangement, own=()))
            return with_own_blocks(made, arrangement.own) if made else None
        chunks = None if arrangement.chunks is None else dict(arrangement.chunks)
        lanes = {**self.roles.usual, **dict(arrangement.lanes)} if arrangement.lanes else {}
        dots, plain = (lanes, {}) if self.roles.dots else ({}, lanes)
        try:
            return arranged(self.bare, tiles=plain, of_dots=dots, chunks=chunks)
        except EmitError:  # these lanes do not go together, or no such loop can be in chunks
            return None

    def _lanes(self, arrangement: Arrangement) -> Lanes:
        """The lanes of the dims that vary, as they are in an arrangement."""
        made = self._arranged(arrangement)
        if made is None:
            return ()
        blocks: dict[Dim, int] = {}
        for nest in made.draft.nests:
            if not self.roles.dots or dims_of_dots(nest, made.draft.units):
                blocks |= {block.dim: block.lanes for block in nest.blocks}
        return tuple((dim, blocks[dim]) for dim in self.roles.varying if dim in blocks)

    def _neighbours(self, arrangement: Arrangement) -> Iterator[Arrangement]:
        """The same with one dim doubled or halved."""
        lanes = self._lanes(arrangement)
        for at, (dim, count) in enumerate(lanes):
            for other in (2 * count, count // 2):
                if self.roles.least(dim) <= other <= self.roles.most(dim):
                    changed = (*lanes[:at], (dim, other), *lanes[at + 1 :])
                    yield replace(arrangement, lanes=changed)


@dataclass(frozen=True)
class _Roles:
    """``varying``: the dims whose lanes vary, those of ``dots`` if there are any. ``rows``: of
    results of dots. ``kept``: those that start wider, too: of results of dots, or along rows.
    ``again``: those whose blocks have dots done again; they are not cut further than usual. Scores
    made twice for halves of their columns took self-attention 7.4 microseconds instead of 5.5.
    ``usual``: no lanes asked for, for each dim; another of its size class would speak for it.
    """

    varying: tuple[Dim, ...]
    dots: tuple[Dim, ...]
    rows: tuple[Dim, ...]
    kept: tuple[Dim, ...]
    again: tuple[Dim, ...]
    usual: Mapping[Dim, int]
    sizes: Mapping[Dim, int]

    @staticmethod
    def of(bare: Scheduled) -> _Roles:
        """Those of a program before the first move."""
        program = bare.draft
        units = program.units
        dots = tuple(dict.fromkeys(d for n in program.nests for d in dims_of_dots(n, units)))
        cut = dict.fromkeys(d for n in program.nests for d in dims_in(n))
        fixed = {d for n in program.nests for d in unlooped(n, units)}
        fixed |= _split(bare).keys()
        free = [d for d in dots or cut if size_class(d) not in units and d not in fixed]
        results = _results(program)
        rows, kept = (tuple(d for d in free if d in found) for found in results)
        again, usual = repeated_dims(program), dict.fromkeys(cut, 0)
        return _Roles(tuple(free), dots, rows, kept, again, usual, bare.sizes)

    def least(self, dim: Dim) -> int:
        """Lanes of a dim, at least."""
        if dim not in self.dots:
            return 1
        if dim in self.again:
            return min(WHOLE, self.most(dim))
        return LEAST if dim in self.rows else min(NARROWEST, self.most(dim))

    def most(self, dim: Dim) -> int:
        """Lanes of a dim, at most."""
        dot = dim in self.dots
        size = power_of_two(self.sizes[size_class(dim)], LEAST if dot else 1)
        return min(size, WIDEST if dot else LINE)

    def wider(self, dim: Dim, lanes: int) -> int:
        """Lanes to start from, too: of dots, twice those of results; else single rows, whole."""
        if dim in self.dots:
            return min(2 * lanes, self.most(dim)) if dim in self.kept else lanes
        return self.most(dim) if dim in self.kept else 1


def _results(program: TileProgram) -> tuple[dict[Dim, None], dict[Dim, None]]:
    """The rows of dots, and all dims of their results; without dots none, and last axes."""
    tiling, rows, found = Tiling({}, program.units), dict[Dim, None](), dict[Dim, None]()
    lets = [s for n in program.nests for s in statements(n.body) if isinstance(s, Let)]
    dots = [let for let in lets if is_matrix_dot(let, tiling)]
    for let in dots or lets:
        lanes = tiling.lanes(let.target)
        rows.update(dict.fromkeys(lanes[:1] if dots else ()))
        found.update(dict.fromkeys(lanes if dots else lanes[1:]))
    return rows, found


def _other_chunks(counts: Mapping[Dim, int]) -> Iterator[Chunks]:
    """None of them, and one of them doubled or halved."""
    if counts:
        yield ()
    for dim, count in counts.items():
        for other in (2 * count, count // 2):
            if other > 1:
                yield tuple({**counts, dim: other}.items())


def _split(bare: Scheduled) -> dict[Dim, int]:
    return split_tiles(split_floats(bare).draft, bare.sizes, bare.target.processors)


def _microseconds(one: Variation) -> float:
    return one.microseconds


def _best_of_each(tried: Sequence[Variation]) -> tuple[KernelSetting, ...]:
    """For each kernel the setting with which it took least time."""
    numbers = range(len(tried[0].settings))
    return tuple(min(tried, key=partial(_seconds, at)).settings[at] for at in numbers)


def _seconds(at: int, one: Variation) -> float:
    """Of the kernel of this number alone."""
    return time_of(one.cost.works[at], one.cost.machine).seconds


def _fitting(scheduled: Scheduled) -> Cost | None:
    """What a schedule costs; None if a program does not fit, or no rate is known for it."""
    if not is_held(scheduled):
        return None
    try:
        cost = cost_of(scheduled)
    except ValueError:
        return None
    return None if cost.spills else cost
