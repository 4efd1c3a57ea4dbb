"""The grain of a simulation: how many iterations of a kernel's loops are taken together."""

from __future__ import annotations

from math import ceil

from blockbuster.costs.phases import Phase
from blockbuster.costs.work import Work

JOBS = 30_000
"""Loads and steps of arithmetic, of all programs, that take a few seconds to simulate."""

STEPS = 3
"""Loads, dots and what is computed of them: the jobs of one iteration, at most."""

FEWEST = 4
"""Groups of the longest loop, at least: loads and arithmetic overlap between groups."""


def iterations_of_group(work: Work) -> int:
    """As few iterations as ``JOBS`` allows, but so that the longest loop has ``FEWEST`` groups."""
    inside = [phase for phase in work.phases if phase.dims]
    runs = sum(phase.runs for phase in inside)
    longest = max((_most(phase, work) for phase in inside), default=1)
    return max(1, min(-(-runs * STEPS // JOBS), longest // FEWEST))


def _most(phase: Phase, work: Work) -> int:
    """The iterations of a loop in the program that has most of them."""
    return ceil(max(phase.each, default=phase.runs / work.programs))
