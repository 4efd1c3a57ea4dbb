"""extend-map: the map that makes every result takes in the whole graph.

before   E = map N { ... }                  after   O = map L (X = !X, vt in !VT) {
         O = map L (E = !E, vt in !VT) {              E = map N { ... }
           o = map N (e in !E, v in !vt) { ... }      o = map N (e in !E, v in !vt) { ... }
           yield o                                    yield o
         }                                          }

The two maps over N now stand in one graph, where a fusion rule takes them. Costs work: what is
pulled in is done once per iteration of L. The driver keeps a snapshot from before.
Source: Blockbuster Part 1, rule 6: one rule with three witnesses. (a) a pulled map feeds an inner
one, (b) both read the same input of this graph, (c) both read the same node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map
from blockbuster.rules.base import Kind, Match, Note, Refusal, Rule, label, name_of
from blockbuster.rules.fuse_maps import FuseMaps, shared_operands
from blockbuster.rules.fuse_siblings import FuseSiblings
from blockbuster.rules.legality import dims_inside, map_at


@dataclass(frozen=True)
class ExtendMap(Rule):
    """Rule 6."""

    name: ClassVar[str] = "extend-map"
    number: ClassVar[int | None] = 6
    kind: ClassVar[Kind] = "extension"

    def matches(self, graph: Graph, note: Note = lambda _: None) -> Iterator[Match]:
        if len(graph.nodes) < 2:
            return
        for position, op in graph.of_type(Map):
            reason = (
                _not_every_output(graph, position)
                or _iterates_a_made_list(graph, position)
                or _dim_in_use(graph, position)
            )
            pair = None if reason else _witness(graph, position)
            if pair:
                pulled, meeting = pair
                yield Match(self, graph, {"map": position, "pulled": pulled}, meeting)
            elif any(True for _ in op.body.of_type(Map)):
                reason = reason or "no map of the graph would meet one inside it"
                note(Refusal(self, (position,), reason))

    def apply(self, match: Match) -> Graph:
        position = match.nodes["map"]
        body, operands, iterated, _ = _extended(match.graph, position)
        edit = Builder(match.graph)
        node = match.node("map")
        op = Map(match.map("map").dim, body, iterated, match.map("map").results)
        new = edit.add(op, *operands, hints=node.hints, origin=match.origin())
        for port, value in enumerate(new):
            edit.redirect(Value(position, port), value)
        return edit.finish()

    def describe(self, match: Match) -> str:
        return f"extend {match.map('map').dim} for {match.detail}"


def _extended(
    graph: Graph, position: int
) -> tuple[Graph, list[Value], tuple[bool, ...], dict[int, int]]:
    """The body of the extended map, its operands, and where nodes of both graphs went in it.

    Keys of the places are positions in ``graph``; a node i of the map's own body has key -1 - i.
    """
    node, op = graph.nodes[position], map_at(graph, position)
    body = Builder()
    operands: list[Value] = []
    iterated: list[bool] = []
    inside: dict[Value, Value] = {}
    for port, given in enumerate(graph.inputs):
        inside[Value(-1, port)] = body.input(given.type, hint=given.hint)
        operands.append(Value(-1, port))
        iterated.append(False)
    raw: dict[int, int] = {}
    for other, pulled in enumerate(graph.nodes):
        if other != position:
            made = body.add(
                pulled.op,
                *(inside[v] for v in pulled.operands),
                hints=pulled.hints,
                origin=pulled.origin,
            )
            inside |= {Value(other, p): value for p, value in enumerate(made)}
            raw[other] = made[0].node
    args = []
    for index, value in enumerate(node.operands):
        if op.iterated[index]:
            given = op.body.inputs[index]
            args.append(body.input(given.type, hint=given.hint))
            operands.append(value)
            iterated.append(True)
        else:
            args.append(inside[value])
    first = 1 + max(raw.values(), default=-1)
    raw |= {-1 - i: first + i for i in range(len(op.body.nodes))}
    outputs = body.inline(op.body, args)
    extended = body.finish(*outputs)
    places = {key: body.positions[at] for key, at in raw.items() if at in body.positions}
    return extended, operands, tuple(iterated), places


def _witness(graph: Graph, position: int) -> tuple[int, str] | None:
    """A pulled map that a fusion rule will bring together with an inner map, and how, in words."""
    extended, _, _, places = _extended(graph, position)
    key_at = {at: key for key, at in places.items()}
    for match in FuseMaps().matches(extended):
        first, second = match.nodes["producer"], match.nodes["consumer"]
        if key_at[first] >= 0 > key_at[second]:
            return key_at[
                first
            ], f"(a) {label(match.node('producer'))} -> {label(match.node('consumer'))}"
    for match in FuseSiblings().matches(extended):
        first, second = match.nodes["first"], match.nodes["second"]
        if (key_at[first] >= 0) != (key_at[second] >= 0):
            shared = shared_operands(extended, first, second)
            variant = "(b)" if any(v.node < 0 for v in shared) else "(c)"
            pulled = max(key_at[first], key_at[second])
            return pulled, f"{variant} {label(match.node('first'))} | {label(match.node('second'))}"
    return None


def _not_every_output(graph: Graph, position: int) -> str:
    """Every result must come from the map; then nobody else reads what it makes."""
    for output in graph.outputs:
        if output.value.node != position:
            return f"{name_of(graph, output.value)} is a result that the map does not make"
    return ""


def _iterates_a_made_list(graph: Graph, position: int) -> str:
    """What the map iterates must be an input: a made list would need one element picked."""
    node = graph.nodes[position]
    for value, iterated in zip(node.operands, map_at(graph, position).iterated, strict=True):
        if iterated and value.node >= 0:
            return f"the map iterates {name_of(graph, value)}, which is made in the same graph"
    return ""


def _dim_in_use(graph: Graph, position: int) -> str:
    """What is pulled in may not itself run over the map's dim, or take whole lists over it."""
    dim = map_at(graph, position).dim
    for other, node in enumerate(graph.nodes):
        if other == position:
            continue
        if isinstance(node.op, Map) and dim in (node.op.dim, *dims_inside(node.op.body)):
            return f"{label(node)} runs over {dim} itself"
        if any(dim in t.lists + t.axes for t in (*node.types, *map(graph.type_of, node.operands))):
            return f"{label(node)} reads or makes lists over {dim}"
    return ""
