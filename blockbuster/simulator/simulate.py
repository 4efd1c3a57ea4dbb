"""``bb.simulate``: kernels one after the other on a machine, event by event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from blockbuster.costs.coefficients import Coefficients
from blockbuster.costs.cost import check_runs_kernels, not_its_own
from blockbuster.costs.launches import launching
from blockbuster.costs.report import Report
from blockbuster.costs.sizes import fitting
from blockbuster.costs.steps import Rates
from blockbuster.costs.work import Work, work_of
from blockbuster.emit.tile.extents import Extents, extents_of
from blockbuster.emit.tile.program import TileProgram
from blockbuster.ir.types import Dim
from blockbuster.machines.machine import Machine
from blockbuster.simulator.body import Body, body_of
from blockbuster.simulator.clock import Actor
from blockbuster.simulator.coefficients import REACHED, SLOW, UNWRITTEN
from blockbuster.simulator.demand import LOCAL
from blockbuster.simulator.device import Device
from blockbuster.simulator.programs import Programs, iterations_of_group, places
from blockbuster.simulator.summary import Ran, summary
from blockbuster.simulator.touched import Touched, apart, in_order, touched_by


@dataclass(frozen=True)
class Sized:
    """A tile program as it is printed, and the sizes and target of its kernels.

    ``names``: of its arrays, where several programs share some under other names.
    """

    program: TileProgram
    sizes: Mapping[Dim, int]
    target: str
    names: Mapping[str, str] = field(default_factory=dict)


HOLDS = {
    "warm": "holds what was used last",
    "flushed": "is full of other data",
    "cold": "is empty",
}
"""What a cache holds before the first kernel."""


def simulated(
    programs: Sequence[Sized],
    machine: Machine,
    *,
    launch: str = "plain",
    warm: bool = False,
    flushed: bool = False,
    group: int = 0,
    assumed: tuple[str, ...] = (),
    coefficients: Coefficients = REACHED,
) -> Report:
    """The kernels of ``programs``, one after the other.

    ``warm``: the cache holds what was used last of their arrays; ``flushed``: it is full of other
    data that memory has not; else it is empty before the first.
    ``group``: how many iterations are taken together; 0: as few as give an answer in seconds.
    ``assumed``: what else the report says is taken for granted. Raises ValueError for a CPU, no
    program at all, or one that does not fit the machine.
    """
    check_runs_kernels(machine)
    if not programs:
        raise ValueError("there is no kernel that could be simulated")
    device = Device(machine, coefficients)
    kernels = [kernel for sized in programs for kernel in _kernels(sized, machine, coefficients)]
    if warm:
        device.cache.warm(
            in_order(kernel.touched for kernel in kernels), _split(kernels), _stored(kernels)
        )
    elif flushed:
        device.cache.flushed(UNWRITTEN)
        device.slow = SLOW
    ran: list[Ran] = []
    device.clock.start(_plan(device, kernels, launch, group, ran, warm=warm))
    device.clock.run()
    cache = "warm" if warm else "flushed" if flushed else "cold"
    said = f"the cache {HOLDS[cache]} before the first kernel", f"launches: {launch}"
    others = not_its_own((sized.target for sized in programs), machine)
    made = summary(device, ran, (*said, *assumed, *others))
    return replace(made, by=f"simulator, {cache} cache")


@dataclass(frozen=True)
class Launched:
    """One kernel, ready to run.

    ``local``: bytes that move to and from its processors' own memory. ``stored``: arrays that it
    writes; ``again``: those that it reads more than once. ``touched``: what of each array.
    """

    work: Work
    local: int
    stored: tuple[str, ...]
    again: tuple[str, ...]
    touched: Mapping[str, Touched]
    extents: Extents
    body: Body
    resident: int


def _kernels(sized: Sized, machine: Machine, coefficients: Coefficients) -> list[Launched]:
    sizes = fitting(sized.program, sized.sizes)
    every = extents_of(sized.program, sizes)
    works = work_of(sized.program, sized.sizes, sized.target)
    found = []
    for extents, work in zip(every, works, strict=True):
        if work.kept:  # it computes of constants, and ran before
            continue
        rates = Rates(work, machine, coefficients, {})
        local = rates.moved()[machine.tiers[LOCAL].name]
        body = body_of(sized.program, extents, rates, sized.names)
        touched = {
            sized.names.get(name, name): what
            for name, what in touched_by(extents.nest, work, extents).items()
        }
        stored = tuple(sized.names.get(name, name) for name in work.stored)
        again = tuple(
            sized.names.get(name, name)
            for name, size in work.unique.items()
            if work.loaded.get(name, 0) > size
        )
        resident = work.footprint.resident(machine)
        found.append(Launched(work, local, stored, again, touched, extents, body, resident))
    return found


def _plan(
    device: Device,
    kernels: Sequence[Launched],
    launch: str,
    group: int,
    ran: list[Ran],
    *,
    warm: bool,
) -> Actor:
    touched = [kernel.touched for kernel in kernels]
    sizes = in_order(touched)
    for at, kernel in enumerate(kernels):
        before = ran[-1].ended - ran[-1].started if ran else None
        overlaps = kernel.work.overlaps
        cost = launching(device.machine, launch, before, overlaps=overlaps)
        cost += device.coefficients.start
        launched = device.clock.now
        if cost:
            yield device.clock.job((), least=cost)
        length = group or iterations_of_group(kernel.work)
        programs = Programs(device, kernel.body, length)
        start = device.clock.now
        if not warm:
            device.cache.lack(apart(touched, at))
        yield programs.run(places(kernel.extents), kernel.work.programs, kernel.resident)
        count, ended = kernel.work.programs, device.clock.now
        ran.append(Ran(programs, count, kernel.resident, length, launched, start, ended))
        device.cache.settle(sizes)
        device.tally.bytes[device.machine.tiers[LOCAL].name] += kernel.local


def _stored(kernels: Sequence[Launched]) -> frozenset[str]:
    return frozenset(name for kernel in kernels for name in kernel.stored)


def _split(kernels: Sequence[Launched]) -> frozenset[str]:
    """The arrays of which kernels touch no part twice: one processor reads or writes it."""
    again = {name for kernel in kernels for name in kernel.again}
    return frozenset(name for kernel in kernels for name in kernel.touched if name not in again)
