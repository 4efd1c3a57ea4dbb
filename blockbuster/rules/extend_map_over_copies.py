"""extend-map-over-copies: a map takes in a copy of its list's producer, which others read, too.

before   E, F = map M { ... }             after   F = map M { ... }
         A = map K (e = !E) {                     A = map K {
           a = map M (e2 in !e) { ... }             E = map M { ... }
           yield a }                                a = map M (e2 in !E) { ... }
         B = map L (f = !F) { ... }                 yield a }
                                                  B = map L (f = !F) { ... }

Like extend-map-over-ancestors, where that rule refuses because others read the pulled nodes: here
they keep these nodes, and the map gets copies. The list between the two maps is not stored then.
Costs the work of the copies, in every iteration, which may be a matmul or an exponential: so no
rule set of ``fuse`` holds this rule (see copy-producer).
Termination: each application moves a list that the map read whole into the map, and maps over one
dim do not nest.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map, Misc
from blockbuster.rules.base import Match, Note, label, name_of, unheard
from blockbuster.rules.extend_map_over_ancestors import ExtendMapOverAncestors, needed_elsewhere
from blockbuster.rules.extension import between, extended
from blockbuster.rules.fuse_maps import FuseMaps
from blockbuster.rules.legality import cannot_be_taken_in, first_iteration_gone, map_at
from blockbuster.rules.statistics import nodes_of


class ExtendMapOverCopies(ExtendMapOverAncestors):
    """A site is a map and the first map of those whose copies it takes in."""

    name = "extend-map-over-copies"

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        op = graph.nodes[position].op
        inner = {loop.dim for _, loop in op.body.of_type(Map)} if isinstance(op, Map) else ()
        for other, candidate in graph.of_type(Map) if inner else ():
            if candidate.dim not in inner or not graph.reaches(other, position):
                continue
            pulled = between(graph, other, position)
            reason = (
                _needed_by_the_map_alone(graph, pulled, position)
                or first_iteration_gone(graph, position)
                or _cannot_be_taken_in(graph, pulled, position)
                or _feeds_no_map_inside(graph, pulled, position)
            )
            nodes = {"map": position, "pulled": other}
            words = f"a copy of {label(graph.nodes[other])}"
            yield from self.judged(graph, nodes, reason, note, words)


# Side conditions: each returns "" where it is met, else the reason in words ----------------------


def _needed_by_the_map_alone(graph: Graph, pulled: list[int], position: int) -> str:
    """Nodes with no other reader need no copy: extend-map-over-ancestors takes them in."""
    if any(needed_elsewhere(graph, at, (*pulled, position)) for at in pulled):
        return ""
    return f"nobody else reads {name_of(graph, Value(pulled[0]))}: it need not be copied"


def _cannot_be_taken_in(graph: Graph, pulled: list[int], position: int) -> str:
    """Copied nodes must be independent of the map's dim, not opaque, and not nested too deep."""
    dim = map_at(graph, position).dim
    for at in pulled:
        op = graph.nodes[at].op
        inside = (*nodes_of(op.body),) if isinstance(op, Map) else (graph.nodes[at],)
        if any(isinstance(node.op, Misc) for node in inside):
            return f"{label(graph.nodes[at])} holds a function of whole arrays"
        if reason := cannot_be_taken_in(graph, at, dim):
            return reason
    return _stored_anyway(graph, pulled, position)


def _stored_anyway(graph: Graph, pulled: list[int], position: int) -> str:
    """A list that leaves the level is stored even if it is copied."""
    for value in graph.nodes[position].operands:
        if value.node in pulled and value in graph.output_values:
            return f"{name_of(graph, value)} is a result: it is stored anyway"
    return ""


def _feeds_no_map_inside(graph: Graph, pulled: list[int], position: int) -> str:
    """A list goes from the copied nodes to a map inside, which will then be fused with it."""
    made = extended(graph, position, pulled)
    outer, inner = set(made.pulled.values()), set(made.own.values())
    for match in FuseMaps().matches(made.op.body):
        if match.nodes["producer"] in outer and match.nodes["consumer"] in inner:
            return ""
    return "no map inside reads it item by item"
