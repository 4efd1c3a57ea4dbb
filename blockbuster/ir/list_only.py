"""List-only dims: batch, heads, groups, whose blocks have one element.

Array programs block only the last two axes of an array; the other axes are only loops. Such a dim
may be an axis elsewhere in the program: there its blocks have extent 1, and a pointwise operator
drops or adds the axis.
"""

from __future__ import annotations

from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim, size_class


def list_only(graph: Graph) -> tuple[Dim, ...]:
    """The size classes of the list-only dims of a program, in order of appearance.

    They show wherever a type stands for a whole array and has the list but not the axis: in inputs
    and outputs, in operands and results of misc operators. They also show in a pointwise operator
    that drops or adds an axis. Elsewhere such a type may hold partial results of larger blocks.
    """
    ends = [i.type for i in graph.inputs] + [graph.type_of(o.value) for o in graph.outputs]
    found = [d for type in ends for d in type.lists if d not in type.axes]
    return tuple(dict.fromkeys(map(size_class, (*found, *graph.mentions.single))))
