"""Plans of parts that a test names, in place of those that a search finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.parts.units import Units, units_of
from blockbuster.selection.plans.divided import of_parts
from blockbuster.selection.plans.family import Family
from blockbuster.selection.plans.plan import Plan


def plan_of_parts(
    family: Family, sizes: Mapping[Dim, int], choose: Callable[[Units], Sequence[int]]
) -> Plan:
    """The plan of the parts that ``choose`` names, of a program's units at these sizes: each part
    is a number whose bits are its units, and they come in order.
    """
    division, consider = family._division, family._consider(sizes, one_kernel=False)
    known = {size_class(dim): size for dim, size in sizes.items()}
    units = units_of(division.program, known)
    parts = tuple(division.part(units, bits) for bits in choose(units))
    divided = of_parts(parts, consider, family._machine, why="its parts were given")
    return family._planned(sizes, divided, one_kernel=False)
