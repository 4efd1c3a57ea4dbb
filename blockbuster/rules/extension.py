"""What extension rules share: moving nodes of a graph into one of its maps; maps that then fuse."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map
from blockbuster.rules.base import Match, hint_of, label
from blockbuster.rules.fuse_maps import FuseMaps, shared_operands
from blockbuster.rules.fuse_siblings import FuseSiblings
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


def between(graph: Graph, first: int, last: int) -> list[int]:
    """``first`` and what depends on it among what ``last`` depends on, in order."""
    found, stack = {first}, [first]
    while stack:
        readers = {n for n in readers_of(graph, stack.pop()) if n != last} - found
        new = {n for n in readers if graph.reaches(n, last)}
        found |= new
        stack += sorted(new)
    return sorted(found, key=graph.rank.__getitem__)


def readers_of(graph: Graph, position: int) -> list[int]:
    """The nodes that read results of the node at ``position``."""
    ports = range(len(graph.nodes[position].types))
    return [n for port in ports for n in graph.consumers(Value(position, port))]


class Meeting(NamedTuple):
    """Two maps that a fusion rule can take: the one from outside, the one from inside, in words."""

    outer: int
    inner: int
    words: str


def meeting(graph: Graph, outer: Collection[int], inner: Collection[int]) -> Meeting | None:
    """The first map of ``outer`` that fuses with one of ``inner``, both positions in ``graph``.

    (a) it feeds it, (b) both read the same list that is an input, (c) or that a node makes.
    """
    for match in FuseMaps().matches(graph):
        producer, consumer = match.nodes["producer"], match.nodes["consumer"]
        if producer in outer and consumer in inner:
            what = f"{label(match.node('producer'))} -> {label(match.node('consumer'))}"
            return Meeting(producer, consumer, f"(a) {what}")
    for match in FuseSiblings().matches(graph):
        first, second = match.nodes["first"], match.nodes["second"]
        shared = [v for v in shared_operands(graph, first, second) if graph.type_of(v).buffered]
        if not shared:
            continue  # a local value costs no pass
        variant = "(b)" if any(v.node < 0 for v in shared) else "(c)"
        words = f"{variant} {label(match.node('first'))} | {label(match.node('second'))}"
        for one, other in ((first, second), (second, first)):
            if one in outer and other in inner:
                return Meeting(one, other, words)
    return None
