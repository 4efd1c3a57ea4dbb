"""fold-columns: an operator on columns lets an operator on rows pass, within a sum of dots.

before   p = map K (x in !X, c = c, g in !G, y in !Y) {   after   p = map K (...) {
           s = row_scale(x, c)                                      s = row_scale(x, c)
           t = col_scale(s, g)                                      u = col_scale(y, g)
           d = dot(t, y)                                            d = dot(s, u)
           yield +d                                                 yield +d
         }                                                        }

A scale of columns moves to the right operand. A shift of columns by b leaves the map and becomes a
second sum, of the row sums of y weighted by b: z = col_shift(p, r). Applies only if an operator on
rows comes next, which local-linearity then moves: so a norm with weights moves behind a matmul as
one without weights does. Only columns of centered rows are shifted behind it (mean_shifts.py).
Costs a scale of y, and for a shift its row sums, per block of the product.
Termination: operators on columns move away from the left operands of dots, and none moves towards
one.
Source: ours; (X diag(g) + 1 b') Y = X (diag(g) Y) + 1 (b' Y).
"""

from __future__ import annotations

from dataclasses import replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Functional, Map
from blockbuster.rules.base import Match, label
from blockbuster.rules.legality import map_at, not_only_summed_dots, vector_varies
from blockbuster.rules.local_linearity import (
    ROW_OPERATORS,
    LeavingOperator,
    shift_would_cancel,
    taken_out,
)

COLUMN_OPERATORS = (Functional("col_scale"), Functional("col_shift"))


class FoldColumns(LeavingOperator):
    """Makes way for local-linearity."""

    name = "fold-columns"
    in_place = True
    looks_beside = False
    ops = COLUMN_OPERATORS

    def stays(self, graph: Graph, position: int, inner: int) -> str:
        op = map_at(graph, position)
        return (
            _hides_no_row_operator(op, inner)
            or not_only_summed_dots(op, Value(inner))
            or _shift_would_cancel(graph, position, inner)
        )

    def apply(self, match: Match) -> Graph:
        inner = self.leaving(match)
        operator = match.map("map").body.nodes[inner]
        if operator.op == Functional("col_scale"):
            return _on_the_right(match, inner)

        def weighted_sums(body: Builder, right: Value) -> Value:
            (scaled,) = body.add(
                Functional("col_scale"), right, operator.operands[1], origin=match.origin()
            )
            return body.add(Functional("row_sum"), scaled, origin=match.origin())[0]

        def shifted(edit: Builder, total: Value, sums: Value) -> Value:
            return edit.add(operator.op, total, sums, origin=match.origin())[0]

        return taken_out(match, inner, weighted_sums, shifted)

    def describe(self, match: Match) -> str:
        return f"{match.detail} makes way in {label(match.node('map'))}"


def _on_the_right(match: Match, inner: int) -> Graph:
    """Every dot of the scaled block reads the block, and a scaled right operand."""
    node, op = match.node("map"), match.map("map")
    block, vector = op.body.nodes[inner].operands
    body = Builder(op.body)
    for reader in op.body.consumers(Value(inner)):
        right = op.body.nodes[reader].operands[1]
        (scaled,) = body.add(Functional("col_scale"), right, vector, origin=match.origin())
        body.set_operand(reader, 0, block)
        body.set_operand(reader, 1, scaled)
    edit = match.edit()
    changed = replace(op, body=body.finish())
    new = edit.add(changed, *node.operands, hints=node.hints, origin=match.origin())
    for port, value in enumerate(new):
        edit.redirect(match.value("map", port), value)
    return edit.finish()


def _shift_would_cancel(graph: Graph, position: int, inner: int) -> str:
    """Columns may be shifted after the product if the rows were centered: those are not near -b."""
    body = map_at(graph, position).body
    if body.nodes[inner].op != Functional("col_shift"):
        return ""
    at = inner
    while at >= 0 and body.nodes[at].op in (*ROW_OPERATORS, *COLUMN_OPERATORS):
        if body.nodes[at].op == Functional("row_shift"):
            return shift_would_cancel(graph, position, at)
        at = body.nodes[at].operands[0].node
    return f"{label(body.nodes[inner])} shifts rows that are not centered: digits would cancel"


def _hides_no_row_operator(op: Map, inner: int) -> str:
    """An operator on rows must precede it, perhaps behind others on columns, and can leave."""
    at = inner
    while at >= 0 and op.body.nodes[at].op in COLUMN_OPERATORS:
        at = op.body.nodes[at].operands[0].node
    if at < 0 or op.body.nodes[at].op not in ROW_OPERATORS:
        return f"no operator on rows waits behind {label(op.body.nodes[inner])}"
    return vector_varies(op, at) or not_only_summed_dots(op, Value(at), through=COLUMN_OPERATORS)
