"""Folds that run in the loop of the results they waited for, and are repaired there.

What the rules for it share: a rule says which folds wait, and how each is repaired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from blockbuster.ir.builder import Builder, rebuild
from blockbuster.ir.expr import Arg, Expr
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Accumulate, Collect, Elementwise, Map, Rescale, Result
from blockbuster.ir.ports import select_results
from blockbuster.rules.base import LocalRule, Match, Note, Refusal, label, name_of, unheard
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.fuse_maps import Joined, padded
from blockbuster.rules.legality import map_at

AS_IT_IS: Expr = Arg(0)


@dataclass(frozen=True)
class Waiting:
    """Result ``port`` of a map, which the map ``alone`` makes alone, waits for ``leads``.

    These are results of the map ``first``. ``factor`` takes a partial result from its own leads to
    the folded ones: it reads the result, the leads and ``parameters``, then their new values.
    In the loop, (value, lead, function) of ``inside`` stands for ``value``, and the nodes
    ``between`` are made again. Behind the loop, ``restored`` of the result, the leads, the
    parameters and ``outside`` is what the program as written gives.
    """

    first: int
    port: int
    alone: Node
    leads: tuple[int, ...]
    factor: Expr
    inside: tuple[tuple[Value, int, Expr], ...] = ()
    between: tuple[int, ...] = ()
    parameters: tuple[Value, ...] = ()
    restored: Expr = AS_IT_IS
    outside: tuple[Value, ...] = ()


Wait = tuple[tuple[int, ...], Waiting | str]
"""The nodes in question, and a fold that can run beside its leads; or why it cannot, in words."""


class RunBeside(LocalRule):
    """A rule for maps that fold leads, and for folds of one kind that wait for these.

    ``roles`` are the names of both in a match, ``words`` those of the leads in a description.
    """

    needs = (Map, Map)
    roles: ClassVar[tuple[str, str]]
    words: ClassVar[str]

    def waiting(self, graph: Graph, position: int) -> Iterator[Wait]:
        """The folds of the map at ``position`` that wait, or why they cannot run in the loop."""
        raise AssertionError(f"{self.name} finds no folds")

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        if not isinstance(graph.nodes[position].op, Map):
            return
        known = set[int]()
        for nodes, found in self.waiting(graph, position):
            if isinstance(found, str):
                note(Refusal(self, nodes, found))
            elif found.first not in known:
                known.add(found.first)
                places = dict(zip(self.roles, (found.first, position), strict=True))
                yield Match(self, graph, places, name_of(graph, Value(position, found.port)))

    def apply(self, match: Match) -> Graph:
        first, fold = (match.nodes[role] for role in self.roles)
        sites = (each for _, each in self.waiting(match.graph, fold) if isinstance(each, Waiting))
        return _run_beside(match, next(each for each in sites if each.first == first), *self.roles)

    def describe(self, match: Match) -> str:
        return f"{match.detail} beside {self.words} in {label(match.node(self.roles[0]))}"


def _run_beside(match: Match, found: Waiting, first: str, fold: str) -> Graph:
    """The graph in which the map ``first`` folds the result that waits, too.

    Of the map ``fold``, other results are left to a map of their own.
    """
    earlier, op, alone = match.node(first), match.map(first), found.alone
    joined = Joined(earlier, op)
    made = [output.value for output in op.body.outputs]
    parameters = [joined.operand(match.graph, value) for value in found.parameters]
    known = dict(zip(match.values(first), made, strict=True))
    _add_inside(match, found, joined, known)
    assert isinstance(alone.op, Map)
    outputs = [*made, *parameters, *joined.inline(alone, alone.op, known)]
    (result,) = alone.op.results
    assert isinstance(result, Accumulate)
    ports = (*found.leads, *range(len(made), len(made) + len(parameters)))
    folds: list[Result] = [Accumulate("max") for _ in parameters]
    folds.append(Rescale(result.monoid, ports, found.factor))
    edit = match.edit()
    hints = padded(earlier.hints, len(made) + len(parameters)) + padded(alone.hints, 1)
    both = joined.map(outputs, (*op.results, *folds))
    new = edit.add(both, *joined.operands, hints=hints, origin=match.origin())
    instead = dict(zip(match.values(first), new, strict=False))
    given = [new[-1], *(new[lead] for lead in found.leads), *found.parameters, *found.outside]
    axes, own = alone.types[0].axes, match.value(fold, found.port)
    instead[own] = by_dim(edit, found.restored, given, axes, match.origin())
    instead |= without(match, fold, found.port, edit, instead)
    edit.redirect_all([*instead], [*instead.values()])
    return edit.finish()


def _add_inside(match: Match, found: Waiting, joined: Joined, known: dict[Value, Value]) -> None:
    """The values on the way from the leads of a block to the fold, made in its loop."""
    graph, of_block = match.graph, [*known.values()]
    for value, lead, function in found.inside:
        known[value] = of_block[lead]
        if function != AS_IT_IS:
            known[value] = joined.add(Elementwise(function), of_block[lead], match.origin())
    for position in found.between:
        node = graph.nodes[position]
        operands = [
            known[value] if value in known else joined.operand(graph, value)
            for value in node.operands
        ]
        known[Value(position)] = joined.apply(node, operands)


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
