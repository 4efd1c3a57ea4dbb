"""A factor that all iterations of a map share, taken out of the sums that it goes into.

What two rules have in common: which maps and operands they look at, and how the sums of the parts
(see ``affine.py``) are put together after the map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Expr, call
from blockbuster.ir.graph import Graph, Output, Value
from blockbuster.ir.ops import Accumulate, Map, Result
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Type
from blockbuster.rules.affine import Affine
from blockbuster.rules.base import Match, Note, Refusal, Rule, label, name_of
from blockbuster.rules.by_dim import by_dim, spread
from blockbuster.rules.legality import first_iteration_gone


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
    """The ports of local operands of a map that nodes at its level make, not inputs."""
    node = graph.nodes[position]
    assert isinstance(node.op, Map)
    for port, (value, walks) in enumerate(zip(node.operands, node.op.iterated, strict=False)):
        if not walks and value.node >= 0 and not graph.type_of(value).buffered:
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
            return f"{name} rests on what is not linear in it: {found.refused[value]}"
        if value not in found.parts:
            continue
        if result != Accumulate("+"):
            return f"{name} is not summed over {op.dim}"
        parts = found.parts[value]
        if parts.rest is not None and not parts.counts:
            return f"{name} is a sum of it and others: digits would cancel"
        leaves = True
    return "" if leaves else "no sum depends on it"


@dataclass(frozen=True)
class Sums:
    """Ports of the new map: sums of the rest (if any) and of the slope, for an old port's value."""

    rest: int | None
    slope: int


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
        type = op.body.type_of(output.value)
        rest, slope = parts.rest, parts.slope
        assert slope is not None
        outputs[port] = replace(output, value=found.spread_if_number(slope, type))
        sums[port] = Sums(len(outputs) if rest is not None else None, port)
        if rest is not None:
            outputs.append(replace(output, value=found.spread_if_number(rest, type)))
            results.append(Accumulate("+"))
    return outputs, results, sums


def _put_together(
    edit: Builder, sums: Sums, new: tuple[Value, ...], factor: Value, type: Type, origin: Origin
) -> Value:
    total = by_dim(edit, call("mul", Arg(0), Arg(1)), [new[sums.slope], factor], type.axes, origin)
    if sums.rest is not None:
        both = [new[sums.rest], total]
        total = by_dim(edit, call("add", Arg(0), Arg(1)), both, type.axes, origin)
    return spread(edit, total, type.axes, origin)
