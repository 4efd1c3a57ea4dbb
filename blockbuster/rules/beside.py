"""A fold that runs in the loop of the fold that it waited for, rescaled by that one's result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from blockbuster.ir.builder import Builder, rebuild
from blockbuster.ir.expr import Expr
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Accumulate, Collect, Map, Rescale
from blockbuster.ir.ports import select_results
from blockbuster.rules.base import Match, name_of
from blockbuster.rules.fuse_maps import Joined, padded
from blockbuster.rules.legality import map_at

Inward = Callable[[Joined, Sequence[Value]], Mapping[Value, Value]]
"""What stands, in the common body, for more operands of the fold; given the first map's values."""


@dataclass(frozen=True)
class Waiting:
    """Result ``port`` of a map waits for result ``lead`` of another.

    ``alone`` is the map with that result only. ``factor`` takes a partial result from its own lead
    to the folded one.
    """

    lead: int
    port: int
    alone: Node
    factor: Expr


def run_beside(
    match: Match, first: str, fold: str, found: Waiting, inward: Inward | None = None
) -> tuple[Builder, dict[Value, Value]]:
    """The edit in which the map ``first`` folds the result that waits, too, and what it replaces.

    Of the map ``fold``, other results are left to a map of their own.
    """
    earlier, op, alone = match.node(first), match.map(first), found.alone
    made = [output.value for output in op.body.outputs]
    joined = Joined(earlier, op)
    known = dict(zip(match.values(first), made, strict=True))
    known.update(inward(joined, made) if inward else {})
    assert isinstance(alone.op, Map)
    made += joined.inline(alone, alone.op, known)
    (result,) = alone.op.results
    assert isinstance(result, Accumulate)
    both = joined.map(made, (*op.results, Rescale(result.monoid, (found.lead,), found.factor)))
    edit = match.edit()
    hints = padded(earlier.hints, len(op.results)) + padded(alone.hints, 1)
    *old, new = edit.add(both, *joined.operands, hints=hints, origin=match.origin())
    instead = dict(zip(match.values(first), old, strict=True))
    instead[match.value(fold, found.port)] = new
    return edit, instead | without(match, fold, found.port, edit, instead)


def waits_for_more(graph: Graph, first: int, awaited: Value, alone: Node) -> str:
    """All operands but the one ``awaited`` exist in each iteration of the map ``first``."""
    for value in alone.operands:
        if value == awaited:
            continue
        if value.node == first:
            if not isinstance(map_at(graph, first).results[value.port], Collect):
                return f"waits for {name_of(graph, value)}, too"
        elif value.node >= 0 and graph.reaches(first, value.node):
            return f"waits for {name_of(graph, value)}, which depends on the same loop"
    return ""


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
