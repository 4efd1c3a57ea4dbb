"""A factor that all iterations of a map share, taken out of the sums that it goes into.

What two rules have in common: which maps and operands they look at, and how the sums of the parts
(see ``affine.py``) are put together after the map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Expr, Size, call
from blockbuster.ir.graph import Graph, Output, Value
from blockbuster.ir.ops import Accumulate, Map, Result
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Type
from blockbuster.rules.affine import Affine, Count, Term
from blockbuster.rules.base import Match, Note, Refusal, Rule, label, name_of
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.legality import first_iteration_gone
from blockbuster.rules.linear_expressions import number


class Factor(NamedTuple):
    """The parts of a map's values as to a factor, and the factor, as a function of an operand."""

    values: Affine
    expr: Expr


Followed = Callable[[Map, int, Origin], Factor]
"""The factor that a map's operand at a port gives."""


def leaving_factor(
    rule: Rule, followed: Followed, graph: Graph, position: int, note: Note
) -> Iterator[Match]:
    """A map with an operand whose factor can leave all the sums that it goes into: the first."""
    op = graph.nodes[position].op
    if not isinstance(op, Map) or all(result != Accumulate("+") for result in op.results):
        return
    ports = [*made_here(graph, position)]
    if not ports or not shares_a_pass(graph, position):
        return
    for port in ports:
        reason = first_iteration_gone(graph, position) or _stays(
            op, followed(op, port, Origin()).values
        )
        if not reason:
            source = name_of(graph, graph.nodes[position].operands[port])
            yield Match(rule, graph, {"map": position}, source)
            return
        name = name_of(op.body, Value(-1, port))
        note(
            Refusal(rule, (position,), f"{name} stays in {label(graph.nodes[position])}: {reason}")
        )


def made_here(graph: Graph, position: int) -> Iterator[int]:
    """The ports of a map's local operands that nodes at its level make: no inputs, no lists."""
    node = graph.nodes[position]
    assert isinstance(node.op, Map)
    for port, value in enumerate(node.op.entering(node.operands)):
        if value.node >= 0 and not graph.type_of(value).buffered:
            yield port


def shares_a_pass(graph: Graph, position: int) -> bool:
    """True if another map over the same dim makes, or walks, a list that the map walks.

    The two would be one map, were it not for what the one waits for.
    """
    node = graph.nodes[position]
    assert isinstance(node.op, Map)
    for value, walks in zip(node.operands, node.op.iterated, strict=False):
        others = (value.node, *graph.consumers(value)) if walks else ()
        for other in others:
            op = graph.nodes[other].op if other >= 0 and other != position else None
            if isinstance(op, Map) and op.dim == node.op.dim:
                return True
    return False


def _stays(op: Map, found: Affine) -> str:
    """Why a factor stays: every value that it goes into must leave the map in a sum alone."""
    leaves = False
    for output, result in zip(op.body.outputs, op.results, strict=True):
        value, name = output.value, name_of(op.body, output.value)
        if value in found.refused:
            return f"{name} is not linear in it, because of {found.refused[value]}"
        if value not in found.parts:
            continue
        if result != Accumulate("+"):
            return f"{name} is not summed over {op.dim}"
        parts = found.parts[value]
        reason = _no_sums(op, found, value) or ("" if parts.rest is None or parts.counts else MIXED)
        if reason:
            return f"{name} {reason}"
        leaves = True
    return "" if leaves else "no sum depends on it"


MIXED = "is a sum of it and of others: digits would cancel"


def _no_sums(op: Map, found: Affine, value: Value) -> str:
    """Why the parts of ``value`` cannot be summed over the map by themselves, or ""."""
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


@dataclass(frozen=True)
class Sums:
    """The sums of the rest and of the slope: ports of the new map, or numbers. None is 0."""

    rest: int | Expr | None
    slope: int | Expr | None


def taken_out(match: Match, followed: Followed) -> Graph:
    """The graph in which the factor is applied to sums, after the map."""
    op, node = match.map("map"), match.node("map")
    ports = made_here(match.graph, match.nodes["map"])
    tried = ((port, followed(op, port, match.origin())) for port in ports)
    port, found = next((port, f) for port, f in tried if not _stays(op, f.values))
    outputs, results, sums = _summed_apart(op, found.values)
    edit = match.edit()
    changed = replace(op, body=found.values.builder.finish(*outputs), results=tuple(results))
    new = edit.add(changed, *node.operands, hints=node.hints, origin=match.origin())
    axes = found.values.axes
    made = by_dim(edit, found.expr, [node.operands[port]], axes, match.origin())
    for old, type in enumerate(node.types):
        value = new[old]
        if old in sums:
            value = _put_together(edit, sums[old], new, made, type, match.origin())
        edit.redirect(match.value("map", old), value)
    return edit.finish()


def _summed_apart(op: Map, found: Affine) -> tuple[list[Output], list[Result], dict[int, Sums]]:
    """The outputs of the body with those of the parts, and which are those of an old port."""
    outputs, results = [*op.body.outputs], [*op.results]
    sums: dict[int, Sums] = {}
    for port, output in enumerate(op.body.outputs):
        parts = found.parts.get(output.value)
        if parts is None:
            continue
        values = [part for part in (parts.slope, parts.rest) if isinstance(part, Value)]
        ports = [port, len(outputs)][: len(values)]
        outputs[port] = replace(output, value=values[0])
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
