"""List-only dims: batch, heads, groups, whose blocks have one element.

Array programs block the last two axes of an array only; the others are loops alone. Such a dim may
be an axis elsewhere in the program: there its blocks have extent 1, and a pointwise operator drops
or adds the axis.
"""

from __future__ import annotations

from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim, size_class


def list_only(graph: Graph) -> tuple[Dim, ...]:
    """The size classes of the list-only dims of a program, in order of appearance.

    They show in the type of an input or output that has the list but not the axis, and in a
    pointwise operator that drops or adds an axis.
    """
    ends = [i.type for i in graph.inputs] + [graph.type_of(o.value) for o in graph.outputs]
    found = [d for type in ends for d in type.lists if d not in type.axes]
    return tuple(dict.fromkeys(map(size_class, (*found, *graph.mentions.spread))))
