"""Named side conditions of rules: each returns "" if it is met, else the reason in words."""

from __future__ import annotations

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Accumulate, Collect, Functional, Map, Pointwise
from blockbuster.ir.types import Dim
from blockbuster.rules.base import label, map_of, name_of

MOST_NESTED = 48
"""How deep an extension may nest maps.

Each map repeats the work inside once more, so that ten are too many for any kernel already, and a
long chain would nest deeper than Python can compare (see ``driver.py``).
"""


def map_at(graph: Graph, position: int) -> Map:
    """The map operator at ``position``."""
    return map_of(graph.nodes[position])


def different_dims(graph: Graph, first: int, second: int) -> str:
    """Maps of different dims have iterations that do not correspond, or run in another order."""
    one, other = map_at(graph, first), map_at(graph, second)
    if one.dim != other.dim:
        names = _name(graph, first), _name(graph, second)
        return f"{names[0]} runs over {one.dim} and {names[1]} over {other.dim}"
    if len({scan.back for scan in (*one.scans, *other.scans)}) > 1:
        return f"scans go up {one.dim} in one of them and down in the other"
    return ""


def edge_not_item_by_item(graph: Graph, producer: int, consumer: int) -> str:
    """Every edge must hand a collected list to an iterated operand.

    An accumulated result is complete only after the last iteration, and a list that is passed whole
    is read by all iterations: after fusing, the consumer would see only its own iteration's part.
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
            later, earlier = _name(graph, consumer), _name(graph, producer)
            if later == earlier:  # x = norm(x)
                later, earlier = f"the later {later}", f"the earlier {earlier}"
            why = "fusing them would make a cycle"
            return f"{later} also depends on {earlier} through {via}: {why}"
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
    others = [n for n, _ in graph.uses_of(value) if n != user]
    if others:
        return f"{name_of(graph, value)} is also read by {label(graph.nodes[others[0]])}"
    if len(graph.uses_of(value)) > 1:
        return f"{name_of(graph, value)} is read twice by {_name(graph, user)}"
    return ""


def first_iteration_gone(graph: Graph, *positions: int) -> str:
    """A map whose first iteration was peeled off has no iteration for each of another's."""
    for position in positions:
        if map_at(graph, position).start:
            return f"the first iteration of {_name(graph, position)} was peeled off"
    return ""


def leads_others(op: Map, port: int) -> str:
    """What a result accumulates may not change if other results are rescaled by it."""
    others = [member for member in op.group_of(port) if member != port]
    return f"rescales {name_of(op.body, op.body.outputs[others[0]].value)}" if others else ""


def first_extent_unseen(graph: Graph, position: int) -> str:
    """Outside the map, the extent of its first block must show in the operands of a node."""
    op = map_at(graph, position)
    for _, level in op.body.walk():
        for at, inner in level.of_type(Pointwise):
            axes = [d for v in level.nodes[at].operands for d in level.type_of(v).axes]
            if op.dim in inner.axes and op.dim not in axes:
                return f"{label(level.nodes[at])} spreads a value over a block of {op.dim}"
    return ""


def cannot_be_taken_in(graph: Graph, position: int, dim: Dim) -> str:
    """Nodes that a map over ``dim`` takes in may not run over it, or take or make lists over it.

    The map would need only the element of its iteration.
    """
    node = graph.nodes[position]
    if isinstance(node.op, Map) and (dim == node.op.dim or dim in node.op.body.loops):
        return f"{label(node)} runs over {dim} itself"
    if any(dim in t.lists + t.axes for t in (*node.types, *map(graph.type_of, node.operands))):
        return f"{label(node)} reads or makes lists over {dim}"
    return nested_too_deep(graph, position)


def nested_too_deep(graph: Graph, position: int) -> str:
    """Nodes that a map takes in must leave the nest of maps shallow enough."""
    op = graph.nodes[position].op
    if isinstance(op, Map) and op.body.depth + 2 > MOST_NESTED:
        return f"with {label(graph.nodes[position])} more than {MOST_NESTED} maps would be nested"
    return ""


def vector_varies(op: Map, inner: int) -> str:
    """A vector that changes from one iteration to the next is no common factor of a sum."""
    vector = op.body.nodes[inner].operands[1]
    name = f"{name_of(op.body, vector)}, the vector of {label(op.body.nodes[inner])},"
    if vector.node >= 0:
        return f"{name} is made inside the map over {op.dim}"
    return f"{name} changes with {op.dim}" if op.iterated[vector.port] else ""


def not_only_summed_dots(op: Map, value: Value, through: tuple[Functional, ...] = ()) -> str:
    """Every use must be the left operand of a dot that is summed over the map, and nothing else.

    A block operand of one of the operators ``through`` counts if the same holds for its result.
    """
    found, stack = {value}, [value]  # such operators may stand in a row as long as the program
    while stack:
        value = stack.pop()
        if value in op.body.output_values:
            return f"{name_of(op.body, value)} itself leaves the map over {op.dim}"
        for reader, index in op.body.uses[value]:
            made = Value(reader)
            if index == 0 and op.body.nodes[reader].op in through:
                if made not in found:
                    found.add(made)
                    stack.append(made)
                continue
            reason = _no_summed_dot(op, value, reader, index)
            if reason:
                return reason
    return ""


def _no_summed_dot(op: Map, value: Value, reader: int, index: int) -> str:
    body, name, made = op.body, name_of(op.body, value), Value(reader)
    if body.nodes[reader].op != Functional("dot"):
        return f"{name} is read by {label(body.nodes[reader])}, not by a dot alone"
    if index != 0:
        return f"{name} is the right operand of a dot: its rows are columns of the product"
    ports = [port for port, output in enumerate(body.outputs) if output.value == made]
    if led := [reason for port in ports if (reason := leads_others(op, port))]:
        return f"the dot of {name} {led[0]}"
    if body.uses.get(made) or any(op.results[port] != Accumulate("+") for port in ports):
        return f"the dot of {name} is not only summed over {op.dim}"
    return ""


def _name(graph: Graph, position: int) -> str:
    return name_of(graph, Value(position))
