"""fuse-maps: a map that feeds a map over the same dim becomes one map.

before   T = map M (x in !X) {              after   Y = map M (x in !X) {
           t = exp(x)                                 t = exp(x)
           yield t                                    y = t + 1
         }                                            yield y
         Y = map M (t_1 in !T) {                    }
           y = t_1 + 1
           yield y
         }

Saves the buffered edge between them. Costs nothing: no work is repeated, and a list of the first
map that others read stays a result of the fused one.
Source: Blockbuster Part 1, rule 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map, Rescale, Result
from blockbuster.rules.base import Match, Note, Refusal, Rule
from blockbuster.rules.legality import different_dims, edge_not_item_by_item, indirect_path


@dataclass(frozen=True)
class FuseMaps(Rule):
    """Rule 1."""

    name: ClassVar[str] = "fuse-maps"
    number: ClassVar[int | None] = 1

    def matches(self, graph: Graph, note: Note = lambda _: None) -> Iterator[Match]:
        for consumer, _ in graph.of_type(Map):
            producers = dict.fromkeys(v.node for v in graph.nodes[consumer].operands)
            for producer in producers:
                if producer < 0 or not isinstance(graph.nodes[producer].op, Map):
                    continue
                reason = (
                    different_dims(graph, producer, consumer)
                    or edge_not_item_by_item(graph, producer, consumer)
                    or indirect_path(graph, producer, consumer)
                )
                if reason:
                    note(Refusal(self, (producer, consumer), reason))
                else:
                    yield Match(self, graph, {"producer": producer, "consumer": consumer})

    def apply(self, match: Match) -> Graph:
        first, second = match.map("producer"), match.map("consumer")
        producer, consumer = match.node("producer"), match.node("consumer")
        body = Builder()
        made = body.inline(first.body, [body.input(i.type, hint=i.hint) for i in first.body.inputs])
        operands, iterated = list(producer.operands), list(first.iterated)
        args = []
        for index, value in enumerate(consumer.operands):
            if value.node == match.nodes["producer"]:
                args.append(made[value.port])
            else:
                given = second.body.inputs[index]
                args.append(body.input(given.type, hint=given.hint))
                operands.append(value)
                iterated.append(second.iterated[index])
        outputs = made + body.inline(second.body, args)
        results = first.results + moved_leads(second.results, len(first.results))
        fused = Map(first.dim, body.finish(*outputs), tuple(iterated), results)
        edit = Builder(match.graph)
        hints = padded(producer.hints, len(producer.types)) + consumer.hints
        new = edit.add(fused, *operands, hints=hints, origin=match.origin())
        for port in range(len(producer.types)):
            edit.redirect(match.value("producer", port), new[port])
        for port in range(len(consumer.types)):
            edit.redirect(match.value("consumer", port), new[len(producer.types) + port])
        return edit.finish()


def moved_leads(results: tuple[Result, ...], by: int) -> tuple[Result, ...]:
    """The results with the leads of their groups ``by`` places further."""
    return tuple(replace(r, lead=r.lead + by) if isinstance(r, Rescale) else r for r in results)


def padded(hints: tuple[str, ...], count: int) -> tuple[str, ...]:
    """``hints`` brought to ``count`` entries."""
    return (hints + ("",) * count)[:count]


def shared_operands(graph: Graph, first: int, second: int) -> tuple[Value, ...]:
    """Values that both nodes read, in the order of the first's operands."""
    others = graph.nodes[second].operands
    return tuple(dict.fromkeys(v for v in graph.nodes[first].operands if v in others))
