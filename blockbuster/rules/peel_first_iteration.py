"""peel-first-iteration: iteration 0 of a map stands before it, where its inner maps can fuse.

before   E = map N { ... }                  after   E = map N { ... }
         O = map L (E = !E, vt in !VT) {            v = head L (!VT)
           o = map N (e in !E, v in !vt) {          a = map N (e in !E, v_1 in !v) { ... }
             ...                                    O = map L from 1 (E = !E, vt in !VT; a) {
           }                                          o = map N (e in !E, v in !vt) { ... }
           yield o                                    yield o
         }                                          }

The two maps over N now stand in one graph, where a fusion rule can fuse them. Saves one pass over
the value they share; a list that the other iterations read stays buffered. Costs code, no work:
nothing is computed twice, so unlike extend-map it needs no conditions on the rest of the graph.
Termination: a map that starts at 1 is never peeled, and the copies are of maps nested less deep.
Source: Blockbuster Part 1, rule 7: an alternative to rule 6, with the same three witnesses.
(a) a map feeds a peeled one, (b) both read the same input of this graph, (c) the same node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Head, Map
from blockbuster.ir.origin import Origin
from blockbuster.rules.base import Match, Note, Rule, unheard
from blockbuster.rules.extension import meeting
from blockbuster.rules.legality import first_extent_unseen, first_iteration_gone, map_at


class PeelFirstIteration(Rule):
    """Rule 7."""

    name = "peel-first-iteration"
    number = 7
    kind = "extension"
    needs = (Map, Map)

    def matches(self, graph: Graph, note: Note = unheard) -> Iterator[Match]:
        for position, op in graph.of_type(Map):
            if not any(True for _ in op.body.of_type(Map)):
                continue
            reason = first_iteration_gone(graph, position) or first_extent_unseen(graph, position)
            found = None if reason else meeting(*_peeled(graph, position))
            if not found:
                reason = reason or "no map here would meet one of its iteration 0"
            words = found.words if found else ""
            yield from self.judged(graph, {"map": position}, reason, note, words)

    def apply(self, match: Match) -> Graph:
        return _peeled(match.graph, match.nodes["map"], match.origin())[0]

    def describe(self, match: Match) -> str:
        return f"peel {match.map('map').dim} for {match.detail}"


def _peeled(
    graph: Graph, position: int, origin: Origin = Origin()
) -> tuple[Graph, list[int], list[int]]:
    """The graph with iteration 0 before the map; where old nodes are in it, and where copies."""
    node, op = graph.nodes[position], map_at(graph, position)
    edit = Builder(graph)
    args = []
    for value, iterated, given in zip(node.operands, op.iterated, op.body.inputs, strict=True):
        if iterated:
            (value,) = edit.add(Head(op.dim), value, hints=(given.hint,), origin=origin)
        args.append(value)
    firsts = edit.inline(op.body, args)
    start = len(graph.nodes) + sum(op.iterated)
    late = replace(op, start=1)
    new = edit.add(late, *node.operands, *firsts, hints=node.hints, origin=origin)
    for port, value in enumerate(new):
        edit.redirect(Value(position, port), value)
    peeled = edit.finish()
    old = [new for raw, new in edit.positions.items() if raw < len(graph.nodes)]
    copies = [new for raw, new in edit.positions.items() if 0 <= raw - start < len(op.body.nodes)]
    return peeled, old, copies
