"""scale-out-of-extremum: a non-negative factor waits until after a maximum.

before   e, s = map N (x in !X) { .. yield e      after   e, s = map N (x in !X) { .. }
                                  yield +s }              m = map N (e in !E) {
         r = recip0(s)                                      m = row_max(e)
         z = map N (e in !e, r = r) {                       yield max m
           y = row_scale(e, r)                            }
           m = row_max(y)                                 r = recip0(s)
           yield max m                                    z = mul(m, r)
         }

So the largest weight of a softmax is found while its sum is taken, and the weights are not stored.
The same holds for minima. As in factor-out, the rule applies only if a node makes the factor and
another map over the dim shares a list: the two can then become one. Results in floating point are
the same, too, because rounding keeps order. The factor must be an exponential, or the reciprocal of
a value made of exponentials by sums and products.
Termination: each application moves the factor one level out. Only extensions move one in, and they
terminate.
Source: ours; max r e = r max e for r >= 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, call
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Accumulate, Map
from blockbuster.rules.base import Match, label, maker_of, name_of
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.element_formulas import before_rows, scalar_of
from blockbuster.rules.laws import OUT_OF_EXTREMA
from blockbuster.rules.legality import first_iteration_gone, map_at
from blockbuster.rules.separate import NEGATIVE
from blockbuster.rules.shared_factor import MoveOut, made_here, shares_a_pass
from blockbuster.rules.signs import PROVABLE, signs_of_value

PRODUCT = call("mul", Arg(0), Arg(1))


class ScaleOutOfExtremum(MoveOut):
    """Maxima and minima of what all iterations scale alike."""

    name = "scale-out-of-extremum"
    in_place = True

    def sites(self, graph: Graph, position: int) -> Iterator[tuple[str, str]]:
        op, node = map_at(graph, position), graph.nodes[position]
        if op.results not in ((Accumulate("max"),), (Accumulate("min"),)):
            return
        scaled = _scaled(op, [*made_here(graph, position)])
        if scaled is None or not shares_a_pass(graph, position):
            return
        factor = node.operands[scaled.port]
        reason = first_iteration_gone(graph, position) or _unfit(graph, node, scaled)
        yield name_of(graph, factor), reason or _of_unknown_sign(graph, factor)

    def apply(self, match: Match) -> Graph:
        node, op, origin = match.node("map"), match.map("map"), match.origin()
        scaled = _scaled(op, [*made_here(match.graph, match.nodes["map"])])
        assert scaled is not None
        body, edit = Builder(op.body), match.edit()
        body.redirect(scaled.product, scaled.rest)
        unscaled = op.around(body.finish())
        (new,) = edit.add(unscaled, *node.operands, hints=node.hints, origin=origin)
        given = [new, node.operands[scaled.port]]
        edit.redirect(match.value("map"), by_dim(edit, PRODUCT, given, node.types[0].axes, origin))
        return edit.finish()


class _Scaled(NamedTuple):
    """A product in a map's body, what is scaled in it, and the port of the factor."""

    product: Value
    rest: Value
    port: int


def _scaled(op: Map, ports: list[int]) -> _Scaled | None:
    """The product that a map folds, one of whose operands enters whole at one of ``ports``."""
    (result,), (output,) = op.results, op.body.outputs
    assert isinstance(result, Accumulate)
    value, _ = before_rows(op.body, output.value, result.monoid)
    maker = maker_of(op.body, value)
    if maker is None or scalar_of(maker) not in (PRODUCT, call("mul", Arg(1), Arg(0))):
        return None
    left, right = maker.operands
    for rest, factor in ((left, right), (right, left)):
        whole = factor.node < 0 and factor.port in ports and not op.iterated[factor.port]
        if whole and op.body.type_of(rest) == op.body.type_of(value):
            return _Scaled(value, rest, factor.port)
    return None


def _of_unknown_sign(graph: Graph, factor: Value) -> str:
    """Why the sign of a factor is not known, or ""."""
    expr = scalar_of(graph.nodes[factor.node])
    if not isinstance(expr, Call) or expr.fn not in OUT_OF_EXTREMA:
        return f"{name_of(graph, factor)} is no reciprocal and no exponential"
    if NEGATIVE in signs_of_value(graph, factor, trusted=PROVABLE):
        return f"{name_of(graph, factor)} may be negative, for all that shows"
    return ""


def _unfit(graph: Graph, node: Node, scaled: _Scaled) -> str:
    """Why the factor cannot be applied to the result, or ""."""
    factor = graph.type_of(node.operands[scaled.port])
    lost = [dim for dim in factor.axes if dim not in node.types[0].axes]
    return f"{label(node)} folds {lost[0]}, along which the factor changes" if lost else ""
