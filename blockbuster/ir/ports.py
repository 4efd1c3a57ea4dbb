"""Ports of a map: merging duplicates, dropping the unused, ordering by first use.

Each function takes one node and returns it with its ports tidied. ``rebuild`` is the builder's own
way to canonicalize a body, handed in so that this module stays below the builder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from blockbuster.ir.expr import Arg, arguments, rewrite
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Elementwise, Map, Pointwise, Rescale, Result

Rebuild = Callable[[Graph, Sequence[Value], Sequence[int]], Graph]


def merge_repeated_arguments(node: Node) -> Node:
    """An expression node whose operands are distinct and numbered by first appearance."""
    assert isinstance(node.op, Elementwise | Pointwise)
    expr = node.op.expr
    wanted = list(dict.fromkeys(node.operands[i] for i in arguments(expr)))
    if tuple(wanted) == node.operands:
        return node
    place = {value: i for i, value in enumerate(wanted)}
    renumbered = rewrite(
        expr, lambda e: Arg(place[node.operands[e.index]]) if isinstance(e, Arg) else e
    )
    return replace(node, op=replace(node.op, expr=renumbered), operands=tuple(wanted))


def merge_ports(node: Node, rebuild: Rebuild) -> tuple[Node, dict[int, int]]:
    """The map with equal operands and equal results merged, and the twin of each dropped result."""
    op = node.op
    assert isinstance(op, Map)
    firsts = op.first_values(node.operands)
    entering = op.entering(node.operands)
    distinct = list(dict.fromkeys(zip(entering, op.iterated, strict=True)))
    if len(distinct) < len(entering):
        keys = list(zip(entering, op.iterated, strict=True))
        inputs = [Value(-1, keys.index(key)) for key in keys]
        body = rebuild(op.body, inputs, range(len(op.results)))
        body = with_inputs(body, [keys.index(key) for key in distinct])
        op = replace(op, body=body, iterated=tuple(iterated for _, iterated in distinct))
        node = replace(node, op=op, operands=(*(value for value, _ in distinct), *firsts))
    if len({output.value for output in op.body.outputs}) == len(op.body.outputs):
        return node, {}
    twins: dict[int, int] = {}
    first: dict[tuple[Value, Result, Value | None], int] = {}
    results = list(op.results)
    for port, output in enumerate(op.body.outputs):
        result = results[port]
        if isinstance(result, Rescale):
            result = results[port] = result.moved(lambda p: twins.get(p, p))
        begun = firsts[port] if firsts else None
        twin = first.setdefault((output.value, result, begun), port)
        if twin != port:
            twins[port] = twin
    if twins:
        node = replace(node, op=replace(op, results=tuple(results)))
    return node, twins


def select_results(
    node: Node, used: Sequence[int], rebuild: Rebuild
) -> tuple[Node, tuple[int, ...]]:
    """The node with only the results ``used`` (in that order) and the operands they need.

    Also returns which result each new port was. Only maps lose ports; the lead of a group is kept,
    before its members.
    """
    op = node.op
    if not isinstance(op, Map):
        return node, tuple(range(len(node.types)))
    order = _leads_first(op.results, used)
    if order != (*range(len(op.results)),):
        results = results_at(op, order)
        identity = [Value(-1, i) for i in range(len(op.iterated))]
        op = replace(op, body=rebuild(op.body, identity, order), results=results)
        hints = tuple(node.hints[old] for old in order)
        node = replace(node, op=op, types=tuple(node.types[old] for old in order), hints=hints)
        firsts = op.first_values(node.operands)
        if firsts:
            kept = (*op.entering(node.operands), *(firsts[old] for old in order))
            node = replace(node, operands=kept)
    wanted = op.body.inputs_by_first_use
    if wanted != (*range(len(op.iterated)),):
        body, iterated = with_inputs(op.body, wanted), tuple([op.iterated[i] for i in wanted])
        firsts = node.operands[len(node.operands) - len(op.results) :] if op.start else ()
        operands = (*[node.operands[i] for i in wanted], *firsts)
        op = Map(op.dim, body, iterated, op.results, op.start)
        node = Node(op, operands, node.types, node.hints, node.origin)
    return node, order


def _leads_first(results: tuple[Result, ...], used: Sequence[int]) -> tuple[int, ...]:
    if not any(isinstance(result, Rescale) for result in results):
        return tuple(used)
    order: dict[int, None] = {}

    def ordered(port: int) -> None:
        result = results[port]
        for lead in result.leads if isinstance(result, Rescale) else ():
            ordered(lead)
        order.setdefault(port)

    for port in used:
        ordered(port)
    return tuple(order)


def results_at(op: Map, ports: Sequence[int]) -> tuple[Result, ...]:
    """How a map that has only the results ``ports``, in that order, gives them.

    A member of a group names its leads by port, so they must be among ``ports``, before it.
    """
    place = {old: new for new, old in enumerate(ports)}

    def moved(result: Result) -> Result:
        return result.moved(place.__getitem__) if isinstance(result, Rescale) else result

    return tuple(moved(op.results[port]) for port in ports)


def with_inputs(body: Graph, wanted: Sequence[int]) -> Graph:
    """The body with only the inputs ``wanted``, in that order; the rest must be unused."""
    place = {old: new for new, old in enumerate(wanted)}

    def moved(value: Value) -> Value:
        return Value(-1, place[value.port]) if value.node < 0 else value

    nodes = tuple(
        [
            node.reading((*map(moved, node.operands),))
            if any(v.node < 0 for v in node.operands)
            else node
            for node in body.nodes
        ]
    )
    outputs = tuple([o.of(moved(o.value)) if o.value.node < 0 else o for o in body.outputs])
    return Graph(tuple([body.inputs[i] for i in wanted]), nodes, outputs)
