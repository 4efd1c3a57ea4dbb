"""fuse-reduction: a map whose list is reduced folds it on the fly.

before   P = map K (x in !X) {              after   r = map K (x in !X) {
           p = row_sum(x)                             p = row_sum(x)
           yield p                                    yield +p
         }                                          }
         r = reduce + K (!P)

Saves one buffered edge. Costs parallelism: the loop becomes serial, or atomic. If other nodes read
the list, or the program returns it, it stays a result beside the fold.

Refused if the map leaves out its first iteration: then the sum has no first term to begin with.
Nothing else is checked. The list's type already says that this map collected it, over this dim.
Source: Blockbuster Part 1, rule 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Accumulate, Map, Reduce
from blockbuster.rules.base import LocalRule, Match, Note, unheard
from blockbuster.rules.fuse_maps import padded
from blockbuster.rules.legality import first_iteration_gone


class FuseReduction(LocalRule):
    """Rule 3."""

    name = "fuse-reduction"
    number = 3
    needs = (Map, Reduce)
    in_place = True
    looks_beside = False

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        if not isinstance(graph.nodes[position].op, Reduce):
            return
        (source,) = graph.nodes[position].operands
        if source.node < 0 or not isinstance(graph.nodes[source.node].op, Map):
            return
        reason = first_iteration_gone(graph, source.node)
        yield from self.judged(graph, {"map": source.node, "reduction": position}, reason, note)

    def apply(self, match: Match) -> Graph:
        node, reduction = match.node("map"), match.node("reduction")
        op, fold = match.map("map"), reduction.op
        assert isinstance(fold, Reduce)
        folded = op.body.outputs[reduction.operands[0].port]
        body = replace(op.body, outputs=(*op.body.outputs, folded))
        fused = replace(op, body=body, results=(*op.results, Accumulate(fold.monoid)))
        edit = match.edit()
        hints = padded(node.hints, len(node.types)) + reduction.hints
        new = edit.add(fused, *node.operands, hints=hints, origin=match.origin())
        edit.redirect_all(match.values("map") + match.values("reduction"), new)
        return edit.finish()
