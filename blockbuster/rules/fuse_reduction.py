"""fuse-reduction: a map whose list is reduced folds it on the fly.

before   P = map K (x in !X) {              after   r = map K (x in !X) {
           p = row_sum(x)                             p = row_sum(x)
           yield p                                    yield +p
         }                                          }
         r = reduce + K (!P)

Saves one buffered edge. Costs parallelism: the loop becomes serial, or atomic. A list that others
read, or that the program returns, stays a result beside the fold.
Nothing is refused: a list that can be reduced is one level deep and collected over that dim, or it
would not have its type.
Source: Blockbuster Part 1, rule 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Accumulate, Map, Reduce
from blockbuster.rules.base import Match, Note, Rule
from blockbuster.rules.fuse_maps import padded


@dataclass(frozen=True)
class FuseReduction(Rule):
    """Rule 3."""

    name: ClassVar[str] = "fuse-reduction"
    number: ClassVar[int | None] = 3

    def matches(self, graph: Graph, note: Note = lambda _: None) -> Iterator[Match]:
        for position, _ in graph.of_type(Reduce):
            (source,) = graph.nodes[position].operands
            if source.node >= 0 and isinstance(graph.nodes[source.node].op, Map):
                yield Match(self, graph, {"map": source.node, "reduction": position})

    def apply(self, match: Match) -> Graph:
        node, reduction = match.node("map"), match.node("reduction")
        op, fold = match.map("map"), reduction.op
        assert isinstance(fold, Reduce)
        folded = op.body.outputs[reduction.operands[0].port]
        body = replace(op.body, outputs=(*op.body.outputs, folded))
        fused = replace(op, body=body, results=(*op.results, Accumulate(fold.monoid)))
        edit = Builder(match.graph)
        hints = padded(node.hints, len(node.types)) + reduction.hints
        *kept, total = edit.add(fused, *node.operands, hints=hints, origin=match.origin())
        for port, value in enumerate(kept):
            edit.redirect(match.value("map", port), value)
        edit.redirect(match.value("reduction"), total)
        return edit.finish()
