"""A factor that all iterations of a map share, taken out of the sums it enters.

Two rules share this module: which maps and operands they look at, and how they combine the sums of
the parts (see ``affine.py``) after the map. Lists that contain the factor stay, in a map of their
own if another map iterates over them:

    e, s = map K (x in !X, c = c) { .. yield e yield +s }    s1 = map K (x in !X) { .. yield +s }
    y = map K (e in !e, s = s) { .. }                        s = mul(s1, c)
                                                             e = map K (x in !X, c = c) { .. }
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from blockbuster.ir.builder import Builder, rebuild
from blockbuster.ir.expr import Arg, Expr, Size, call
from blockbuster.ir.graph import Graph, Output, Value
from blockbuster.ir.ops import Accumulate, Map, Result
from blockbuster.ir.origin import Origin
from blockbuster.ir.ports import results_at, select_results
from blockbuster.ir.types import Type
from blockbuster.rules.affine import Affine, Count, Term
from blockbuster.rules.base import Match, Note, Refusal, Rule, label, name_of
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.counting import counts
from blockbuster.rules.legality import first_iteration_gone, leads_others, map_at
from blockbuster.rules.linear_expressions import number


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
    """The results of a map that need the factor in the map, and why: all of a group, or none."""
    op = map_at(graph, position)
    staying: dict[int, str] = {}
    for port, output in enumerate(op.body.outputs):
        reason = _why_it_needs_it(op, port, found)
        if reason:
            reason = f"{name_of(op.body, output.value)} {reason}"
            staying |= {beside: reason for beside in op.group_of(port) if beside not in staying}
    return {port: staying[port] for port in sorted(staying)}


def _why_it_needs_it(op: Map, port: int, found: Affine) -> str:
    """Why a result needs the factor in the map, or ""."""
    value = op.body.outputs[port].value
    if value in found.refused:
        return f"is not linear in it, because of {found.refused[value]}"
    if value not in found.parts:
        return ""
    if op.results[port] != Accumulate("+"):
        return f"is not summed over {op.dim}"
    return leads_others(op, port) or not_sums(op, found, value) or digits_cancel(found, value)


def not_sums(op: Map, found: Affine, value: Value) -> str:
    """The parts of a value must be sums over the map by themselves, with its axes."""
    parts = found.parts[value]
    shown = list(found.axes)
    for part in (parts.rest, parts.slope):
        if isinstance(part, Value):
            shown += found.builder.type_of(part).axes
        elif part is not None and not (isinstance(part, Count) and part.dim == op.dim):
            return f"is the same in every iteration over {op.dim}, in part"
    if not isinstance(parts.slope, Value) and not isinstance(parts.rest, Value):
        return "is a number times it"
    lost = [dim for dim in op.body.type_of(value).axes if dim not in shown]
    return f"would lose its axis {lost[0]}" if lost else ""


def digits_cancel(found: Affine, value: Value) -> str:
    """Two sums of data may be large where the sum of both is small: one of them must only count."""
    parts = found.parts[value]
    if parts.rest is None or not isinstance(parts.slope, Value):
        return ""
    exact = counts(found.builder, parts.slope)
    return "" if exact else "adds it, times data, to others: digits would cancel"


def _costs(graph: Graph, position: int, staying: dict[int, str]) -> bool:
    """True unless what stays has a reader, which may wait for the sums, and no loop runs twice."""
    op = map_at(graph, position)
    read = any(graph.consumers(Value(position, port)) for port in staying)
    return not read or any(isinstance(node.op, Map) for node in op.body.nodes)


# Rewriting -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sums:
    """The sums of the rest and of the slope: ports of the new map, or numbers. None is 0."""

    rest: int | Expr | None
    slope: int | Expr | None


def taken_out(match: Match, followed: Followed) -> Graph:
    """The graph in which the factor is applied to sums, after the map."""
    graph, position = match.graph, match.nodes["map"]
    op, node, origin = match.map("map"), match.node("map"), match.origin()
    tried = (followed(op, port, origin) for port in made_here(graph, position))
    found = next(f for f in tried if not why_it_stays(graph, position, f.values))
    staying = [*why_ports_stay(graph, position, found.values)]
    edit = match.edit()
    if staying:
        kept, ports = select_results(node, staying, rebuild)
        for port, value in zip(
            ports, edit.add(kept.op, *kept.operands, hints=kept.hints, origin=origin), strict=True
        ):
            edit.redirect(match.value("map", port), value)
    free = [port for port in range(len(op.results)) if port not in staying]
    outputs, results, sums = _summed_apart(op, found.values, free)
    changed = replace(op, body=found.values.builder.finish(*outputs), results=tuple(results))
    hints = tuple(node.hints[port] for port in free)
    new = edit.add(changed, *node.operands, hints=hints, origin=origin)
    given = [node.operands[port] for port in found.ports]
    factor = by_dim(edit, found.expr, given, found.values.axes, origin)
    for at, port in enumerate(free):
        value = new[at]
        if port in sums:
            value = _put_together(edit, sums[port], new, factor, node.types[port], origin)
        edit.redirect(match.value("map", port), value)
    return edit.finish()


def _summed_apart(
    op: Map, found: Affine, free: list[int]
) -> tuple[list[Output], list[Result], dict[int, Sums]]:
    """The outputs at ``free`` ports with those of their parts, and which are those of a port."""
    outputs = [op.body.outputs[port] for port in free]
    results = [*results_at(op, free)]
    sums: dict[int, Sums] = {}
    for at, port in enumerate(free):
        output = op.body.outputs[port]
        parts = found.parts.get(output.value)
        if parts is None:
            continue
        values = [part for part in (parts.slope, parts.rest) if isinstance(part, Value)]
        ports = [at, len(outputs)][: len(values)]
        outputs[at] = replace(output, value=values[0])
        outputs += [replace(output, value=value) for value in values[1:]]
        results += [Accumulate("+") for _ in values[1:]]
        slope, rest = (_summed(part, ports) for part in (parts.slope, parts.rest))
        sums[port] = Sums(rest, slope)
    return outputs, results, sums


def _summed(part: Term | None, ports: list[int]) -> int | Expr | None:
    """What a part is summed to: the next of ``ports``, or a number."""
    if isinstance(part, Count):
        return number(call("mul", part.each, Size(part.dim)))
    return ports.pop(0) if part is not None else None


def _put_together(
    edit: Builder, sums: Sums, new: tuple[Value, ...], factor: Value, type: Type, origin: Origin
) -> Value:
    def made(fn: str, first: int | Expr | None, second: Value) -> Value:
        if isinstance(first, int):
            expr, operands = call(fn, Arg(0), Arg(1)), [new[first], second]
        else:
            assert first is not None
            expr, operands = call(fn, first, Arg(0)), [second]
        return by_dim(edit, expr, operands, type.axes, origin)

    total = made("mul", sums.slope, factor)
    return total if sums.rest is None else made("add", sums.rest, total)
