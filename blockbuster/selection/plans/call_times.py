"""The time of the calls between a plan's kernels: calls of a library, and copies.

``Plan.cost`` and ``bb.simulate`` add it to the time of the kernels, with the same numbers by which
the plan was chosen. A user's function of whole arrays has no predicted time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from blockbuster.costs.report import Report
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import size_class
from blockbuster.machines import Machine
from blockbuster.machines.library import library_of
from blockbuster.selection.cost import launch_by_host
from blockbuster.selection.plans.call_prices import copy_us, library_us
from blockbuster.selection.plans.divided import Divided
from blockbuster.selection.plans.pieces import Call

if TYPE_CHECKING:
    from blockbuster.selection.plans.plan import Plan


def without_kernels(machine: Machine) -> Report:
    """The report on a plan that consists of calls, before their time is added."""
    return Report(machine.name, 0.0, {}, {}, "the calls of a library")


def with_calls(report: Report, plan: Plan, machine: Machine, launch: str) -> Report:
    """The report on a plan's kernels with the time of its calls, which it names."""
    known = {name: us for name, us in _times(plan, machine, launch) if us is not None}
    left = [call.name for call in plan.calls if call.name not in known]
    taken = sum(us for name, us in _times(plan, machine, launch) if us is not None)
    said = [*report.assumed]
    if known:
        names = ", ".join(known)
        said.append(f"{names}: {taken:,.1f} us by the closed form; their bytes are not counted")
    if left:
        said.append(f"not counted: {', '.join(dict.fromkeys(left))}, of which no time is known")
    total = report.time_us + taken
    share = report.time_us / total if total else 1.0
    busy = {resource: fraction * share for resource, fraction in report.busy.items()}
    return replace(report, time_us=total, busy=busy, assumed=tuple(said))


def calls_of(plan: Plan) -> Iterator[tuple[tuple[str, ...], float | None]]:
    """The arrays that each call writes, and its microseconds, launched by the host, if known."""
    divided = plan.divided
    machine = divided.machine if isinstance(divided, Divided) else None
    for call, us in _of_calls(plan, machine, "plain") if machine is not None else ():
        yield call.writes, us


def _times(plan: Plan, machine: Machine, launch: str) -> Iterator[tuple[str, float | None]]:
    """The name of each call that is not a user's function, and its microseconds if known."""
    return ((call.name, us) for call, us in _of_calls(plan, machine, launch))


def _of_calls(plan: Plan, machine: Machine, launch: str) -> Iterator[tuple[Call, float | None]]:
    sizes = {size_class(dim): size for dim, size in plan.sizes.items()}
    for part in plan.divided.parts if isinstance(plan.divided, Divided) else ():
        own = completed(sizes, part.size_rules)
        for call in (step for step in part.pieces.steps if isinstance(step, Call)):
            if call.only_moves:
                yield call, copy_us(call, own, machine)
            elif call.is_library:
                timed = library_of(machine) is not None
                by_host = launch_by_host(machine) if launch == "plain" else 0.0
                yield call, library_us(part, call, own, machine) + by_host if timed else None
