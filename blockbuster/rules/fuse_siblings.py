"""fuse-siblings: two maps over the same dim that read the same value become one map.

before   A = map M (x in !X) {              after   A, B = map M (x in !X) {
           a = exp(x)                                 a = exp(x)
           yield a                                    b = x + 1
         }                                            yield a
         B = map M (x_1 in !X) {                      yield b
           b = x_1 + 1                              }
           yield b
         }

Saves one pass over what they share. Costs nothing.
Source: Blockbuster Part 1, rule 2. Sharing is a condition of profit; independence one of legality.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map
from blockbuster.rules.base import Match, Note, Refusal, Rule, label
from blockbuster.rules.fuse_maps import moved_leads, padded, shared_operands
from blockbuster.rules.legality import dependent, different_dims


@dataclass(frozen=True)
class FuseSiblings(Rule):
    """Rule 2."""

    name: ClassVar[str] = "fuse-siblings"
    number: ClassVar[int | None] = 2

    def matches(self, graph: Graph, note: Note = lambda _: None) -> Iterator[Match]:
        maps = [position for position, _ in graph.of_type(Map)]
        for index, second in enumerate(maps):
            for first in maps[:index]:
                if not shared_operands(graph, first, second):
                    continue
                reason = different_dims(graph, first, second) or dependent(graph, first, second)
                if reason:
                    note(Refusal(self, (first, second), reason))
                else:
                    yield Match(self, graph, {"first": first, "second": second})

    def apply(self, match: Match) -> Graph:
        nodes = (match.node("first"), match.node("second"))
        ops = (match.map("first"), match.map("second"))
        body = Builder()
        outputs: list[Value] = []
        for op in ops:
            outputs += body.inline(
                op.body, [body.input(i.type, hint=i.hint) for i in op.body.inputs]
            )
        fused = Map(
            ops[0].dim,
            body.finish(*outputs),
            ops[0].iterated + ops[1].iterated,
            ops[0].results + moved_leads(ops[1].results, len(ops[0].results)),
        )
        edit = Builder(match.graph)
        hints = padded(nodes[0].hints, len(nodes[0].types)) + nodes[1].hints
        operands = nodes[0].operands + nodes[1].operands
        new = iter(edit.add(fused, *operands, hints=hints, origin=match.origin()))
        for role, node in zip(("first", "second"), nodes, strict=True):
            for port in range(len(node.types)):
                edit.redirect(match.value(role, port), next(new))
        return edit.finish()

    def describe(self, match: Match) -> str:
        return f"{label(match.node('first'))} | {label(match.node('second'))}"
