"""extend-map: the map that makes every result takes in the whole graph.

before   E = map N { ... }                  after   O = map L (X = !X, vt in !VT) {
         O = map L (E = !E, vt in !VT) {              E = map N { ... }
           o = map N (e in !E, v in !vt) { ... }      o = map N (e in !E, v in !vt) { ... }
           yield o                                    yield o
         }                                          }

The two maps over N now stand in one graph, where a fusion rule can fuse them. Costs work: the
pulled nodes are computed once per iteration of L. The driver keeps a snapshot from before.
Source: Blockbuster Part 1, rule 6: one rule with three witnesses. (a) a pulled map feeds an inner
one, (b) both read the same input of this graph, (c) both read the same node.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map
from blockbuster.rules.base import Match, Note, Refusal, Rule, name_of, unheard
from blockbuster.rules.extension import extended, meeting, with_extended
from blockbuster.rules.legality import cannot_be_taken_in, first_iteration_gone, map_at


class ExtendMap(Rule):
    """Rule 6."""

    name = "extend-map"
    number = 6
    kind = "extension"
    needs = (Map, Map)

    def matches(self, graph: Graph, note: Note = unheard) -> Iterator[Match]:
        for position in graph.places():
            yield from self._matches_at(graph, position, note)

    def match(self, graph: Graph) -> Match | None:
        """The site, if there is one: only the node that makes the first result can be it."""
        made = graph.outputs[0].value.node
        return None if made < 0 else next(self._matches_at(graph, made, unheard), None)

    def _matches_at(self, graph: Graph, position: int, note: Note) -> Iterator[Match]:
        op = graph.nodes[position].op
        if len(graph.nodes) < 2 or not isinstance(op, Map) or not op.body.loops:
            return
        reason = (
            first_iteration_gone(graph, position)
            or _not_every_output(graph, position)
            or _iterates_a_made_list(graph, position)
            or _not_all_taken_in(graph, position)
        )
        found = None if reason else _meeting(graph, position)
        if found:
            pulled, words = found
            yield Match(self, graph, {"map": position, "pulled": pulled}, words)
        else:
            reason = reason or "no map of the graph would meet one inside it"
            note(Refusal(self, (position,), reason))

    def apply(self, match: Match) -> Graph:
        position = match.nodes["map"]
        return with_extended(match, position, _others(match.graph, position))

    def describe(self, match: Match) -> str:
        return f"extend {match.map('map').dim} for {match.detail}"


def _others(graph: Graph, position: int) -> list[int]:
    return [other for other in range(len(graph.nodes)) if other != position]


def _meeting(graph: Graph, position: int) -> tuple[int, str] | None:
    """A pulled map that will meet an inner one, and how, in words."""
    made = extended(graph, position, _others(graph, position))
    found = meeting(made.op.body, made.pulled.values(), made.own.values())
    if found is None:
        return None
    return next(old for old, new in made.pulled.items() if new == found.outer), found.words


def _not_every_output(graph: Graph, position: int) -> str:
    """Every result must come from the map; then no other node reads its results."""
    for output in graph.outputs:
        if output.value.node != position:
            return f"{name_of(graph, output.value)} is a result that the map does not make"
    return ""


def _iterates_a_made_list(graph: Graph, position: int) -> str:
    """The map must iterate over inputs: of a computed list it would need one element each time."""
    node = graph.nodes[position]
    for value, iterated in zip(node.operands, map_at(graph, position).iterated, strict=True):
        if iterated and value.node >= 0:
            return f"the map iterates {name_of(graph, value)}, which is made in the same graph"
    return ""


def _not_all_taken_in(graph: Graph, position: int) -> str:
    """The map must be able to take in every other node."""
    dim = map_at(graph, position).dim
    found = (cannot_be_taken_in(graph, other, dim) for other in _others(graph, position))
    return next(filter(None, found), "")
