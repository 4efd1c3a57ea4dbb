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
from typing import ClassVar

from blockbuster.ir.expr import Call
from blockbuster.ir.graph import Graph, Value
from blockbuster.rules.base import name_of
from blockbuster.rules.element_formulas import applies, scalar_of
from blockbuster.rules.laws import OUT_OF_EXTREMA, SCALES
from blockbuster.rules.legality import map_at
from blockbuster.rules.separate import NEGATIVE
from blockbuster.rules.shared_factor import LeavingFactor, sharing, waiting, waits
from blockbuster.rules.signs import PROVABLE, signs_of_value
from blockbuster.rules.unscaled import Unscaled


class ScaleOutOfExtremum(LeavingFactor):
    """Maxima and minima of what all iterations scale alike."""

    name = "scale-out-of-extremum"
    in_place = True
    monoids: ClassVar[tuple[str, ...]] = ("max", "min")
    passed: ClassVar[tuple[str, ...]] = SCALES[1].passes

    def ports(self, graph: Graph, position: int) -> Iterator[int]:
        return waiting(graph, position)

    def unfit(self, graph: Graph, position: int, found: Unscaled) -> str:
        return (
            self.not_out(graph, graph.nodes[position].operands[found.port])
            or _hidden(found)
            or _waits_all_the_same(graph, position, found.port)
        )

    def not_out(self, graph: Graph, factor: Value) -> str:
        """Only factors of ``OUT_OF_EXTREMA`` may leave, and only if none is negative."""
        expr = scalar_of(graph.nodes[factor.node])
        if not isinstance(expr, Call) or expr.fn not in OUT_OF_EXTREMA:
            return "it is no reciprocal and no exponential"
        if NEGATIVE in signs_of_value(graph, factor, PROVABLE):
            return "it may be negative, for all that shows"
        return ""


def _hidden(found: Unscaled) -> str:
    """0 is chosen where the factor is infinite: behind the fold, the product would be NaN."""
    nodes = found.op.body.nodes
    read = (node for node in nodes if any(v in found.factors for v in node.operands))
    hides = any(applies(node, "where") for node in read)
    return "where can hide it, and it may be infinite" if hides else ""


def _waits_all_the_same(graph: Graph, position: int, port: int) -> str:
    """With one of the maps that the factor waits for, no other operand may be in between."""
    node, op = graph.nodes[position], map_at(graph, position)
    between: list[Value] = []
    for other in dict.fromkeys(sharing(graph, position)):
        if not waits(graph, node.operands[port], other):
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
    return f"{name_of(graph, between[0])} waits for the same loop"
