"""duplicate-scale: a mapped scale that feeds several matmuls gets one copy for each.

before   S = map K { row_scale(x, c) }      after   S1 = map K { row_scale(x, c) }
         A = matmul of S and W                      A  = matmul of S1 and W
         B = matmul of S and V                      S2 = map K { row_scale(x, c) }
                                                    B  = matmul of S2 and V

Enables swap-scale-dot, which wants a scale with one use. Costs a scale, until that rule moves it.
One application splits off the first matmul's copy. Equal nodes are never merged: it would loop.
Source: Blockbuster Part 1, rule 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.rules.base import Kind, Match, Note, Refusal, Rule, label, name_of
from blockbuster.rules.patterns import matmul, row_map


@dataclass(frozen=True)
class DuplicateScale(Rule):
    """Rule 8."""

    name: ClassVar[str] = "duplicate-scale"
    number: ClassVar[int | None] = 8
    kind: ClassVar[Kind] = "companion"

    def matches(self, graph: Graph, note: Note = lambda _: None) -> Iterator[Match]:
        for position in range(len(graph.nodes)):
            source = row_map(graph, position, "row_scale")
            consumers = graph.consumers(Value(position))
            if source is None or len(consumers) < 2:
                continue
            reason = (
                source
                if isinstance(source, str)
                else _not_only_matmuls(graph, Value(position), consumers)
            )
            if reason:
                note(Refusal(self, (position, *consumers), reason))
            else:
                yield Match(self, graph, {"scale": position, "matmul": consumers[0]})

    def apply(self, match: Match) -> Graph:
        scale = match.node("scale")
        edit = Builder(match.graph)
        (copy,) = edit.add(scale.op, *scale.operands, hints=scale.hints, origin=match.origin())
        for consumer, index in match.graph.uses[match.value("scale")]:
            if consumer == match.nodes["matmul"]:
                edit.set_operand(consumer, index, copy)
        return edit.finish()

    def describe(self, match: Match) -> str:
        return f"duplicate {label(match.node('scale'))} for {label(match.node('matmul'))}"


def _not_only_matmuls(graph: Graph, made: Value, consumers: tuple[int, ...]) -> str:
    """Every use must be a matmul that swap-scale-dot accepts: else the copies stay."""
    if made in graph.output_values:
        return f"{name_of(graph, made)} is a result of the program: it must still be computed"
    for consumer in consumers:
        found = matmul(graph, consumer)
        if isinstance(found, str):
            return found
    return ""
