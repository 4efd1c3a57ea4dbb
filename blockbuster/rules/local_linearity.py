"""local-linearity: scaling or shifting rows inside a sum of dots can wait until after the sum.

before   p = map K (x in !X, c = c, y in !Y) {   after   p = map K (x in !X, y in !Y) {
           s = row_scale(x, c)                             d = dot(x, y)
           d = dot(s, y)                                   yield +d
           yield +d                                      }
         }                                               z = row_scale(p, c)

A shift leaves a second sum, of the row sums of y: z = add(outer(c, r), p). It leaves only if it is
minus the mean and the variance is taken (mean_shifts.py): else digits would cancel in z.
The map no longer waits for c, so it may join the map that makes c. The rule looks at one body, not
at neighbouring maps, so it works after fusion, and on several dots at once. Costs, for a shift, the
row sums. Lowest priority: rules 4, 5 and 8 come first.
Beside the law of factor-out, which leaves nothing: a shift of a sum leaves a second sum.
Termination: each application moves the operator one level out. Only extensions move one in, and
they terminate.
Source: ours; (diag(c) X + a 1') Y = diag(c) X Y + a (1' Y), as in rules 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ClassVar

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Accumulate, Functional
from blockbuster.rules.array_terms import Terms
from blockbuster.rules.base import Match, label
from blockbuster.rules.legality import (
    first_iteration_gone,
    map_at,
    not_only_summed_dots,
    vector_varies,
)
from blockbuster.rules.mean_shifts import not_centered
from blockbuster.rules.shared_factor import MoveOut

ROW_OPERATORS = (Functional("row_scale"), Functional("row_shift"))


class LeavingOperator(MoveOut):
    """A rule for operators, of ``ops``, in the body of a map: the first that can leaves it."""

    ops: ClassVar[tuple[Functional, ...]]

    def stays(self, graph: Graph, position: int, inner: int) -> str:
        """Why the operator at ``inner`` in a map cannot leave it; "" if it can."""
        raise AssertionError(f"{self.name} judges no operator")

    def sites(self, graph: Graph, position: int) -> Iterator[tuple[str, str]]:
        body = map_at(graph, position).body
        for inner in self._those(body):
            reason = first_iteration_gone(graph, position) or self.stays(graph, position, inner)
            yield label(body.nodes[inner]), reason

    def leaving(self, match: Match) -> int:
        """The position, in the body of the matched map, of the operator that leaves."""
        graph, position = match.graph, match.nodes["map"]
        inside = self._those(match.map("map").body)
        return next(inner for inner in inside if not self.stays(graph, position, inner))

    def _those(self, body: Graph) -> list[int]:
        return [position for position, op in body.of_type(Functional) if op in self.ops]


class LocalLinearity(LeavingOperator):
    """Rules 4 and 5 within one map."""

    name = "local-linearity"
    in_place = True
    looks_beside = False
    ops = ROW_OPERATORS

    def stays(self, graph: Graph, position: int, inner: int) -> str:
        op = map_at(graph, position)
        return (
            vector_varies(op, inner)
            or not_only_summed_dots(op, Value(inner))
            or shift_would_cancel(graph, position, inner)
        )

    def apply(self, match: Match) -> Graph:
        inner = self.leaving(match)
        node = match.node("map")
        operator = match.map("map").body.nodes[inner]
        c = node.operands[operator.operands[1].port]
        origin = match.origin()
        if operator.op == Functional("row_scale"):

            def scaled(edit: Builder, total: Value, _: Value) -> Value:
                return edit.add(operator.op, total, c, origin=origin)[0]

            return taken_out(match, inner, None, scaled)

        def row_sums(body: Builder, right: Value) -> Value:
            return body.add(Functional("row_sum"), right, origin=origin)[0]

        def shifted(edit: Builder, total: Value, sums: Value) -> Value:
            (shift,) = edit.add(Functional("outer"), c, sums, origin=origin)
            return edit.add(Functional("add"), shift, total, origin=origin)[0]

        return taken_out(match, inner, row_sums, shifted)


def shift_would_cancel(graph: Graph, position: int, inner: int) -> str:
    """Rows may be shifted after the product by minus the mean, if their variance is taken."""
    op = map_at(graph, position)
    operator = op.body.nodes[inner]
    if operator.op != Functional("row_shift"):
        return ""
    terms = Terms()
    outer = terms.values(graph)
    inside = terms.values(op.body, [outer[v] for v in graph.nodes[position].operands])
    elements, shift = (inside[v] for v in operator.operands)
    return not_centered(terms, elements, shift, op.dim)


def taken_out(
    match: Match,
    inner: int,
    beside: Callable[[Builder, Value], Value] | None,
    after: Callable[[Builder, Value, Value], Value],
) -> Graph:
    """The graph in which the dots read what the operator at ``inner`` read.

    ``beside`` makes, from the right operand of a dot, what is to be summed beside it; ``after``
    makes the value the dots' sum had from what it is now and that other sum.
    """
    node, op = match.node("map"), match.map("map")
    body = Builder(op.body)
    body.redirect(Value(inner), op.body.nodes[inner].operands[0])
    outputs, results = list(op.body.outputs), list(op.results)
    other: dict[int, int] = {}
    for port, output in enumerate(op.body.outputs):
        left, right = (*op.body.nodes[output.value.node].operands, None, None)[:2]
        if output.value.node < 0 or left != Value(inner):
            continue
        other[port] = port
        if beside is not None and right is not None:
            other[port] = len(outputs)
            outputs.append(replace(output, value=beside(body, right)))
            results.append(Accumulate("+"))
    edit = match.edit()
    changed = replace(op, body=body.finish(*outputs), results=tuple(results))
    new = edit.add(changed, *node.operands, hints=node.hints, origin=match.origin())
    for port in range(len(node.types)):
        value = new[port]
        if port in other:
            value = after(edit, value, new[other[port]])
        edit.redirect(match.value("map", port), value)
    return edit.finish()
