"""The dims and opaque functions that occur in a graph, at any level."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from blockbuster.ir.ops import Map, Misc, Pointwise
from blockbuster.ir.types import Dim

if TYPE_CHECKING:
    from blockbuster.ir.graph import Graph


class Mentions(NamedTuple):
    """Each in order of appearance, each once."""

    dims: tuple[Dim, ...]
    """Every dim, level by level; last those that only have a size."""
    single: tuple[Dim, ...]
    """Axes that pointwise operators drop or add; lists without an axis around misc operators."""
    miscs: tuple[Misc, ...]
    """The misc operators."""


def mentions(graph: Graph) -> Mentions:
    """The dims and opaque functions in ``graph`` and the bodies of its maps."""
    dims: list[Dim] = []
    for type in (*[i.type for i in graph.inputs], *[t for n in graph.nodes for t in n.types]):
        dims += type.lists + type.axes
    single: list[Dim] = []
    miscs: list[Misc] = []
    for node in graph.nodes:
        match node.op:
            case Map(dim, body):
                inner = body.mentions
                dims += (dim, *inner.dims)
                single += inner.single
                miscs += inner.miscs
            case Pointwise(_, axes):
                dims += axes
                read = [d for v in node.operands for d in graph.type_of(v).axes]
                single += [d for d in read if d not in axes]
                single += [d for d in axes if d not in read]
            case Misc() as op:
                miscs.append(op)
                for type in (*graph.types_of(node.operands), *node.types):
                    single += [d for d in type.lists if d not in type.axes]
    for rule in graph.size_rules:
        dims += (rule.dim, *rule.length.dims)
    return Mentions(tuple(dict.fromkeys(dims)), tuple(dict.fromkeys(single)), tuple(miscs))
