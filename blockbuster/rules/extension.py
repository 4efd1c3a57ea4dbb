"""The step that both extension rules share: moving nodes of a graph into one of its maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map
from blockbuster.rules.base import Match, hint_of
from blockbuster.rules.legality import map_at


@dataclass(frozen=True)
class Extended:
    """A map that took nodes in: its operator and operands, and where nodes went in its body.

    ``pulled`` goes by positions in the graph, ``own`` by positions in the map's old body.
    """

    op: Map
    operands: tuple[Value, ...]
    pulled: dict[int, int]
    own: dict[int, int]


def extended(graph: Graph, position: int, pulled: Sequence[int]) -> Extended:
    """The map at ``position`` with the nodes ``pulled``, in order, before its body.

    What they read from the rest of the graph is passed whole.
    """
    node, op = graph.nodes[position], map_at(graph, position)
    body = Builder()
    operands: list[Value] = []
    iterated: list[bool] = []
    inside: dict[Value, Value] = {}

    def entering(value: Value) -> Value:
        if value not in inside:
            inside[value] = body.input(graph.type_of(value), hint=hint_of(graph, value))
            operands.append(value)
            iterated.append(False)
        return inside[value]

    for other in pulled:
        taken = graph.nodes[other]
        args = [entering(v) for v in taken.operands]
        made = body.add(taken.op, *args, hints=taken.hints, origin=taken.origin)
        inside |= {Value(other, port): value for port, value in enumerate(made)}
    args = []
    for value, walks, given in zip(node.operands, op.iterated, op.body.inputs, strict=True):
        if walks:
            args.append(body.input(given.type, hint=given.hint))
            operands.append(value)
            iterated.append(True)
        else:
            args.append(entering(value))
    inner = body.finish(*body.inline(op.body, args))
    places = body.positions
    count = len(pulled)
    return Extended(
        Map(op.dim, inner, tuple(iterated), op.results),
        tuple(operands),
        {other: places[at] for at, other in enumerate(pulled) if at in places},
        {at: places[count + at] for at in range(len(op.body.nodes)) if count + at in places},
    )


def with_extended(match: Match, position: int, pulled: Sequence[int]) -> Graph:
    """The graph in which the map at ``position`` has taken in ``pulled``."""
    node, made = match.graph.nodes[position], extended(match.graph, position, pulled)
    edit = match.edit()
    new = edit.add(made.op, *made.operands, hints=node.hints, origin=match.origin())
    for port, value in enumerate(new):
        edit.redirect(Value(position, port), value)
    return edit.finish()
