"""``bb.simulate``: kernels one after the other on a machine, event by event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from blockbuster.costs.coefficients import FITTED, Coefficients
from blockbuster.costs.report import Report
from blockbuster.costs.sizes import fitting
from blockbuster.costs.steps import Rates
from blockbuster.costs.work import Work, work_of
from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.trips import blocks_in, bound_blocks
from blockbuster.ir.types import Dim
from blockbuster.machines.machine import Machine
from blockbuster.simulator.body import Body, body_of
from blockbuster.simulator.clock import Actor
from blockbuster.simulator.device import Device
from blockbuster.simulator.grain import together
from blockbuster.simulator.grid import places
from blockbuster.simulator.programs import Programs
from blockbuster.simulator.summary import Ran, summary


@dataclass(frozen=True)
class Sized:
    """A tile program as it is printed, and the sizes and target of its kernels.

    ``names``: of its arrays, where several programs share some under other names.
    """

    program: TileProgram
    sizes: Mapping[Dim, int]
    target: str
    names: Mapping[str, str] = field(default_factory=dict)


def simulated(
    given: Sequence[Sized],
    machine: Machine,
    *,
    launch: str = "plain",
    group: int = 0,
    coefficients: Coefficients = FITTED,
) -> Report:
    """The kernels of programs, one after the other; the cache is empty before the first.

    ``group``: how many iterations are taken together; 0: as few as give an answer in seconds.
    """
    device = Device(machine, coefficients)
    ran: list[Ran] = []
    kernels = [kernel for sized in given for kernel in _kernels(sized, machine, coefficients)]
    device.clock.start(_plan(device, kernels, launch, group, ran))
    device.clock.run()
    return summary(device, ran, launch)


@dataclass(frozen=True)
class Launched:
    """One kernel, ready to run."""

    work: Work
    unique: Mapping[str, int]
    extents: Extents
    body: Body
    resident: int


def _kernels(sized: Sized, machine: Machine, coefficients: Coefficients) -> list[Launched]:
    sizes = fitting(sized.program, sized.sizes)
    blocks = bound_blocks(sized.program, sizes)
    works = work_of(sized.program, sized.sizes, sized.target)
    found = []
    for nest, work in zip(sized.program.nests, works, strict=True):
        extents = Extents(nest, sizes, blocks_in(nest, blocks))
        body = body_of(sized.program, extents, Rates(work, machine, coefficients, {}), sized.names)
        unique = {sized.names.get(name, name): size for name, size in work.unique.items()}
        found.append(Launched(work, unique, extents, body, work.footprint.resident(machine)))
    return found


def _plan(
    device: Device, kernels: Sequence[Launched], launch: str, group: int, ran: list[Ran]
) -> Actor:
    seen: dict[str, int] = {}
    for number, kernel in enumerate(kernels):
        cost = _launch(device.machine, launch, first=not number) + device.coefficients.start
        begun = device.clock.now
        if cost:
            yield device.clock.job((), least=cost)
        length = group or together(kernel.work, kernel.body)
        programs = Programs(device, kernel.body, length)
        start = device.clock.now
        yield programs.run(places(kernel.extents), kernel.work.programs, kernel.resident)
        ran.append(Ran(programs, kernel.resident, length, begun, start, device.clock.now))
        for name, size in kernel.unique.items():
            seen[name] = max(seen.get(name, 0), size)
        device.blocks.settle(seen)


def _launch(machine: Machine, launch: str, *, first: bool) -> float:
    """Seconds before a kernel starts; nothing comes before the first that it could depend on."""
    if launch == "plain":
        return machine.launch.plain
    return machine.launch.dependent if launch == "dependent" and not first else machine.launch.graph
