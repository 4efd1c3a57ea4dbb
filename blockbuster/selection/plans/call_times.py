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
from blockbuster.selection.plans.divided import Divided
from blockbuster.selection.plans.pieces import Call
from blockbuster.selection.plans.prices import call_us

if TYPE_CHECKING:
    from blockbuster.selection.plans.plan import Plan


def without_kernels(machine: Machine) -> Report:
    """The report on a plan that consists of calls, before their time is added."""
    return Report(machine.name, 0.0, {}, {}, "the calls of a library")


def with_calls(report: Report, plan: Plan, machine: Machine, launch: str) -> Report:
    """The report on a plan's kernels with the time of its calls, which it names."""
    found = [*_of_calls(plan, machine, launch)]
    known = dict.fromkeys(call.name for call, us in found if us is not None)
    left = [call.name for call in plan.calls if call.name not in known]
    taken = sum(us for _, us in found if us is not None)
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


def _of_calls(plan: Plan, machine: Machine, launch: str) -> Iterator[tuple[Call, float | None]]:
    """Each call that is not a user's function, and its microseconds if known."""
    sizes = {size_class(dim): size for dim, size in plan.sizes.items()}
    for part in plan.divided.parts if isinstance(plan.divided, Divided) else ():
        own = completed(sizes, part.size_rules)
        for call in part.calls:
            if call.only_moves or call.is_library:
                yield call, call_us(part, call, own, machine, by_host=launch == "plain")
