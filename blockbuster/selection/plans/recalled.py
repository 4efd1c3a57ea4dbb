"""A plan as it was decided earlier, made without a search; and what is kept of one for later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial, reduce
from operator import or_
from typing import Any

from blockbuster.errors import EmitError, TraceError
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.selection.considered import Considered
from blockbuster.selection.decision import Decision, kernel_of, recalled
from blockbuster.selection.parts.units import units_of
from blockbuster.selection.plans.divided import Divided, Division
from blockbuster.selection.plans.part import Part

DECIDED = "its parts were decided earlier"


def decision_of(divided: Divided) -> Decision | None:
    """What was decided; None where a part, or the choice for a piece, cannot be made anew by it."""
    if not divided.bits or divided.search is not None:
        return None
    kernels = [*map(kernel_of, divided.considered)]
    known = tuple(one for one in kernels if one is not None)
    return Decision(divided.bits, known, divided.notes) if len(known) == len(kernels) else None


def recalled_plan(
    decision: Decision,
    division: Division,
    whole: Part,
    sizes: Mapping[Dim, int],
    machine: Machine,
    target: str | Machine,
    search: Callable[[], Divided],
) -> Divided | None:
    """The parts that were decided for a program at ``sizes``, with the choices for their pieces.

    None if the decision does not fit the program. ``search`` looks for the best plan, once, if
    somebody asks what else there was: reports on why it is this one, and measurements.
    """
    try:
        parts = _parts(decision, division, whole, sizes, machine)
    except (EmitError, TraceError):
        return None
    search = cache(search)

    def searched(at: int) -> Considered | None:
        found = search()
        return found.considered[at] if found.bits == decision.parts else None

    pieces = [
        (fused, own.own(sizes), given)
        for own in parts or ()
        for fused, given in zip(own.fused, own.given, strict=True)
    ]
    if not parts or len(pieces) != len(decision.kernels):
        return None
    made: dict[Any, Considered | None] = {}  # equal parts share theirs
    considered: list[Considered] = []
    for at, (kernel, piece) in enumerate(zip(decision.kernels, pieces, strict=True)):
        fused, own, _ = piece
        key = fused, kernel.snapshot, kernel.schedule, *own.items()
        if key not in made:
            made[key] = recalled(kernel, *piece, target, partial(searched, at))
        if (found := made[key]) is None:
            return None
        considered.append(found)
    return Divided(
        parts, tuple(considered), machine, why=DECIDED, notes=decision.notes, bits=decision.parts,
        search=search,
    )  # fmt: skip


def _parts(
    decision: Decision,
    division: Division,
    whole: Part,
    sizes: Mapping[Dim, int],
    machine: Machine,
) -> tuple[Part, ...] | None:
    """The parts in their forms; None unless they hold every unit of the program once."""
    units = units_of(division.program, {size_class(dim): size for dim, size in sizes.items()})
    every = (1 << len(units)) - 1
    bits = [bits for bits, _ in decision.parts]
    if sum(bits) != every or reduce(or_, bits, 0) != every:
        return None
    found = list[Part]()
    for own, number in decision.parts:
        forms = division.forms.of(whole if own == every else division.part(units, own), machine)
        if number >= len(forms):
            return None
        found.append(forms[number])
    return tuple(found)
