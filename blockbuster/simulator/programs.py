"""The programs of one kernel on a device: what each does, in order, and who takes which.

Iterations of a loop that holds no other are taken together in groups: what a group loads is one
job, and each step of its arithmetic another. Where loads run ahead, those of later iterations are
on their way while a group computes; a group starts when the loads of its first iteration are there.
Blocks of arrays are told apart by groups, too: one is fetched as a whole where it is met first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from blockbuster.ir.types import Dim
from blockbuster.simulator.access import Access, Row
from blockbuster.simulator.body import Body, Loop, busiest
from blockbuster.simulator.cache import Block
from blockbuster.simulator.clock import Actor
from blockbuster.simulator.demand import Demand
from blockbuster.simulator.device import Device
from blockbuster.simulator.sharing import Job

Queue: TypeAlias = Iterator[tuple[int, dict[Dim, int]]]

ONCE = range(1)
"""The iterations of no loop: one."""


@dataclass(frozen=True)
class Here:
    """Where one program runs, and which it is."""

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


class Programs:
    """``together``: how many iterations of each loop make a group, at least one."""

    def __init__(self, device: Device, body: Body, together: int) -> None:
        self.device, self.body, self.together = device, body, together
        self.clock = device.clock
        self.stretches: list[Stretch] = []
        self._repeated: dict[tuple[Body, int], list[Demand]] = {}
        self.resources = [busiest(loop.body, device.machine) for loop in body.loops]
        self.resource = busiest(body, device.machine)

    def run(self, places: Iterator[dict[Dim, int]], count: int, resident: int) -> Job:
        """Start ``count`` programs, in order, ``resident`` at a time on each processor.

        The job is done when all of them are.
        """
        queue = enumerate(places)
        processors = self.device.machine.processors
        slots = min(count, resident * processors)
        done = self.clock.joined(slots)
        for slot in range(slots):
            self.clock.start(self._slot(slot % processors, queue, done))
        return done

    def _slot(self, processor: int, queue: Queue, done: Job) -> Actor:
        for program, place in queue:
            yield from self._program(Here(processor, place, program))
        self.clock.given(done)

    def _program(self, here: Here) -> Actor:
        body, memory = self.body, self.device.machine.memory.name
        yield from self._noted("loads", memory, here, self._loads(body, here))
        for loop, resource in zip(body.loops, self.resources, strict=True):
            what = f"loop over {loop.dim}"
            yield from self._noted(what, resource, here, self._loop(loop, here))
        yield from self._noted("the rest", self.resource, here, self._end(body, here))

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
            yield self._load(_rows(body.loads, "", here), ONCE, ONCE, here, 1.0)

    def _end(self, body: Body, here: Here) -> Actor:
        for step in body.steps:
            yield self.device.compute(here.processor, step)
        if body.stores:
            yield self._store(_rows(body.stores, "", here), ONCE, ONCE, here)

    def _loop(self, loop: Loop, here: Here) -> Actor:
        blocks = loop.walked(here.place)
        if loop.body.loops:
            for number in blocks:
                inside = Here(here.processor, {**here.place, loop.dim: number}, here.program)
                yield from self._run(loop.body, inside)
        elif loop.body.ahead:
            yield from self._ahead(loop, blocks, here)
        else:
            yield from self._in_turn(loop, blocks, here)

    def _in_turn(self, loop: Loop, blocks: range, here: Here) -> Actor:
        """Each iteration waits for its loads."""
        loads = _rows(loop.body.loads, loop.dim, here)
        stores = _rows(loop.body.stores, loop.dim, here)
        for group in self._groups(blocks):
            if loads:
                yield self._load(loads, blocks, group, here, len(group))
            yield from self._computed(loop.body, len(group), here)
            if stores:
                yield self._store(stores, blocks, group, here)

    def _ahead(self, loop: Loop, blocks: range, here: Here) -> Actor:
        """While a group computes, loads run ahead: those of the first iterations come before it."""
        loads = _rows(loop.body.loads, loop.dim, here)
        stores = _rows(loop.body.stores, loop.dim, here)
        ahead = min(loop.body.ahead, len(blocks))
        on_their_way = deque[tuple[int, Job]]()

        def issue(group: range) -> None:
            times = max(1.0, len(group) / loop.body.ahead)
            on_their_way.append((group.stop, self._load(loads, blocks, group, here, times)))

        for number in blocks[:ahead]:
            issue(range(number, number + 1))
        for group in self._groups(blocks):
            later = range(group.start + ahead, min(group.stop + ahead, blocks.stop))
            if later:
                issue(later)
            while on_their_way[0][0] <= group.start:
                yield on_their_way.popleft()[1]
            yield on_their_way[0][1]
            yield from self._computed(loop.body, len(group), here)
            if stores:
                yield self._store(stores, blocks, group, here)
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

    def _load(self, rows: list[Row], blocks: range, group: range, here: Here, times: float) -> Job:
        """The loads of the iterations ``group``, of the ``blocks`` that the loop walks here."""
        cached = missed = 0
        for row in rows:
            cached += row.bytes(group)
            for block, size in self._met(row, blocks, group):
                missed += self.device.blocks.load(here.processor, block, size)
        return self.device.load(here.processor, cached, missed, times=times)

    def _store(self, rows: list[Row], blocks: range, group: range, here: Here) -> Job:
        size = 0
        for row in rows:
            size += row.bytes(group)
            for block, part in self._met(row, blocks, group):
                self.device.blocks.store(here.processor, block, part)
        return self.device.store(here.processor, size)

    def _met(self, row: Row, blocks: range, group: range) -> Iterator[tuple[Block, int]]:
        """The blocks, or groups of them, that iterations meet first in ``group``; their bytes."""
        if row.last is None:
            yield row.block(0), row.fixed
            return
        length = self.together
        for number in range(group.start // length, -(-group.stop // length)):
            first = max(number * length, blocks.start)
            if first in group:
                part = range(first, min((number + 1) * length, blocks.stop))
                yield row.block(number), row.bytes(part)


def _rows(accesses: tuple[Access, ...], along: Dim, here: Here) -> list[Row]:
    return [access.along(along, here.place) for access in accesses]
