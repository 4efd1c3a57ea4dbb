"""duplicate-scale: a mapped scale that feeds several matmuls gets one copy for each.

before   S = map K { row_scale(x, c) }      after   S1 = map K { row_scale(x, c) }
         A = matmul of S and W                      A  = matmul of S1 and W
         B = matmul of S and V                      S2 = map K { row_scale(x, c) }
                                                    B  = matmul of S2 and V

Enables swap-scale-dot, which needs a scale with one use. Costs a scale, until that rule moves it.
One application splits off the first matmul's copy. Equal nodes are never merged, because this rule
would then run forever.
Source: Blockbuster Part 1, rule 8.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map
from blockbuster.rules.base import LocalRule, Match, Note, Refusal, label, name_of, unheard
from blockbuster.rules.patterns import matmul, row_map


class DuplicateScale(LocalRule):
    """Rule 8."""

    name = "duplicate-scale"
    number = 8
    kind = "companion"
    needs = (Map, Map, Map)
    in_place = True
    looks_beside = False

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        source = row_map(graph, position, "row_scale")
        if source is None:
            return
        consumers = graph.consumers(Value(position))
        if len(consumers) < 2:
            return
        made = Value(position)
        reason = source if isinstance(source, str) else _not_only_matmuls(graph, made, consumers)
        if reason:
            note(Refusal(self, (position, *consumers), reason))
        else:
            yield Match(self, graph, {"scale": position, "matmul": consumers[0]})

    def apply(self, match: Match) -> Graph:
        scale, edit = match.node("scale"), match.edit()
        (copy,) = edit.add(scale.op, *scale.operands, hints=scale.hints, origin=match.origin())
        for reader, index in match.graph.uses_of(match.value("scale")):
            if reader == match.nodes["matmul"]:
                edit.set_operand(reader, index, copy)
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
