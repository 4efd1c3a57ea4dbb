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

from blockbuster.ir.expr import Arg, call
from blockbuster.ir.graph import Graph
from blockbuster.rules.base import Match, label, name_of
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.legality import map_at
from blockbuster.rules.magnitudes import largest, late, unscaled, why_it_stays
from blockbuster.rules.shared_factor import MoveOut

SCALED = call("mul", Arg(0), call("abs", Arg(1)))


class ScaleOutOfMagnitude(MoveOut):
    """Largest absolute values of what all iterations scale alike."""

    name = "scale-out-of-magnitude"
    in_place = True

    def sites(self, graph: Graph, position: int) -> Iterator[tuple[str, str]]:
        node = graph.nodes[position]
        for found in late(graph, position) if largest(map_at(graph, position)) else ():
            factor, reason = name_of(graph, node.operands[found.port]), ""
            if stays := why_it_stays(graph, position, found):
                reason = f"{factor} stays in {label(node)}: {stays}"
            yield factor, reason

    def apply(self, match: Match) -> Graph:
        graph, position, origin = match.graph, match.nodes["map"], match.origin()
        node, edit = match.node("map"), match.edit()
        found = next(f for f in late(graph, position) if not why_it_stays(graph, position, f))
        op = unscaled(match.map("map"), found.port, origin)
        (new,) = edit.add(op, *node.operands, hints=node.hints, origin=origin)
        given = [new, node.operands[found.port]]
        edit.redirect(match.value("map"), by_dim(edit, SCALED, given, node.types[0].axes, origin))
        return edit.finish()
