"""fuse-maps: a map that feeds a map over the same dim becomes one map.

before   T = map M (x in !X) {              after   Y = map M (x in !X) {
           t = exp(x)                                 t = exp(x)
           yield t                                    y = t + 1
         }                                            yield y
         Y = map M (t_1 in !T) {                    }
           y = t_1 + 1
           yield y
         }

Saves the buffered edge between them. Costs nothing: no work is repeated. If other nodes read the
first map's list, the fused map still returns it.
Source: Blockbuster Part 1, rule 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Input, Node, Value
from blockbuster.ir.ops import Map, Op, Rescale, Result
from blockbuster.ir.origin import Origin
from blockbuster.ir.ports import results_at
from blockbuster.rules.base import LocalRule, Match, Note, name_of, unheard
from blockbuster.rules.legality import (
    different_dims,
    edge_not_item_by_item,
    first_iteration_gone,
    indirect_path,
)


class FuseMaps(LocalRule):
    """Rule 1."""

    name = "fuse-maps"
    number = 1
    needs = (Map, Map)
    in_place = True
    looks_beside = False

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        if not isinstance(graph.nodes[position].op, Map):
            return
        for producer in graph.nodes[position].makers:
            if not isinstance(graph.nodes[producer].op, Map):
                continue
            reason = (
                different_dims(graph, producer, position)
                or first_iteration_gone(graph, producer, position)
                or edge_not_item_by_item(graph, producer, position)
                or indirect_path(graph, producer, position)
            )
            nodes = {"producer": producer, "consumer": position}
            yield from self.judged(graph, nodes, reason, note)

    def apply(self, match: Match) -> Graph:
        first, second = match.map("producer"), match.map("consumer")
        producer, consumer = match.node("producer"), match.node("consumer")
        made = [output.value for output in first.body.outputs]
        joined = Joined(producer, first)
        known = dict(zip(match.values("producer"), made, strict=True))
        outputs = joined.inline(consumer, second, known)
        kept = _read_elsewhere(match)
        fused = joined.map(
            [*(made[port] for port in kept), *outputs],
            results_at(first, kept) + moved_leads(second.results, len(kept)),
        )
        edit = match.edit()
        hints = padded(producer.hints, len(producer.types))
        hints = tuple(hints[port] for port in kept) + consumer.hints
        new = edit.add(fused, *joined.operands, hints=hints, origin=match.origin())
        old = [*map(match.values("producer").__getitem__, kept)]
        old += match.values("consumer")
        edit.redirect_all(old, new)
        return edit.finish()


class Joined:
    """A map that takes in the bodies of others: its body being built, and its operands."""

    def __init__(self, node: Node, op: Map) -> None:
        self.operands = list(node.operands)
        self._op = op
        self._body = Builder(op.body)
        self._inputs = {
            given: Value(-1, port)
            for port, given in enumerate(zip(node.operands, op.iterated, strict=True))
        }

    def inline(self, node: Node, op: Map, known: Mapping[Value, Value]) -> tuple[Value, ...]:
        """Copy the body of ``node``, an operand in ``known`` being made in this one."""
        return self._body.inline(
            op.body,
            [
                known[value] if value in known else self._input(given, value, iterated)
                for given, value, iterated in zip(
                    op.body.inputs, node.operands, op.iterated, strict=True
                )
            ],
        )

    def add(self, op: Op, value: Value, origin: Origin) -> Value:
        """The result of an operator on a value of the body."""
        return self._body.add(op, value, origin=origin)[0]

    def operand(self, graph: Graph, value: Value) -> Value:
        """A value from outside of the loop, in the body: all of it, in each iteration."""
        given = Input(graph.type_of(value), hint=name_of(graph, value))
        return self._input(given, value, False)

    def apply(self, node: Node, operands: Sequence[Value]) -> Value:
        """The result of a node, of other operands."""
        return self._body.add(node.op, *operands, hints=node.hints, origin=node.origin)[0]

    def remake(self, value: Value, node: Node, op: Map) -> None:
        """Compute ``value``, a list of the map ``node``, where it was read.

        Iterations that are given their items compute those; where all of the list is passed, each
        iteration has a copy of the map.
        """
        if (value, True) in self._inputs:
            made = self.inline(node, op, {})[value.port]
            self._body.redirect(self._inputs[value, True], made)
        if (value, False) in self._inputs:
            args = []
            for given, walks, operand in zip(
                op.body.inputs, op.iterated, node.operands, strict=True
            ):
                type = given.type.listed(op.dim) if walks else given.type
                args.append(self._input(replace(given, type=type), operand, False))
            made = self._body.add(op, *args, hints=node.hints, origin=node.origin)[value.port]
            self._body.redirect(self._inputs[value, False], made)

    def _input(self, given: Input, value: Value, iterated: bool) -> Value:
        if (value, iterated) not in self._inputs:
            self._inputs[value, iterated] = self._body.input(given.type, hint=given.hint)
            self.operands.append(value)
        return self._inputs[value, iterated]

    def map(self, outputs: Sequence[Value], results: tuple[Result, ...]) -> Map:
        """The map with these outputs of its body."""
        iterated = self._op.iterated + tuple(
            flag for _, flag in list(self._inputs)[len(self._op.iterated) :]
        )
        return Map(self._op.dim, self._body.finish(*outputs), iterated, results)


def _read_elsewhere(match: Match) -> list[int]:
    """The producer's results that others than the consumer need; all, if some go in groups."""
    graph, consumer = match.graph, match.nodes["consumer"]
    values = match.values("producer")
    if any(isinstance(result, Rescale) for result in match.map("producer").results):
        return [value.port for value in values]
    leaving = graph.output_values
    return [v.port for v in values if v in leaving or graph.consumers(v) != (consumer,)]


def moved_leads(results: tuple[Result, ...], by: int) -> tuple[Result, ...]:
    """The results with the leads of their groups ``by`` places further."""
    return tuple(r.moved(by.__add__) if isinstance(r, Rescale) else r for r in results)


def padded(hints: tuple[str, ...], count: int) -> tuple[str, ...]:
    """``hints`` brought to ``count`` entries."""
    return (hints + ("",) * count)[:count]


def shared_operands(graph: Graph, first: int, second: int) -> tuple[Value, ...]:
    """Values that both nodes read, in the order of the first's operands."""
    others = graph.nodes[second].operands
    return tuple(dict.fromkeys(v for v in graph.nodes[first].operands if v in others))
