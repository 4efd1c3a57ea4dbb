"""remake: a value that costs nothing is computed again in a map that reads it.

before   C = map M (i in !I, j = !J) {          after   Y = map H (s in !S, i = !I, j = !J) {
           c = map N (a = i, b in !j) {                   C = map M (i_1 in !i, j_1 = !j) {
             d = a >= b over [M,N]                          c = map N (a = i_1, b in !j_1) {
             yield d                                          d = a >= b over [M,N]
           }                                                  yield d
           yield c                                          }
         }                                                  yield c
         Y = map H (s in !S, C = !C) {                    }
           y = map M (t in !s, c in !C) { ... }           y = map M (t in !s, c in !C) { ... }
           yield y                                        yield y
         }                                              }

A value costs nothing if a few pointwise operators make it from items of fewer axes: a mask from
index vectors, a bias from a slope per head. It also costs nothing if it is made from one array of
its own shape and each iteration reads only its part: then one list is read instead of another. A
reader of the whole list gets the map that makes it, a reader of items their equations; other
readers keep the value.
Saves the buffered edge, and the store if it was the last. Costs the operators, once per iteration.
Termination: an application removes an edge between two maps. The edges that it adds are deeper
inside the reader, which is nested finitely deep, or start from nodes before the value's producer.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Map
from blockbuster.rules.base import LocalRule, Match, Note, Refusal, label, name_of, unheard
from blockbuster.rules.fuse_maps import Joined
from blockbuster.rules.legality import first_iteration_gone, map_at, nested_too_deep
from blockbuster.rules.making import (
    Recipe,
    as_large,
    enters_its_own_loop,
    few_vectors,
    holds_exponential,
    reading,
    reads_more,
    recipe,
    too_much_work,
)


class Remake(LocalRule):
    """A cheap value is computed in the maps that read it, and no longer stored for them."""

    name = "remake"
    kind = "companion"
    needs = (Map, Map)
    in_place = True
    of_edges = True

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        if not isinstance(graph.nodes[position].op, Map):
            return
        for producer in graph.nodes[position].makers:
            if not isinstance(graph.nodes[producer].op, Map):
                continue
            found = None
            for value in _read_from(graph, producer, position):
                made = recipe(map_at(graph, producer), value.port)
                reason = _kept(graph, value, made, position) if made else ""
                if reason:
                    note(Refusal(self, (producer, position), reason))
                elif made:
                    found = found or name_of(graph, value)
            if found is not None:
                yield Match(self, graph, {"made": producer, "reader": position}, found)

    def apply(self, match: Match) -> Graph:
        graph, reader, op = match.graph, match.node("reader"), match.map("reader")
        joined = Joined(reader, op)
        for value in _read_from(graph, match.nodes["made"], match.nodes["reader"]):
            made = recipe(match.map("made"), value.port)
            if made and not _kept(graph, value, made, match.nodes["reader"]):
                joined.remake(value, match.node("made"), match.map("made"))
        edit = match.edit()
        fused = joined.map((), op.results)
        new = edit.add(fused, *joined.operands, hints=reader.hints, origin=match.origin())
        edit.redirect_all(match.values("reader"), new)
        return edit.finish()

    def describe(self, match: Match) -> str:
        return f"{match.detail} in {label(match.node('reader'))}"


def _read_from(graph: Graph, producer: int, reader: int) -> list[Value]:
    """The values of ``producer`` that ``reader`` reads, each once."""
    read = dict.fromkeys(graph.nodes[reader].operands)
    return [value for value in read if value.node == producer]


def _kept(graph: Graph, value: Value, made: Recipe, reader: int) -> str:
    """Why ``reader`` must read ``value`` as it is stored."""
    return (
        holds_exponential(graph, value, made)
        or too_much_work(graph, value, made)
        or _not_here(graph, value, made, reader)
        or _stays_stored(graph, value, made, reader)
    )


def _not_here(graph: Graph, value: Value, made: Recipe, reader: int) -> str:
    """``reader`` must be a map that can make the value at no cost."""
    node = graph.nodes[reader]
    if not isinstance(node.op, Map):
        return f"{label(node)} is no map: it reads {name_of(graph, value)} as it is"
    reason = first_iteration_gone(graph, reader)
    for port in [] if reason else _ports(node, value):
        read = reading(node.op, port)
        reason = reason or (read if isinstance(read, str) else reads_more(graph, value, made, read))
        if not node.op.iterated[port]:
            reason = (
                reason
                or enters_its_own_loop(graph, value, made, node.op.dim)
                or nested_too_deep(graph, value.node)
            )
    return reason


def _ports(node: Node, value: Value) -> list[int]:
    return [port for port, operand in enumerate(node.operands) if operand == value]


def _stays_stored(graph: Graph, value: Value, made: Recipe, reader: int) -> str:
    """A list replaces another of its size only if all readers of the other can use it.

    Then no reader waits for the value; if its input is stored, too, the value must not be.
    """
    large, op = as_large(graph, value, made), map_at(graph, reader)
    read = [reading(op, port) for port in _ports(graph.nodes[reader], value)]
    if not large or all(few_vectors(graph, value, made, r) for r in read):
        return ""
    name, other = name_of(graph, value), name_of(graph, large[0])
    if value in graph.output_values and large[0].node >= 0:
        return f"{name} is a result, and what it is made of, {other}, is stored as well"
    for also in graph.consumers(value):
        reason = _not_here(graph, value, made, also)
        if reason:
            return f"{name} stays for {label(graph.nodes[also])}, since {reason}"
    return ""
