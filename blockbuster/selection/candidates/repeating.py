"""Work that loops repeat: the part of an iteration that does not depend on it.

A product inside the loop over another product's columns is computed for each block of them. It
could leave the loop if that is one block, or if the loops between the two are: a value made inside
a loop over D leaves a loop around it only with all of D.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Functional, Map
from blockbuster.ir.types import Dim

Dims = frozenset[Dim]


def repeating(graph: Graph) -> tuple[Dim, ...]:
    """The dims of loops that repeat loops or products, and of the loops between."""
    return tuple(dict.fromkeys(dim for loops in repeated_in(graph) for dim in loops))


def repeated_in(graph: Graph) -> Iterator[tuple[Dim, ...]]:
    """For each loop or product that is repeated, the loops around it from the outermost that
    repeats it.
    """
    yield from _repeated_in(graph, [Dims()] * len(graph.inputs), ())


def _repeated_in(
    graph: Graph, given: Sequence[Dims], around: tuple[Dim, ...]
) -> Iterator[tuple[Dim, ...]]:
    """The same of a level; ``given``: on which of the loops ``around`` its inputs depend."""
    made = {Value(-1, port): dims for port, dims in enumerate(given)}
    for position, node in enumerate(graph.nodes):
        operands = [made[value] for value in node.operands]
        own = Dims().union(*operands)
        made |= {Value(position, port): own for port in range(len(node.types))}
        if _is_work(node):
            outside = [at for at, dim in enumerate(around) if dim not in own]
            if outside:
                yield around[outside[0] :]
        if isinstance(node.op, Map):
            op = node.op
            entering = zip(op.iterated, operands, strict=False)  # without the first values
            inside = [dims | {op.dim} if of_item else dims for of_item, dims in entering]
            yield from _repeated_in(op.body, inside, (*around, op.dim))


def _is_work(node: Node) -> bool:
    return isinstance(node.op, Map) or node.op == Functional("dot")
