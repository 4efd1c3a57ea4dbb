"""The local footprint: the peak number of elements in local memory.

Equations run in order. An item takes room from the equation that makes it until its last reader has
run (if it leaves the body, until the body ends). An item that a map iterates over takes room from
the start of the body that loads it. The operands and results of an equation are held together:
while its body runs, a map holds the values passed to it whole and its running totals, a reduction
its total and one item. Transposing and relabeling make nothing new, and lists live in global
memory. Blocks have the size of first blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Relabel, Transpose
from blockbuster.selection.traffic.closed_forms import ZERO, ClosedForm, total

Peak = tuple[ClosedForm, ...]
"""Candidates for a maximum, none of which exceeds another everywhere."""


def peak(
    graph: Graph,
    room: Callable[[Value], ClosedForm],
    loaded: Collection[int],
    inner: Mapping[int, Peak],
) -> Peak:
    """The most that the items of one level hold, with what the bodies inside hold meanwhile.

    ``room`` says how many elements an item has, ``loaded`` which inputs are loaded here (the others
    belong to a level around this one), ``inner`` what an equation needs beside its operands.
    """
    spans = _spans(graph, loaded)
    sizes = {value: room(value) for value in spans}
    found: list[ClosedForm] = []
    for position in range(-1, len(graph.nodes)):
        live = [sizes[v] for v, (made, last) in spans.items() if made <= position <= last]
        found += [total((*live, more)) for more in inner.get(position, (ZERO,))]
    return largest_of(found)


def _spans(graph: Graph, loaded: Collection[int]) -> dict[Value, tuple[int, int]]:
    """For each item that takes room here, the equations from which and up to which it lives."""
    behind = {Value(-1, port): Value(-1, port) for port in loaded}
    spans = dict.fromkeys(behind, (-1, -1))
    for position, node in enumerate(graph.nodes):
        for operand in node.operands:
            if operand in behind:
                value = behind[operand]
                spans[value] = (spans[value][0], position)
        if isinstance(node.op, Transpose | Relabel):
            if node.operands[0] in behind:
                behind[Value(position)] = behind[node.operands[0]]
            continue
        for port, type in enumerate(node.types):
            if not type.buffered:
                value = Value(position, port)
                behind[value], spans[value] = value, (position, position)
    for output in graph.outputs:
        if output.value in behind:
            value = behind[output.value]
            spans[value] = (spans[value][0], len(graph.nodes))
    return spans


def largest_of(candidates: Collection[ClosedForm]) -> Peak:
    """The candidates that no other candidate covers."""
    kept: list[ClosedForm] = []
    for one in dict.fromkeys(candidates):
        if not any(one.at_most(other) for other in kept):
            kept = [other for other in kept if not other.at_most(one)]
            kept.append(one)
    return tuple(kept)
