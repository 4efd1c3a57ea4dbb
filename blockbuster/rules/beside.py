"""Folds that run in the loop of the results they waited for, and are repaired there: the edits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blockbuster.ir.builder import Builder, rebuild
from blockbuster.ir.expr import Arg, Expr
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Accumulate, Elementwise, Map, Rescale, Result
from blockbuster.ir.ports import select_results
from blockbuster.rules.base import Match
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.dependent_folds import Dependent
from blockbuster.rules.fuse_maps import Joined, padded

AS_IT_IS: Expr = Arg(0)


@dataclass(frozen=True)
class Waiting:
    """A fold that can run in the loop of its leads.

    There ``guards`` stand for the leads. ``factor`` takes a partial result from its own leads to
    the folded ones: it reads the result, the leads and ``parameters``, then their new values.
    Behind the loop, ``restored`` of the result, the leads and the parameters is what the program
    as written gives.
    """

    fold: Dependent
    guards: tuple[Expr, ...]
    parameters: tuple[Value, ...]
    factor: Expr
    restored: Expr


def run_beside(match: Match, found: Waiting) -> Graph:
    """The graph in which the map of the leads folds the result that waits, too.

    Other results of the map that waits are left to a map of their own.
    """
    earlier, op, alone = match.node("leads"), match.map("leads"), found.fold.alone
    joined = Joined(earlier, op)
    made = [output.value for output in op.body.outputs]
    parameters = [joined.operand(match.graph, value) for value in found.parameters]
    known = dict(zip(match.values("leads"), made, strict=True))
    _add_inside(match, found, joined, known)
    assert isinstance(alone.op, Map)
    outputs = [*made, *parameters, *joined.inline(alone, alone.op, known)]
    (result,) = alone.op.results
    assert isinstance(result, Accumulate)
    leads = [lead.port for lead in found.fold.leads]
    ports = (*leads, *range(len(made), len(made) + len(parameters)))
    folds: list[Result] = [Accumulate("max") for _ in parameters]
    folds.append(Rescale(result.monoid, ports, found.factor))
    edit = match.edit()
    hints = padded(earlier.hints, len(made) + len(parameters)) + padded(alone.hints, 1)
    both = joined.map(outputs, (*op.results, *folds))
    new = edit.add(both, *joined.operands, hints=hints, origin=match.origin())
    instead = dict(zip(match.values("leads"), new, strict=False))
    given = [new[-1], *(new[port] for port in leads), *found.parameters]
    axes, own = alone.types[0].axes, match.value("fold", found.fold.port)
    instead[own] = by_dim(edit, found.restored, given, axes, match.origin())
    instead |= without(match, "fold", found.fold.port, edit, instead)
    edit.redirect_all([*instead], [*instead.values()])
    return edit.finish()


def _add_inside(match: Match, found: Waiting, joined: Joined, known: dict[Value, Value]) -> None:
    """The values on the way from the leads of a block to the fold, made in its loop."""
    graph = match.graph
    for lead, guard in zip(found.fold.leads, found.guards, strict=True):
        if guard != AS_IT_IS:
            known[lead] = joined.add(Elementwise(guard), known[lead], match.origin())
    for position in found.fold.between:
        node = graph.nodes[position]
        operands = [
            known[value] if value in known else joined.operand(graph, value)
            for value in node.operands
        ]
        known[Value(position)] = joined.apply(node, operands)


def without(
    match: Match, fold: str, port: int, edit: Builder, instead: Mapping[Value, Value]
) -> dict[Value, Value]:
    """The other results of the map that waits, from a map of their own, and what these replace."""
    others = [p for p in range(len(match.map(fold).results)) if p != port]
    if not others:
        return {}
    rest, order = select_results(match.node(fold), others, rebuild)
    operands = [instead.get(value, value) for value in rest.operands]
    made = zip(
        order, edit.add(rest.op, *operands, hints=rest.hints, origin=rest.origin), strict=True
    )
    return {match.value(fold, old): new for old, new in made if old != port}
