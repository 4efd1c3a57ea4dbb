"""Conditions of use "move out": which operands of a map may leave its folds; why others stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from blockbuster.ir.expr import Call
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Accumulate, Map, Op, Result
from blockbuster.rules.base import LocalRule, Match, Note, label, name_of, unheard
from blockbuster.rules.element_formulas import applies, scalar_of
from blockbuster.rules.laws import Law
from blockbuster.rules.legality import first_iteration_gone, leads_others, map_at
from blockbuster.rules.separate import ANY, NEGATIVE
from blockbuster.rules.signs import PROVABLE, signs_of_value
from blockbuster.rules.unscaled import Unscaled

UNTOUCHED = "no fold depends on it"


class MoveOut(LocalRule):
    """A rule for what all iterations of a map share, and that can wait until after the map."""

    kind = "companion"
    needs: ClassVar[tuple[type[Op], ...]] = (Map,)

    def sites(self, graph: Graph, position: int) -> Iterator[tuple[str, str]]:
        """What could leave the map at ``position``, in words, and why it stays, or ""."""
        raise AssertionError(f"{self.name} finds nothing")

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        """The first that can leave."""
        if not isinstance(graph.nodes[position].op, Map):
            return
        for name, reason in self.sites(graph, position):
            yield from self.judged(graph, {"map": position}, reason, note, name)
            if not reason:
                return

    def describe(self, match: Match) -> str:
        return f"{match.detail} leaves {label(match.node('map'))}"


def sharing(graph: Graph, position: int) -> Iterator[int]:
    """The other maps over the same dim that make, or walk, a list that the map walks.

    The two would be one map, were it not for what the one waits for.
    """
    op, node = map_at(graph, position), graph.nodes[position]
    for value, walks in zip(node.operands, op.iterated, strict=False):
        for other in (value.node, *graph.consumers(value)) if walks else ():
            loop = graph.nodes[other].op if other not in (-1, position) else None
            if isinstance(loop, Map) and loop.dim == op.dim:
                yield other


def made_beside(graph: Graph, position: int) -> Iterator[int]:
    """The ports of a map's local operands that nodes of its level make, if it shares a list."""
    if not any(True for _ in sharing(graph, position)):
        return
    for port, value in enumerate(map_at(graph, position).entering(graph.nodes[position].operands)):
        if value.node >= 0 and not graph.type_of(value).buffered:
            yield port


def waiting(graph: Graph, position: int) -> Iterator[int]:
    """The ports of ``made_beside`` that wait for another map over the dim that shares a list."""
    others = tuple(dict.fromkeys(sharing(graph, position)))
    for port in made_beside(graph, position):
        if any(_waits(graph, graph.nodes[position].operands[port], other) for other in others):
            yield port


def why_it_stays(graph: Graph, position: int, found: Unscaled, law: Law) -> str:
    """Why a factor stays in all folds, or "": in lists it may stay where that costs no pass."""
    reason = first_iteration_gone(graph, position) or _in_an_extremum(graph, position, found, law)
    if reason:
        return reason
    op, staying = map_at(graph, position), results_with(found, law)
    leaving = [o for p, o in enumerate(op.body.outputs) if p not in staying]
    if not any(output.value in found.factors for output in leaving):
        return next(iter(staying.values()), UNTOUCHED)
    return next(iter(staying.values())) if staying and _costs(graph, position, staying) else ""


def results_with(found: Unscaled, law: Law) -> dict[int, str]:
    """The results that need the factor in the map, and why: all of a group, or none."""
    staying, op = dict[int, str](), found.op
    for port, output in enumerate(op.body.outputs):
        reason = _why_it_needs_it(port, found, law)
        if reason:
            reason = f"{name_of(op.body, output.value)} {reason}"
            staying |= {beside: reason for beside in op.group_of(port) if beside not in staying}
    return {port: staying[port] for port in sorted(staying)}


def folds(result: Result, law: Law) -> bool:
    """Whether the law is about this fold."""
    return isinstance(result, Accumulate) and result.monoid in law.monoids


def _why_it_needs_it(port: int, found: Unscaled, law: Law) -> str:
    """Why a result needs the factor in the map, or ""."""
    op, value = found.op, found.op.body.outputs[port].value
    if value in found.refused:
        return f"is no multiple of it: a value {found.refused[value]}"
    if value not in found.factors:
        return ""
    if not folds(op.results[port], law):
        return f"is not summed over {op.dim}"
    if found.factors[value] != found.leaving:
        return "is a multiple of another power of it, or of its size"
    rest = found.rests[value]
    if not isinstance(rest, Value):
        return "is a number times it"
    shown = (*found.axes, *found.builder.type_of(rest).axes)
    lost = [dim for dim in op.body.type_of(value).axes if dim not in shown]
    return f"would lose its axis {lost[0]}" if lost else leads_others(op, port)


def _costs(graph: Graph, position: int, staying: dict[int, str]) -> bool:
    """True unless what stays has a reader, which may wait for the sums, and no loop runs twice."""
    op = map_at(graph, position)
    read = any(graph.consumers(Value(position, port)) for port in staying)
    return not read or any(isinstance(node.op, Map) for node in op.body.nodes)


# Floats: why a factor stays in an extremum although an equation lets it leave --------------


def _in_an_extremum(graph: Graph, position: int, found: Unscaled, law: Law) -> str:
    if not law.made_by:
        return ""
    return (
        _not_made_by(graph, graph.nodes[position].operands[found.port], law)
        or _hidden(found)
        or _waits_all_the_same(graph, position, found.port)
    )


UNSIGNED = "proofs do not decide whether it is negative"


def out_of_range(law: Law) -> str:
    """Why a factor stays that is made by other functions than the law names."""
    range_or_sign = "values could leave the range of floats" if law.signs == ANY else UNSIGNED
    return f"it is none of {', '.join(law.made_by)}: {range_or_sign}"


def _not_made_by(graph: Graph, factor: Value, law: Law) -> str:
    """A factor is made by what the law names, or its reciprocal is, and has the law's signs."""
    expr = scalar_of(graph.nodes[factor.node])
    if isinstance(expr, Call) and expr.fn == "reciprocal" and expr.fn not in law.made_by:
        (expr,) = expr.args
    if not isinstance(expr, Call) or expr.fn not in law.made_by:
        return out_of_range(law)
    if law.signs != ANY and NEGATIVE in signs_of_value(graph, factor, PROVABLE):
        return "it may be negative, for all that shows"
    return ""


def _hidden(found: Unscaled) -> str:
    """0 is chosen where the factor is infinite: behind the fold, the product would be NaN."""
    nodes = found.op.body.nodes
    read = (node for node in nodes if any(v in found.factors for v in node.operands))
    hides = any(applies(node, "where") for node in read)
    return "where can hide it, and it may be infinite" if hides else ""


def _waits_all_the_same(graph: Graph, position: int, port: int) -> str:
    """The factor waits for a map that shares a list, and no other operand is in between."""
    node, op = graph.nodes[position], map_at(graph, position)
    between: list[Value] = []
    for other in dict.fromkeys(sharing(graph, position)):
        if not _waits(graph, node.operands[port], other):
            continue
        kept = [
            value
            for at, value in enumerate(node.operands)
            if at != port and value.node >= 0
            if graph.reaches(other, value.node) or (value.node == other and not op.iterated[at])
        ]
        if not kept:
            return ""
        between += kept
    if not between:
        return "it waits for no loop that shares a list"
    return f"{name_of(graph, between[0])} waits for the same loop"


def _waits(graph: Graph, value: Value, other: int) -> bool:
    """True if a node makes a value, or what it is made of."""
    return value.node == other or graph.reaches(other, value.node)
