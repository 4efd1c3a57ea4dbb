"""Whole dims: axes of the items that a program reads or returns, without a list over them.

The items have all of such a dim, and no loop runs over it: it is one block, whatever its size.
"""

from __future__ import annotations

from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim, size_class


def whole_dims(graph: Graph) -> tuple[Dim, ...]:
    """The size classes of the whole dims of a program, in order of appearance."""
    ends = [graph.inputs[port].type for port in graph.inputs_by_first_use]
    ends += [graph.type_of(output.value) for output in graph.outputs]
    found = (dim for type in ends for dim in type.axes if dim not in type.lists)
    return tuple(dict.fromkeys(map(size_class, found)))
