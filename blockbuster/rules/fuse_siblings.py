"""fuse-siblings: two maps over the same dim that read the same value become one map.

before   A = map M (x in !X) {              after   A, B = map M (x in !X) {
           a = exp(x)                                 a = exp(x)
           yield a                                    b = x + 1
         }                                            yield a
         B = map M (x_1 in !X) {                      yield b
           b = x_1 + 1                              }
           yield b
         }

Saves one pass over the value they share. Costs nothing.
Source: Blockbuster Part 1, rule 2. Sharing is a condition of profit; independence one of legality.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map
from blockbuster.rules.base import LocalRule, Match, Note, label, unheard
from blockbuster.rules.fuse_maps import Joined, moved_leads, padded
from blockbuster.rules.legality import dependent, different_dims, first_iteration_gone


class FuseSiblings(LocalRule):
    """Rule 2."""

    name = "fuse-siblings"
    number = 2
    in_place = True
    needs = (Map, Map)

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        if not isinstance(graph.nodes[position].op, Map):
            return
        for first in graph.readers_before(position):
            if not isinstance(graph.nodes[first].op, Map):
                continue
            reason = (
                different_dims(graph, first, position)
                or first_iteration_gone(graph, first, position)
                or dependent(graph, first, position)
            )
            yield from self.judged(graph, {"first": first, "second": position}, reason, note)

    def apply(self, match: Match) -> Graph:
        nodes = (match.node("first"), match.node("second"))
        ops = (match.map("first"), match.map("second"))
        joined = Joined(nodes[0], ops[0])
        made = [output.value for output in ops[0].body.outputs]
        fused = joined.map(
            [*made, *joined.inline(nodes[1], ops[1], {})],
            ops[0].results + moved_leads(ops[1].results, len(ops[0].results)),
        )
        edit = match.edit()
        hints = padded(nodes[0].hints, len(nodes[0].types)) + nodes[1].hints
        new = edit.add(fused, *joined.operands, hints=hints, origin=match.origin())
        edit.redirect_all(match.values("first") + match.values("second"), new)
        return edit.finish()

    def describe(self, match: Match) -> str:
        return f"{label(match.node('first'))} | {label(match.node('second'))}"
