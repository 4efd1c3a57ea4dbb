"""Which of several forms of a program takes least, judged by their traffic and arithmetic.

Graph traffic and operation counts take a hundredth of the time that a schedule does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockbuster.interp.binding import dims_of
from blockbuster.ir.graph import Graph
from blockbuster.ir.list_only import list_only
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.selection.priors import PRIORS
from blockbuster.selection.traffic.closed import closed_traffic

UNITS = {"matrix": "float16", "vector": "float32"}


def nearest(graphs: Sequence[Graph], sizes: Mapping[Dim, int], machine: Machine) -> int:
    """The number, from 1, of the graph with the least of all least times; of equals the first.

    ``sizes``: by size class.
    """
    times = [least_time(graph, sizes, machine) for graph in graphs] if len(graphs) > 1 else [0.0]
    return 1 + times.index(min(times))


def least_time(graph: Graph, sizes: Mapping[Dim, int], machine: Machine) -> float:
    """Seconds to move what ``graph`` moves, or to compute what it computes, in float16."""
    dims = dict.fromkeys(map(size_class, dims_of(graph)))
    known = {dim: sizes[dim] for dim in dims if dim in sizes}
    whole = list_only(graph)
    most = PRIORS.glance_block
    cut = {dim: max(1, min(most, size)) for dim, size in known.items() if dim not in whole}
    found = closed_traffic(graph).at(known, block_sizes=cut, item_bytes=2)
    rates = {unit: machine.rate(unit, dtype) for unit, dtype in UNITS.items()}
    computing = sum(count / rates[unit] for unit, count in found.flops.items())
    return max(computing, found.bytes / machine.memory.bandwidth)
