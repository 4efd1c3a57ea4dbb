"""scale-out-of-magnitude: a root waits until after the largest absolute value.

before   s = map N (x in !X) { .. yield +s }      after   s, m = map N (x in !X, w in !W) {
         r = rsqrt(s)                                       ..
         z = map N (x in !X, r = r, w in !W) {              u = col_scale(x, w)
           y = row_scale(x, r)                              a = abs(u)
           u = col_scale(y, w)                              m = row_max(a)
           a = abs(u)                                       yield +s
           m = row_max(a)                                   yield max m
           yield max m                                    }
         }                                                r = rsqrt(s)
                                                          z = mul(m, abs(r))

So the scale by which a normed row is quantized is found in the pass that sums its squares. Linear
functions may stand between the factor and the absolute value, as in factor-out. The factor must be
made from results of another map over the dim that shares a list, and nothing else in the map may
wait for that map: then the two can become one.

The equation holds for any factor r, but floats have a largest number, and NaN:

- The factor is a root or its reciprocal. Where it was applied, a value v becomes v / r. A root of a
  normal float32 is between 2^-64 and 2^64, so v / r overflows only if |v| is above 2^64, and loses
  digits only if |v| is below 2^-62. 1 / max |x| and exp(-x), however, may be what keeps v in range.
- No ``where`` selects a value with the factor. rsqrt(0) is infinite: in a row that is masked
  entirely, where(b, r x, 0) is 0, but r * 0 is NaN.
- Smallest absolute values keep their factors. rsqrt(inf) is 0, and the infinite elements of such a
  row are NaN; r times the smallest |e| would be 0.

Products are rounded in another order.
Termination: each application moves the factor one level out. Only extensions move one in, and they
terminate.
Source: ours; max |r e| = |r| max |e|.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.expr import Call
from blockbuster.ir.graph import Graph, Value
from blockbuster.rules.element_formulas import applies, scalar_of
from blockbuster.rules.laws import OUT_OF_MAGNITUDES
from blockbuster.rules.legality import map_at
from blockbuster.rules.scale_out_of_extremum import ScaleOutOfExtremum


class ScaleOutOfMagnitude(ScaleOutOfExtremum):
    """Largest absolute values of what all iterations scale alike."""

    name = "scale-out-of-magnitude"
    in_place = True
    monoids = ("max",)
    passed = ("abs", "row_max")

    def ports(self, graph: Graph, position: int) -> Iterator[int]:
        op = map_at(graph, position)
        sizes = any(applies(node, "abs") for node in op.body.nodes)
        return super().ports(graph, position) if sizes and len(op.results) == 1 else iter(())

    def not_out(self, graph: Graph, factor: Value) -> str:
        """Only factors of ``OUT_OF_MAGNITUDES`` may leave, or their reciprocals."""
        expr = scalar_of(graph.nodes[factor.node])
        if isinstance(expr, Call) and expr.fn == "reciprocal":
            (expr,) = expr.args
        root = isinstance(expr, Call) and expr.fn in OUT_OF_MAGNITUDES
        return "" if root else "it is no root: values could leave the range of floats"
