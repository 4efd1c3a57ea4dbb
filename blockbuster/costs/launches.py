"""The time of a launch in which no kernel runs: from the host, in a graph, or dependent."""

from __future__ import annotations

from blockbuster.machines.machine import Machine

PLAIN, GRAPH, DEPENDENT = LAUNCHES = ("plain", "graph", "dependent")
"""From the host, in a captured graph, and in a graph where all kernels overlap those before."""


def launching(machine: Machine, launch: str, before: float | None, *, overlaps: bool) -> float:
    """Seconds before a kernel starts; ``before``: those of the kernel before it, if there is one.

    The host prepares a launch while another kernel runs. Nothing comes before the first kernel that
    it could depend on. ``overlaps``: the kernel begins while the one before it ends.
    """
    costs = machine.launch
    if before is None:
        return costs.plain if launch == PLAIN else costs.graph
    least = costs.dependent if overlaps or launch == DEPENDENT else costs.graph
    return max(least, costs.plain - before) if launch == PLAIN else least
