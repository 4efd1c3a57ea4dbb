"""The programs of one kernel on a device: their jobs in order, and how processors take them.

Iterations of an innermost loop are taken together in groups: the loads of a group are one job, and
each step of its arithmetic another. If loads run ahead, those of later iterations are under way
while a group computes; a group starts when the loads of its first iteration have arrived. Blocks of
arrays are told apart by groups, too: the part of a block that has to come from memory is decided
where a program first touches it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TypeAlias

from blockbuster.costs.phases import Phase
from blockbuster.costs.work import Work
from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.grid_order import programs_in_order
from blockbuster.ir.types import Dim
from blockbuster.simulator.access import Access, Row
from blockbuster.simulator.body import Body, Loop, busiest
from blockbuster.simulator.clock import Actor
from blockbuster.simulator.demand import Demand
from blockbuster.simulator.device import Device, Moved
from blockbuster.simulator.sharing import Job

Queue: TypeAlias = Iterator[tuple[int, dict[Dim, int]]]

ONCE = range(1)
"""The iterations of no loop: one."""

JOBS = 30_000
"""Loads and steps of arithmetic, of all programs, that take a few seconds to simulate."""

STEPS = 3
"""Loads, dots and what is computed of them: the jobs of one iteration, at most."""

FEWEST = 4
"""Groups of the longest loop, at least: loads and arithmetic overlap between groups."""


def places(extents: Extents) -> Iterator[dict[Dim, int]]:
    """The number of each program's block of each dim of the grid."""
    grid = extents.nest.grid
    counts = tuple(map(extents.trips, grid))
    for numbers in programs_in_order(extents.nest, counts).tolist():
        yield dict(zip(grid, numbers, strict=True))


def iterations_of_group(work: Work) -> int:
    """As few iterations as ``JOBS`` allows, but so that the longest loop has ``FEWEST`` groups."""
    inside = [phase for phase in work.phases if phase.dims]
    runs = sum(phase.runs for phase in inside)
    longest = max((_most(phase, work) for phase in inside), default=1)
    return max(1, min(-(-runs * STEPS // JOBS), longest // FEWEST))


def _most(phase: Phase, work: Work) -> int:
    """The iterations of a loop in the program that has most of them."""
    return ceil(max(phase.each, default=phase.runs / work.programs))


@dataclass(frozen=True)
class Here:
    """The place of one program, and its number."""

    processor: int
    place: dict[Dim, int]
    program: int


@dataclass(frozen=True)
class Stretch:
    """Part of a program in the timeline: ``what`` it does, from when to when."""

    program: int
    processor: int
    what: str
    resource: str
    start: float
    end: float


@dataclass(frozen=True)
class _Walk:
    """The blocks that a loop walks at a place, with the blocks of arrays that its body touches."""

    body: Body
    blocks: range
    here: Here
    loads: list[Row]
    stores: list[Row]

    @staticmethod
    def of(loop: Loop, blocks: range, here: Here) -> _Walk:
        """Those of ``loop``."""
        rows = (_rows(part, loop.dim, here) for part in (loop.body.loads, loop.body.stores))
        return _Walk(loop.body, blocks, here, *rows)


class _Left:
    """The iterations of walks whose loads are not asked for yet; ``count``: of those that are."""

    def __init__(self, walks: Sequence[_Walk]) -> None:
        self._left, self.count = deque((walk, walk.blocks) for walk in walks), 0

    def taken(self, iterations: int) -> Iterator[tuple[_Walk, range]]:
        """The next ones, in a part for each walk."""
        while iterations and self._left:
            walk, blocks = self._left.popleft()
            if blocks[iterations:]:
                self._left.appendleft((walk, blocks[iterations:]))
            part = blocks[:iterations]
            iterations -= len(part)
            self.count += len(part)
            if part:
                yield walk, part


class Programs:
    """``together``: how many iterations of each loop make a group, at least one."""

    def __init__(self, device: Device, body: Body, together: int) -> None:
        self.device, self.body, self.together = device, body, together
        self.clock = device.clock
        self.stretches: list[Stretch] = []
        self._running: Counter[int] = Counter()
        self._free: list[int] = []
        self._queue: Queue = iter(())
        self._done = self.clock.joined(0)
        self._repeated: dict[tuple[Body, int], list[Demand]] = {}
        self.resources = [busiest(loop.body, device.machine) for loop in body.loops]
        self.resource = busiest(body, device.machine)

    def run(self, places: Iterator[dict[Dim, int]], count: int, resident: int) -> Job:
        """Start ``count`` programs, in order, ``resident`` at a time on each processor.

        The job is done when all of them are.
        """
        self._queue, self._done = enumerate(places), self.clock.joined(count)
        processors = range(self.device.machine.processors)
        self._free = [processor for _ in range(resident) for processor in processors]
        self._dispatch()
        return self._done

    def _dispatch(self) -> None:
        """Processors with room take programs, one each in turn, those first that run the fewest."""
        free, self._free = self._free, []
        taken = Counter(self._running)
        turns = []
        for at, processor in enumerate(free):
            turns.append((taken[processor], at, processor))
            taken[processor] += 1
        for _, _, processor in sorted(turns):
            program = next(self._queue, None)
            if program is None:
                return
            self._running[processor] += 1
            self.clock.start(self._program(Here(processor, program[1], program[0])))

    def _left(self, processor: int) -> None:
        """Programs that end at the same time leave room before any other is taken."""
        self._running[processor] -= 1
        self._free.append(processor)
        if len(self._free) == 1:
            self.clock.later(0.0, self._dispatch)
        self.clock.given(self._done)

    def _program(self, here: Here) -> Actor:
        body, memory = self.body, self.device.machine.memory.name
        yield from self._noted("loads", memory, here, self._loads(body, here))
        for loop, resource in zip(body.loops, self.resources, strict=True):
            what = f"loop over {loop.dim}"
            yield from self._noted(what, resource, here, self._loop(loop, here))
        yield from self._noted("the rest", self.resource, here, self._end(body, here))
        self._left(here.processor)

    def _noted(self, what: str, resource: str, here: Here, actor: Actor) -> Actor:
        start = self.clock.now
        yield from actor
        if self.clock.now > start:
            end = self.clock.now
            self.stretches.append(Stretch(here.program, here.processor, what, resource, start, end))

    def _run(self, body: Body, here: Here) -> Actor:
        yield from self._loads(body, here)
        for loop in body.loops:
            yield from self._loop(loop, here)
        yield from self._end(body, here)

    def _loads(self, body: Body, here: Here) -> Actor:
        if body.loads:
            moved = self._fetched(body, _rows(body.loads, "", here), ONCE, ONCE, here)
            yield self.device.load(here.processor, moved)

    def _end(self, body: Body, here: Here) -> Actor:
        for step in body.steps:
            yield self.device.compute(here.processor, step)
        if body.stores:
            yield self._store(body, _rows(body.stores, "", here), ONCE, ONCE, here)

    def _loop(self, loop: Loop, here: Here) -> Actor:
        blocks = loop.walked(here.place)
        if loop.flat:
            yield from self._flat(loop, here)
        elif loop.body.loops:
            for number in blocks:
                inside = Here(here.processor, {**here.place, loop.dim: number}, here.program)
                yield from self._run(loop.body, inside)
        elif loop.body.ahead:
            yield from self._ahead(loop.body, [_Walk.of(loop, blocks, here)])
        else:
            yield from self._in_turn(loop, blocks, here)

    def _in_turn(self, loop: Loop, blocks: range, here: Here) -> Actor:
        """Each iteration waits for its loads."""
        loads = _rows(loop.body.loads, loop.dim, here)
        stores = _rows(loop.body.stores, loop.dim, here)
        for group in self._groups(blocks):
            if loads:
                moved = self._fetched(loop.body, loads, blocks, group, here)
                turns = len(group) * loop.body.turns
                yield self.device.load(here.processor, moved, turns=turns)
            yield from self._computed(loop.body, len(group), here)
            if stores:
                yield self._store(loop.body, stores, blocks, group, here)

    def _flat(self, loop: Loop, here: Here) -> Actor:
        """Loops that are one: loads run ahead from one of the innermost to the next."""
        walks = []
        for inner, place, blocks in loop.walks(here.place):
            at = Here(here.processor, place, here.program)
            if not inner.body.ahead:
                yield from self._in_turn(inner, blocks, at)
            elif blocks:
                walks.append(_Walk.of(inner, blocks, at))
        if walks:
            yield from self._ahead(walks[0].body, walks)

    def _ahead(self, body: Body, walks: Sequence[_Walk]) -> Actor:
        """While a group computes, loads run ahead: those of the first iterations come before it."""
        device, left = self.device, _Left(walks)
        on_their_way = deque[tuple[int, Job]]()

        def issue(iterations: int) -> None:
            for walk, group in left.taken(iterations):
                job = device.load_ahead(
                    walk.here.processor,
                    self._fetched(body, walk.loads, walk.blocks, group, walk.here),
                    iterations=len(group),
                    ahead=body.ahead,
                    between=body.between,
                )
                on_their_way.append((left.count, job))

        for _ in range(body.ahead):
            issue(1)
        done = 0
        for walk in walks:
            for group in self._groups(walk.blocks):
                while on_their_way[0][0] <= done:
                    yield on_their_way.popleft()[1]
                yield on_their_way[0][1]
                done += len(group)
                issue(len(group))
                yield from self._computed(body, len(group), walk.here)
                if walk.stores:
                    yield self._store(body, walk.stores, walk.blocks, group, walk.here)
        for _, job in on_their_way:
            yield job

    def _groups(self, blocks: range) -> Iterator[range]:
        for start in range(blocks.start, blocks.stop, self.together):
            yield range(start, min(start + self.together, blocks.stop))

    def _computed(self, body: Body, runs: int, here: Here) -> Actor:
        if (body, runs) not in self._repeated:
            self._repeated[body, runs] = [step.times(runs) for step in body.steps]
        for step in self._repeated[body, runs]:
            yield self.device.compute(here.processor, step)

    # memory ----------------------------------------------------------------------

    def _fetched(
        self, body: Body, rows: list[Row], blocks: range, group: range, here: Here
    ) -> Moved:
        """What the loads of a group, of the ``blocks`` that the loop walks here, move."""
        cache, cached, missed = self.device.cache, 0, 0.0
        for row in rows:
            cached += row.bytes(group)
            for number, part in self._parts(row, group):
                if number not in row.met:
                    whole = row.bytes(self._whole(row, number, blocks))
                    missing = cache.load(here.processor, row.block(number), whole)
                    row.met[number] = missing / whole
                    missed += missing if row.last is None else 0.0
                if row.last is not None:
                    missed += row.met[number] * row.bytes(part)
        self.device.write_back()
        return Moved(cached, cached * body.port, missed)

    def _store(self, body: Body, rows: list[Row], blocks: range, group: range, here: Here) -> Job:
        cached = 0
        for row in rows:
            cached += row.bytes(group)
            for number, _ in self._parts(row, group):
                whole = row.bytes(self._whole(row, number, blocks))
                self.device.cache.store(here.processor, row.block(number), whole)
        self.device.write_back()
        return self.device.store(here.processor, Moved(cached, cached * body.port))

    def _parts(self, row: Row, group: range) -> Iterator[tuple[int, range]]:
        """The groups of blocks that iterations touch, and which of these iterations do."""
        if row.last is None:
            yield 0, group
            return
        length = self.together
        for number in range(group.start // length, -(-group.stop // length)):
            first, stop = number * length, (number + 1) * length
            yield number, range(max(first, group.start), min(stop, group.stop))

    def _whole(self, row: Row, number: int, blocks: range) -> range:
        """The iterations, of all ``blocks``, that touch a group of blocks."""
        if row.last is None:
            return ONCE
        first, stop = number * self.together, (number + 1) * self.together
        return range(max(first, blocks.start), min(stop, blocks.stop))


def _rows(accesses: tuple[Access, ...], along: Dim, here: Here) -> list[Row]:
    return [access.along(along, here.place) for access in accesses]
