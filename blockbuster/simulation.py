"""``bb.simulate``: simulates a kernel, or a plan of several, on an abstract machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from blockbuster.costs.launches import LAUNCHES
from blockbuster.costs.report import Report
from blockbuster.costs.sizes import own_sizes
from blockbuster.emit.kernel import Kernel
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.errors import message
from blockbuster.machines import Machine
from blockbuster.machines import machine as machine_of
from blockbuster.selection.candidates.candidate import CPU
from blockbuster.selection.plans.call_times import with_calls, without_kernels
from blockbuster.selection.plans.plan import File, Plan
from blockbuster.simulator import Sized, simulated


def simulate(
    what: Kernel | Plan | Scheduled,
    machine: str | Path | Machine = "h200",
    *,
    launch: str = "plain",
    warm: bool = False,
    flushed: bool = False,
) -> Report:
    """Simulates kernels on a machine, event by event.

    Processors take programs in the order of the grid, as many side by side as fit. Loads,
    arithmetic and stores of programs take memory, cache and units, whose rate all active programs
    share equally; recently used blocks come from the cache. ``kernel.cost`` is the closed form of
    the same report.

    ``machine``: a name ("h200", "auto"), the path of a file, or a ``Machine``. ``launch``: "plain",
    from the host, "graph", or "dependent": a kernel's launch is hidden behind the kernel before it.
    ``warm``: the cache holds the most recently used data; ``flushed``: it is full of other data
    that has to be written to memory, as before each call of ``do_bench``; else it is empty.
    Calls of a library and copies between the kernels of a plan take the time of the closed form,
    and stand behind the timeline; a user's functions of whole arrays take none. ``Report.assumed``
    names them all. Raises ValueError for an unknown machine or launch, a CPU, sizes of zero, a
    program that does not fit a processor, and a plan without schedules (of the CPU, or loaded).

    >>> import blockbuster as bb
    >>> graph = bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final
    >>> kernel = bb.emit(graph, sizes={"M": 1024, "K": 1024, "N": 1024})
    >>> simulate(kernel, "h200").bytes["hbm"]
    6291456
    """
    device = machine_of(machine)
    if launch not in LAUNCHES:
        known = ", ".join(LAUNCHES)
        raise ValueError(message(f"unknown launch {launch!r}", hint=f"known: {known}"))
    if warm and flushed:
        raise ValueError("the cache is warm, or it is flushed: ask for one of them")
    kernels = _kernels(what)
    if not isinstance(what, Plan):
        return simulated(kernels, device, launch=launch, warm=warm, flushed=flushed)
    if what.calls and not kernels:
        return with_calls(without_kernels(device), what, device, launch)
    report = simulated(kernels, device, launch=launch, warm=warm, flushed=flushed)
    return with_calls(report, what, device, launch)


def _kernels(what: Kernel | Plan | Scheduled) -> tuple[Sized, ...]:
    match what:
        case Kernel(tile_program=None):
            raise ValueError("this kernel has no tile program: emit it again to simulate it")
        case Kernel(tile_program=program) if program is not None:
            return (Sized(program, what.sizes, what.target),)
        case Scheduled():
            return (_sized(what),)
        case Plan():
            return tuple(_of_file(file, what) for file in what.files)
    raise TypeError(
        message(
            f"expected a kernel (bb.emit gives one) or a plan, got {type(what).__name__}",
            hint="of a jitted function, that is fn.plan_for(*args)",
        )
    )


def _of_file(file: File, plan: Plan) -> Sized:
    if plan.target == CPU:
        raise ValueError(f"{plan.name} is planned for NumPy on the CPU: it has no kernels")
    scheduled = file.considered.best.scheduled if file.considered else None
    if scheduled is None:
        raise ValueError(f"{plan.name} was loaded without its schedules: compile it again")
    program = scheduled.program
    inner = {b.name: f"{b.name} of {file.writes[0]}" for b in program.workspaces}
    return replace(_sized(scheduled), names={**file.names, **inner})


def _sized(scheduled: Scheduled) -> Sized:
    program = scheduled.program
    return Sized(program, own_sizes(program, scheduled.known), scheduled.target.name)
