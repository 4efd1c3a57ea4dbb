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

from blockbuster.ir.expr import Arg, Call
from blockbuster.ir.graph import Graph
from blockbuster.rules.base import name_of
from blockbuster.rules.element_formulas import scalar_of
from blockbuster.rules.laws import OUT_OF_EXTREMA
from blockbuster.rules.monotone import HOLE
from blockbuster.rules.monotone_out_of_extremum import Found, MonotoneOutOfExtremum
from blockbuster.rules.separate import NEGATIVE
from blockbuster.rules.signs import PROVABLE, signs_of_value


class ScaleOutOfExtremum(MonotoneOutOfExtremum):
    """Maxima and minima of what all iterations scale alike."""

    name = "scale-out-of-extremum"
    in_place = True

    def unfit(self, graph: Graph, found: Found) -> str:
        match found.parts.outer:
            case Call("mul", (Arg(a), Arg(b))) if HOLE in (a, b):
                factor = found.alone.operands[found.inside[b if a == HOLE else a].port]
            case _:
                return "is no product with one factor that waits"
        expr, name = scalar_of(graph.nodes[factor.node]), name_of(graph, factor)
        if not isinstance(expr, Call) or expr.fn not in OUT_OF_EXTREMA:
            return f"is scaled by {name}, which is no reciprocal and no exponential"
        if NEGATIVE in signs_of_value(graph, factor, PROVABLE):
            return f"is scaled by {name}, which may be negative, for all that shows"
        return ""
