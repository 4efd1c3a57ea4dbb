"""A plan at other sizes of its class: the same kernels, and the times predicted at those sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import built_in
from blockbuster.selection.candidates.candidate import CPU, Choice
from blockbuster.selection.considered import Considered
from blockbuster.selection.decisions.numpy_price import price_of_text
from blockbuster.selection.plans.divided import Divided
from blockbuster.selection.plans.plan import File, Plan, Sizes
from blockbuster.selection.price import priced


def at_sizes(plan: Plan, sizes: Sizes) -> Plan:
    """``plan`` with the times of its kernels and calls at ``sizes``.

    What else was considered keeps the times by which it was compared: those at the sizes for which
    the plan was made. A plan from a file has forgotten its schedules, and all times.
    """
    if not isinstance(plan.divided, Divided):
        return replace(plan, sizes=sizes)
    known = {size_class(dim): size for dim, size in sizes.items()}
    found: list[Considered] = []
    for part, considered in plan.divided.by_part:
        own = part.own(known)
        found += [replace(one, best=_choice(one.best, own)) for one in considered]
    left = iter(found)
    steps = tuple(
        replace(step, considered=next(left)) if isinstance(step, File) and step.considered else step
        for step in plan.steps
    )
    divided = replace(plan.divided, considered=tuple(found))
    return replace(plan, sizes=sizes, steps=steps, divided=divided)


def _choice(best: Choice, known: Mapping[Dim, int]) -> Choice:
    """A choice with its price at other sizes, by size class."""
    if best.scheduled is None:
        sizes = completed(known, best.program.rules)
        taken = price_of_text(best.program, sizes, best.blocks, built_in(CPU))
        return replace(best, price=taken * best.weight)
    before = best.scheduled.known  # of an equal part, it may hold sizes that no kernel names
    scheduled = replace(best.scheduled, known={dim: known.get(dim, n) for dim, n in before.items()})
    if best.cost is None:
        return replace(best, scheduled=scheduled)
    cost = priced(scheduled)
    return replace(best, scheduled=scheduled, cost=cost, price=cost.microseconds * best.weight)
