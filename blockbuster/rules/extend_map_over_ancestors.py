"""extend-map-over-ancestors: a map takes in those of its ancestors that nothing else reads.

before   A = map N { ... }                  after   P = map L (W = !W, vt in !VT) {
         B = map K (a = !A) { ... }                   B = map K (a = !A) { ... }
         P = map L (b = !B, vt in !VT) {              p = map K (b in !B, v in !vt) { ... }
           p = map K (b in !b, v in !vt)              yield p
           yield p                                  }
         }                                  (A stays outside: nothing inside runs over N)

Like extend-map, but other results of the graph, and other values that the map depends on, stay
outside and are passed whole. So chains of any number of matmuls fuse, and statistics of a norm are
not computed again in every iteration. The two loops may also share a list while the inner one waits
for a factor that the outer one sums, where factor-out then takes the factor out of it.
Costs the work of the pulled nodes, once per iteration.
Termination: each application moves nodes from a graph into one of its maps, and no rule moves them
out.
Source: ours; the paper's rule 6 requires the entire graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map
from blockbuster.rules.base import Match, Note, UpstreamRule, label, name_of, unheard
from blockbuster.rules.extension import between, extended, meeting, readers_of, with_extended
from blockbuster.rules.factor_out import FactorOut
from blockbuster.rules.legality import cannot_be_taken_in, first_iteration_gone, map_at
from blockbuster.rules.shared_factor import sharing

TOLD = 32  # refusals of one map: explaining a long program would be quadratic


class ExtendMapOverAncestors(UpstreamRule):
    """Rule 6 for a part of the graph."""

    name = "extend-map-over-ancestors"
    kind = "extension"
    in_place = True
    needs = (Map, Map)

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        op = graph.nodes[position].op
        if not isinstance(op, Map) or not op.body.loops:
            return
        inner = tuple(loop.dim for _, loop in op.body.of_type(Map))
        gone = first_iteration_gone(graph, position)
        refused = _refused(graph, position, thorough=note is not unheard)
        for other in sorted(refused, key=graph.rank.__getitem__):
            candidate = graph.nodes[other].op
            if not isinstance(candidate, Map) or candidate.dim not in inner:
                continue
            reason = gone or refused[other]
            words = "" if reason else _meeting(graph, position, other)
            if not words:
                reason = reason or "it would meet no map inside: they share no list"
            nodes = {"map": position, "pulled": other}
            yield from self.judged(graph, nodes, reason, note, words)

    def apply(self, match: Match) -> Graph:
        position = match.nodes["map"]
        pulled = between(match.graph, match.nodes["pulled"], position)
        return with_extended(match, position, pulled)

    def describe(self, match: Match) -> str:
        return f"extend {match.map('map').dim} for {match.detail}"


def _meeting(graph: Graph, position: int, first: int) -> str:
    """How the pulled map will meet an inner one, in words."""
    made = extended(graph, position, between(graph, first, position))
    pulled = [at for old, at in made.pulled.items() if old == first]
    found = meeting(made.op.body, pulled, made.own.values())
    return found.words if found else _behind_a_factor(made.op.body, pulled, made.own.values())


def _behind_a_factor(body: Graph, pulled: Collection[int], own: Collection[int]) -> str:
    """Likewise for a map that shares a list with it, and waits for a factor that will leave."""
    for match in FactorOut().matches(body):
        inner = match.nodes["map"]
        outer = next((at for at in sharing(body, inner) if at in pulled), None)
        if inner in own and outer is not None:
            first, second = label(body.nodes[outer]), label(match.node("map"))
            return f"(d) {first} | {second}, without {match.detail}"
    return ""


def _refused(graph: Graph, position: int, *, thorough: bool) -> dict[int, str]:
    """Why nodes that the map depends on cannot be pulled in: "" if it alone needs them.

    It may need them through others, which then must be pulled in too. What is needed only through
    nodes that are refused is refused as well, and left out unless the look is ``thorough``: then
    up to ``TOLD`` refusals are found, and those of all that the map reads itself.
    """
    dim, rank = map_at(graph, position).dim, graph.rank
    refused: dict[int, str] = {}
    users, seen = {position}, set[int]()
    ahead: list[tuple[int, int]] = []  # a node comes when all have come that may read it

    def look_behind(key: int) -> None:
        for node in graph.nodes[key].makers:
            if node not in seen:
                seen.add(node)
                heappush(ahead, (-rank[node], node))

    look_behind(position)
    while ahead:
        _, other = heappop(ahead)
        refused[other] = (
            needed_elsewhere(graph, other, users)
            or cannot_be_taken_in(graph, other, dim)
            or next(filter(None, (refused.get(n, "") for n in readers_of(graph, other))), "")
        )
        users.add(other)
        if not refused[other] or (thorough and len(refused) < TOLD):
            look_behind(other)
    return refused


def needed_elsewhere(graph: Graph, position: int, users: Collection[int]) -> str:
    """Pulled nodes must serve only ``users``: otherwise they would be computed twice."""
    for port in range(len(graph.nodes[position].types)):
        value = Value(position, port)
        if value in graph.output_values:
            return f"{name_of(graph, value)} is a result of the program"
    for reader in readers_of(graph, position):
        if reader not in users:
            name = name_of(graph, Value(position))
            return f"{name} is also read by {label(graph.nodes[reader])}"
    return ""
