"""Which piece of a block program each of its nodes belongs to, where misc operators cut it."""

from __future__ import annotations

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Misc, Relabel, Transpose


def is_view(graph: Graph, position: int) -> bool:
    """True for a node that shows a buffered value with its axes in another order or renamed."""
    node = graph.nodes[position]
    return isinstance(node.op, Relabel | Transpose) and node.types[0].buffered


def stages(graph: Graph) -> list[int]:
    """For each node the number of its piece; a misc operator runs behind the piece of its number.

    Between two nodes of one piece lies no misc operator, so each piece can run in one go.
    """
    found: list[int] = []
    for node in graph.nodes:
        behind = [
            found[v.node] + isinstance(graph.nodes[v.node].op, Misc)
            for v in node.operands
            if v.node >= 0
        ]
        found.append(max(behind, default=0))
    for position in reversed(range(len(found))):
        if isinstance(graph.nodes[position].op, Misc):
            continue
        ports = range(len(graph.nodes[position].types))
        readers = [found[r] for p in ports for r in graph.consumers(Value(position, p))]
        found[position] = min(readers, default=found[position])
    return found
