"""monotone-out-of-extremum: what all iterations do to elements alike waits until after a maximum.

before   m = map N (x in !X) { .. yield max m }    after   m = map N (x in !X) { .. yield max m }
         n = -m                                            z = map N (x in !X) {
         z = map N (x in !X, n = n) {                        z = row_max(x)
           t = row_shift(x, n)                               yield max z
           y = tanh(t)                                     }
           z = row_max(y)                                  n = -m
           yield max z                                     y = tanh(z + n)
         }

A function that rises keeps the order of elements, so the largest F(x) is F of the largest x. One
that falls turns a maximum into a minimum. F may read anything that waits for another loop; what it
leaves inside may not. Then the fold waits no longer, and the two loops become one.
Rising are tanh, exp, log, sqrt and such, sums, maxima, and products with what is not negative;
falling are differences, reciprocals of positive numbers, and products with what is not positive.
Saves a pass over the elements. Costs less: F is computed once per row.
Termination: each application takes an operator out of a map, and none puts one in.
No row of the table of laws, which knows scales and shifts: any F that keeps order will do.
Source: ours; max F(x) = F(max x).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blockbuster.ir.builder import Builder, rebuild
from blockbuster.ir.expr import Arg, arguments
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import ROW_FOLDS, Accumulate, Functional, Map
from blockbuster.ir.ports import select_results
from blockbuster.rules.base import Match, hint_of, label, name_of
from blockbuster.rules.beside import without
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.element_formulas import Formulas, before_rows, folded_of
from blockbuster.rules.legality import first_iteration_gone, map_at
from blockbuster.rules.monotone import HOLE, Monotone, NotMonotoneError, monotone
from blockbuster.rules.shared_factor import MoveOut, waiting
from blockbuster.rules.signs import signs_of_value

TURNED = {"max": "min", "min": "max"}


@dataclass(frozen=True)
class Found:
    """A result of a map as a function of what waits, and the values of the leaves of its parts.

    ``inner`` is the value in the body that is the inner part, if there is one.
    """

    port: int
    alone: Node
    parts: Monotone
    inside: dict[int, Value]
    inner: Value | None


class MonotoneOutOfExtremum(MoveOut):
    """Maxima and minima of rising and falling functions."""

    name = "monotone-out-of-extremum"
    needs = (Map, Map)

    def sites(self, graph: Graph, position: int) -> Iterator[tuple[str, str]]:
        for found in self._waiting(graph, position):
            if isinstance(found, str):
                yield "", found
            else:
                yield name_of(graph, Value(position, found.port)), ""

    def apply(self, match: Match) -> Graph:
        sites = self._waiting(match.graph, match.nodes["map"])
        found = next(each for each in sites if isinstance(each, Found))
        op, origin, edit = found.alone.op, match.origin(), match.edit()
        assert isinstance(op, Map)
        (result,) = op.results
        assert isinstance(result, Accumulate)
        monoid = result.monoid if found.parts.rises else TURNED[result.monoid]
        body, value = Builder(op.body), before_rows(op, 0)
        rows, axes = value != op.body.outputs[0].value, op.body.type_of(value).axes
        made = found.inner or by_dim(body, found.parts.inner, found.inside, axes, origin)
        if rows:
            hints = (hint_of(op.body, op.body.outputs[0].value),)
            made = body.add(Functional(ROW_FOLDS[monoid]), made, hints=hints, origin=origin)[0]
        free = Map(op.dim, body.finish(made), op.iterated, (Accumulate(monoid),))
        (new,) = edit.add(free, *found.alone.operands, hints=found.alone.hints, origin=origin)
        whole = {i: found.alone.operands[v.port] for i, v in found.inside.items() if v.node < 0}
        given, axes = {**whole, HOLE: new}, found.alone.types[0].axes
        total = by_dim(edit, found.parts.outer, given, axes, origin)
        instead = {match.value("map", found.port): total}
        instead |= without(match, "map", found.port, edit, instead)
        edit.redirect_all([*instead], [*instead.values()])
        return edit.finish()

    def describe(self, match: Match) -> str:
        return (
            f"{match.detail} is found before what all iterations do in {label(match.node('map'))}"
        )

    def _waiting(self, graph: Graph, position: int) -> Iterator[Found | str]:
        """The extrema of a map whose function leaves it, or why it stays."""
        waits = [graph.nodes[position].operands[port] for port in waiting(graph, position)]
        for port, result in enumerate(map_at(graph, position).results if waits else ()):
            op = map_at(graph, position)
            if result not in (Accumulate("max"), Accumulate("min")) or op.group_of(port) != (port,):
                continue
            alone = select_results(graph.nodes[position], (port,), rebuild)[0]
            if not any(value in alone.operands for value in waits):
                continue
            if gone := first_iteration_gone(graph, position):
                yield gone
                continue
            try:
                yield _judged(graph, port, alone, waits)
            except NotMonotoneError as reason:
                yield f"{name_of(graph, Value(position, port))} {reason}"


def _judged(graph: Graph, port: int, alone: Node, waits: list[Value]) -> Found:
    op, formulas = alone.op, Formulas()
    assert isinstance(op, Map)
    leaves = [formulas.leaf(("input", at)) for at in range(len(op.iterated))]
    known = formulas.of(op.body, leaves)
    kept = {*alone.types[0].axes} - {op.dim}
    shared = {
        leaf.index: value
        for leaf, value, walks in zip(leaves, alone.operands, op.iterated, strict=True)
        if not walks and not graph.type_of(value).buffered and {*graph.type_of(value).axes} <= kept
    }
    for value in waits:
        if value in alone.operands and value not in shared.values():
            name = name_of(graph, value)
            raise NotMonotoneError(f"waits for {name}, which changes along what is folded")
    signs = {index: signs_of_value(graph, value) for index, value in shared.items()}
    late = frozenset(index for index, value in shared.items() if value in waits)
    whole = frozenset(index for index, value in shared.items())
    parts = monotone(folded_of(alone, 0, known), late, whole, signs)
    inside = {e.index: value for value, e in reversed(known.items()) if isinstance(e, Arg)}
    axes, shown = op.body.type_of(before_rows(op, 0)).axes, dict[str, None]()
    for index in arguments(parts.inner):
        if any(formulas.reads(Arg(index), Arg(each)) for each in late):
            raise NotMonotoneError("combines elements that wait")
        shown |= dict.fromkeys(op.body.type_of(inside[index]).axes)
    if before_rows(op, 0) != op.body.outputs[0].value and axes[-1] not in shown:
        raise NotMonotoneError(f"is the same along {axes[-1]}")
    left = {*alone.types[0].axes} - {*shown}
    for index in arguments(parts.outer):
        left -= {*graph.type_of(shared[index]).axes} if index != HOLE else set()
    if left:
        raise NotMonotoneError(f"would lose its axis {min(left)}")
    inner = next((value for value, e in known.items() if e == parts.inner), None)
    return Found(port, alone, parts, inside, inner)
