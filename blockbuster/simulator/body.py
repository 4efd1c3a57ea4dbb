"""The work of a nest's programs, as nested loop bodies.

A body loads, runs its loops, computes and stores, in this order: its own arithmetic is taken
together, whether it stands before or behind its loops.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

from blockbuster.costs.steps import Rates
from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.known_bounds import KnownBounds, PerBlock
from blockbuster.emit.tile.program import For, Issue, Load, Stmt, Store, TileProgram
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.ir.types import Dim
from blockbuster.machines.machine import Machine
from blockbuster.simulator.access import Access, Place, access
from blockbuster.simulator.demand import Demand, between, deciding, demands, port


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop over ``blocks`` of a dim: all of them, those of a chunk, or those of a span.

    ``chunk``: the dim whose number says which of ``chunks`` parts. ``first`` and ``stop``: the
    span's bounds, wherever the loop stands. ``flat``: it is one loop with the one in its body.
    """

    dim: Dim
    body: Body
    blocks: int
    chunk: Dim | None
    chunks: int
    first: PerBlock
    stop: PerBlock
    flat: bool = False

    def walks(self, place: Place) -> Iterator[tuple[Loop, dict[Dim, int], range]]:
        """The innermost loop that it is one with, its places in order, and what it walks there."""
        if not self.flat:
            yield self, dict(place), self.walked(place)
            return
        (inner,) = self.body.loops
        for number in self.walked(place):
            yield from inner.walks({**place, self.dim: number})

    def walked(self, place: Place) -> range:
        """The blocks that it walks at ``place``."""
        first, stop = _at(self.first, place), _at(self.stop, place)
        if self.chunk is not None:
            length = -(-self.blocks // self.chunks)
            first = max(first, length * place[self.chunk])
            stop = min(stop, length * (place[self.chunk] + 1))
        return range(first, max(first, stop))


@dataclass(frozen=True, eq=False)
class Body:
    """One run: loads, the loops in it, the steps of its arithmetic, one after the other, stores.

    ``ahead``: how many iterations the loads run ahead of their own. ``turns``: how often loads that
    do not are waited for in a run, on average: a compiler starts those of some iterations together.
    ``port``: seconds of a processor for each byte that it loads or stores. ``between``: seconds of
    a run in which loads that run ahead are not under way.
    """

    loads: tuple[Access, ...]
    stores: tuple[Access, ...]
    loops: tuple[Loop, ...]
    steps: tuple[Demand, ...]
    ahead: int
    turns: float
    port: float
    between: float


def body_of(
    program: TileProgram,
    extents: Extents,
    rates: Rates,
    names: Mapping[str, str],
) -> Body:
    """The work of a program of one nest's grid; ``extents`` are of that nest.

    ``names``: of arrays that are called otherwise here.
    """
    reader = _Reader(program, extents, rates, names)
    return reader.body(extents.nest.body, frozenset(extents.nest.grid))


def busiest(body: Body, machine: Machine) -> str:
    """The unit or the cache that is busy longest in a run of ``body`` and of the loops in it, each
    of which runs once; the cache if none is.
    """
    cache = machine.tiers[1]
    seconds = {cache.name: 0.0}
    bodies = [body]
    for inner in bodies:
        bodies += [loop.body for loop in inner.loops]
        moved = sum(access.most for access in (*inner.loads, *inner.stores))
        seconds[cache.name] += moved * inner.port
        for step in inner.steps:
            for unit, busy in step.seconds.items():
                seconds[unit] = seconds.get(unit, 0.0) + busy
    return max(seconds, key=lambda name: seconds[name])


def _queued(step: Demand, units: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(unit for unit in units if step.seconds.get(unit))


class _Reader:
    """Reads bodies in their order, each before those of the loops in it: as phases stand."""

    def __init__(
        self, program: TileProgram, extents: Extents, rates: Rates, names: Mapping[str, str]
    ) -> None:
        self.extents, self.rates, self.names = extents, rates, names
        self.tiling = tiling_of(program, extents.nest)
        self.cuts: dict[Hashable, int] = {}
        self.bounds = KnownBounds(extents.nest, extents.sizes, extents.blocks)
        self.phases = iter(rates.work.phases)
        steps = [step for phase in rates.work.phases for step in demands(phase, rates)]
        self.units = deciding(steps)

    def body(self, body: tuple[Stmt, ...], walked: frozenset[Dim]) -> Body:
        phase = next(self.phases)
        steps = demands(phase, self.rates)
        loads = [stmt for stmt in body if isinstance(stmt, Load | Issue)]
        stores = [stmt for stmt in body if isinstance(stmt, Store)]
        return Body(
            tuple(self._access(stmt, walked) for stmt in loads),
            tuple(self._access(stmt, walked) for stmt in stores),
            tuple(self._loop(stmt, walked) for stmt in body if isinstance(stmt, For)),
            tuple(replace(step, queued=_queued(step, self.units)) for step in steps),
            max((stmt.ahead for stmt in loads if isinstance(stmt, Issue)), default=0),
            1.0 / self.rates.together(phase),
            port(phase, self.rates),
            between(phase, self.rates) if phase.ahead else 0.0,
        )

    def _access(self, stmt: Load | Issue | Store, walked: frozenset[Dim]) -> Access:
        found = access(stmt, walked, self.extents, self.tiling, self.cuts)
        return replace(found, array=self.names.get(found.array, found.array))

    def _loop(self, loop: For, walked: frozenset[Dim]) -> Loop:
        first, stop = self.bounds.of(loop)
        chunk = loop.within[0] if loop.within else loop.chunk
        chunks = 1 if chunk is None else self.extents.size(chunk)
        if loop.within:  # one block of pieces for each block of the dim around it
            chunks = self.extents.trips(loop.within[0])
        return Loop(
            loop.dim,
            self.body(loop.body, walked | {loop.dim}),
            self.extents.trips(loop.dim),
            chunk,
            chunks,
            first,
            stop,
            loop.flat,
        )


def _at(bound: PerBlock, place: Place) -> int:
    return int(bound.values[tuple(place[dim] for dim in bound.dims)])
