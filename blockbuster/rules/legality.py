"""Named side conditions of rules: each returns "" where it is met, else the reason in words."""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Collect, Map
from blockbuster.ir.types import Dim
from blockbuster.rules.base import label, name_of


def map_at(graph: Graph, position: int) -> Map:
    """The map operator at ``position``."""
    op = graph.nodes[position].op
    assert isinstance(op, Map)
    return op


def different_dims(graph: Graph, first: int, second: int) -> str:
    """Maps of different dims have iterations that do not correspond."""
    a, b = map_at(graph, first).dim, map_at(graph, second).dim
    if a == b:
        return ""
    return f"{_name(graph, first)} runs over {a} and {_name(graph, second)} over {b}"


def edge_not_item_by_item(graph: Graph, producer: int, consumer: int) -> str:
    """Every edge must hand a collected list to an iterated operand.

    An accumulated result is complete only after the last iteration, and a list that is passed whole
    is read by all iterations: fusing would show the consumer its own iteration's part only.
    """
    results = map_at(graph, producer).results
    iterated = map_at(graph, consumer).iterated
    for index, value in enumerate(graph.nodes[consumer].operands):
        if value.node != producer:
            continue
        name = name_of(graph, value)
        if not isinstance(results[value.port], Collect):
            return (
                f"{name} reaches {_name(graph, consumer)} as an accumulated result: "
                "it is complete only after the last iteration"
            )
        if not iterated[index]:
            reader = _name(graph, consumer)
            return f"{name} is passed whole to {reader}: every iteration reads all of it"
    return ""


def indirect_path(graph: Graph, producer: int, consumer: int) -> str:
    """A path through a third node would become a cycle."""
    for value in graph.nodes[consumer].operands:
        if value.node not in (producer, -1) and graph.reaches(producer, value.node):
            via = label(graph.nodes[value.node])
            return (
                f"{_name(graph, consumer)} also depends on {_name(graph, producer)} through {via}: "
                "fusing them would make a cycle"
            )
    return ""


def dependent(graph: Graph, first: int, second: int) -> str:
    """Siblings must not depend on each other."""
    if graph.reaches(first, second) or graph.reaches(second, first):
        return (
            f"{_name(graph, second)} depends on {_name(graph, first)}: "
            "fusing them as siblings would make a cycle"
        )
    return ""


def used_elsewhere(graph: Graph, value: Value, user: int) -> str:
    """A value that disappears may have no other use."""
    if value in graph.output_values:
        return f"{name_of(graph, value)} is a result of the program: it must still be computed"
    others = [n for n, _ in graph.uses.get(value, ()) if n != user]
    if others:
        return f"{name_of(graph, value)} is also read by {label(graph.nodes[others[0]])}"
    if len(graph.uses.get(value, ())) > 1:
        return f"{name_of(graph, value)} is read twice by {_name(graph, user)}"
    return ""


def dims_inside(graph: Graph) -> Iterator[Dim]:
    """Every dim that a map inside ``graph`` runs over, at any depth."""
    for _, level in graph.walk():
        for _, op in level.of_type(Map):
            yield op.dim


def _name(graph: Graph, position: int) -> str:
    return name_of(graph, Value(position))
