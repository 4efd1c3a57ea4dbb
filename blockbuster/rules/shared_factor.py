"""A factor that all iterations of a map share, taken out of the sums it enters.

Two rules share this module: which maps and operands they look at, and how the factor is applied to
the sums after the map. Lists that contain the factor stay, in a map of their
own if another map iterates over them:

    e, s = map K (x in !X, c = c) { .. yield e yield +s }    s1 = map K (x in !X) { .. yield +s }
    y = map K (e in !e, s = s) { .. }                        s = mul(s1, c)
                                                             e = map K (x in !X, c = c) { .. }
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Expr, call
from blockbuster.ir.graph import Graph, Output, Value
from blockbuster.ir.ops import Accumulate, Map
from blockbuster.ir.origin import Origin
from blockbuster.rules.affine import Affine, Term
from blockbuster.rules.base import Match, Note, Refusal, Rule, label, name_of
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.legality import first_iteration_gone, map_at
from blockbuster.rules.linear_expressions import Parts


class Factor(NamedTuple):
    """The parts of a map's values as to a factor, and the factor, as a function of operands."""

    values: Affine
    expr: Expr
    ports: tuple[int, ...]


Followed = Callable[[Map, int, Origin], Factor]
"""The factor that a map's operand at a port gives."""


def leaving_factor(
    rule: Rule, followed: Followed, graph: Graph, position: int, note: Note
) -> Iterator[Match]:
    """A map with an operand whose factor can leave the sums that it goes into: the first such."""
    op = graph.nodes[position].op
    if not isinstance(op, Map) or all(result != Accumulate("+") for result in op.results):
        return
    ports = [*made_here(graph, position)]
    if not ports or not shares_a_pass(graph, position):
        return
    name = label(graph.nodes[position])
    for port in ports:
        reason = first_iteration_gone(graph, position) or why_it_stays(
            graph, position, followed(op, port, Origin()).values
        )
        if not reason:
            source = name_of(graph, graph.nodes[position].operands[port])
            yield Match(rule, graph, {"map": position}, source)
            return
        factor = name_of(op.body, Value(-1, port))
        note(Refusal(rule, (position,), f"{factor} stays in {name}: {reason}"))


# Conditions: which maps and operands, and why a factor stays ---------------------------


def made_here(graph: Graph, position: int) -> Iterator[int]:
    """The ports of a map's local operands that nodes at its level make: no inputs, no lists."""
    node = graph.nodes[position]
    for port, value in enumerate(map_at(graph, position).entering(node.operands)):
        if value.node >= 0 and not graph.type_of(value).buffered:
            yield port


def shares_a_pass(graph: Graph, position: int) -> bool:
    """True if another map over the same dim makes, or walks, a list that the map walks.

    The two would be one map, were it not for what the one waits for.
    """
    return any(True for _ in sharing(graph, position))


def sharing(graph: Graph, position: int) -> Iterator[int]:
    """The other maps over the same dim that make, or walk, a list that the map walks."""
    op, node = map_at(graph, position), graph.nodes[position]
    for value, walks in zip(node.operands, op.iterated, strict=False):
        for other in (value.node, *graph.consumers(value)) if walks else ():
            if other not in (-1, position) and _runs_over(graph, other, op.dim):
                yield other


def _runs_over(graph: Graph, position: int, dim: str) -> bool:
    op = graph.nodes[position].op
    return isinstance(op, Map) and op.dim == dim


def why_it_stays(graph: Graph, position: int, found: Affine) -> str:
    """Why a factor stays in all sums, or "": in lists it may stay where that costs no pass."""
    op = map_at(graph, position)
    staying = why_ports_stay(graph, position, found)
    leaving = [o for p, o in enumerate(op.body.outputs) if p not in staying]
    if not any(output.value in found.parts for output in leaving):
        return next(iter(staying.values()), "no sum depends on it")
    return next(iter(staying.values())) if staying and _costs(graph, position, staying) else ""


def why_ports_stay(graph: Graph, position: int, found: Affine) -> dict[int, str]:
    """The results of a map that need the factor in the map, and why."""
    op = map_at(graph, position)
    staying: dict[int, str] = {}
    for port, (output, result) in enumerate(zip(op.body.outputs, op.results, strict=True)):
        value, reason = output.value, ""
        if value in found.refused:
            reason = f"is not linear in it, because of {found.refused[value]}"
        elif value in found.parts and result != Accumulate("+"):
            reason = f"is not summed over {op.dim}"
        elif value in found.parts:
            reason = not_sums(op, found, value)
        if reason:
            staying[port] = f"{name_of(op.body, value)} {reason}"
    return staying


def not_sums(op: Map, found: Affine, value: Value) -> str:
    """What the factor multiplies must be summed over the map, with the axes of the value.

    Nothing may be added to it: two sums can be large where the sum of both is small, as those of a
    row and of its log-sum-exp are in a log-softmax.
    """
    parts = found.parts[value]
    if parts.rest is not None:
        return "adds it to others: digits would cancel behind the sum"
    if not isinstance(parts.slope, Value):
        return "is a number times it"
    shown = (*found.axes, *found.builder.type_of(parts.slope).axes)
    lost = [dim for dim in op.body.type_of(value).axes if dim not in shown]
    return f"would lose its axis {lost[0]}" if lost else ""


def _costs(graph: Graph, position: int, staying: dict[int, str]) -> bool:
    """True unless what stays has a reader, which may wait for the sums, and no loop runs twice."""
    op = map_at(graph, position)
    read = any(graph.consumers(Value(position, port)) for port in staying)
    return not read or any(isinstance(node.op, Map) for node in op.body.nodes)


# Rewriting -------------------------------------------------------------------------------


def taken_out(match: Match, followed: Followed) -> Graph:
    """The graph in which the factor is applied to sums, after the map."""
    graph, position = match.graph, match.nodes["map"]
    op, node, origin = match.map("map"), match.node("map"), match.origin()
    tried = (followed(op, port, origin) for port in made_here(graph, position))
    found = next(f for f in tried if not why_it_stays(graph, position, f.values))
    staying = [*why_ports_stay(graph, position, found.values)]
    edit = match.edit()
    if staying:
        body = Builder(op.body).finish(*(op.body.outputs[port] for port in staying))
        kept = replace(op, body=body, results=tuple(op.results[port] for port in staying))
        hints = tuple(node.hints[port] for port in staying)
        for port, value in zip(
            staying, edit.add(kept, *node.operands, hints=hints, origin=origin), strict=True
        ):
            edit.redirect(match.value("map", port), value)
    free = [port for port in range(len(op.results)) if port not in staying]
    parts = {port: found.values.parts.get(op.body.outputs[port].value) for port in free}
    outputs = [_unscaled(op.body.outputs[port], parts[port]) for port in free]
    results = tuple(op.results[port] for port in free)
    changed = replace(op, body=found.values.builder.finish(*outputs), results=results)
    hints = tuple(node.hints[port] for port in free)
    new = edit.add(changed, *node.operands, hints=hints, origin=origin)
    given = [node.operands[port] for port in found.ports]
    factor = by_dim(edit, found.expr, given, found.values.axes, origin)
    for value, port in zip(new, free, strict=True):
        total = value
        if parts[port] is not None:
            axes = node.types[port].axes
            total = by_dim(edit, call("mul", Arg(0), Arg(1)), [value, factor], axes, origin)
        edit.redirect(match.value("map", port), total)
    return edit.finish()


def _unscaled(output: Output, parts: Parts[Term] | None) -> Output:
    """An output without the factor, if it has it."""
    if parts is None:
        return output
    assert isinstance(parts.slope, Value)
    return replace(output, value=parts.slope)
