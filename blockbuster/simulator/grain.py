"""How finely a kernel is simulated: how many iterations of its loops are taken together."""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.costs.work import Work
from blockbuster.simulator.body import Body, Loop

JOBS = 60_000
"""Loads and steps of arithmetic, of all programs, that take a few seconds to simulate."""

STEPS = 3
"""Loads, dots and what is computed of them: the jobs of one iteration, at most."""

FEWEST = 4
"""Groups of the longest loop, at least: loads and arithmetic overlap between groups."""


def together(work: Work, body: Body) -> int:
    """As few iterations as ``JOBS`` allows, but so that the longest loop has ``FEWEST`` groups."""
    longest = max((-(-loop.blocks // loop.chunks) for loop in _innermost(body)), default=1)
    runs = sum(phase.runs for phase in work.phases if phase.dims)
    return max(1, min(-(-runs * STEPS // JOBS), longest // FEWEST))


def _innermost(body: Body) -> Iterator[Loop]:
    for loop in body.loops:
        if loop.body.loops:
            yield from _innermost(loop.body)
        else:
            yield loop
