"""scale-out-of-magnitude: a factor leaves the largest absolute value as its own absolute value.

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

So the scale by which a normed row is quantized is found in the pass that sums its squares. The same
holds for the smallest absolute value. Linear functions may stand between the factor and the
absolute value, as in factor-out, but no added terms. As there, the rule applies only if a node
makes the factor and another map over the dim shares a list: the two can then become one. No sign
need be known, unlike in scale-out-of-extremum. Floating point rounds the products in another order.
Termination: each application moves the factor one level out. Only extensions move one in, and they
terminate.
Source: ours; max |r e| = |r| max |e|.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Expr, call
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Accumulate, Elementwise, Functional, Map, Op, Pointwise
from blockbuster.ir.origin import Origin
from blockbuster.rules.affine import Affine
from blockbuster.rules.base import (
    Kind,
    LocalRule,
    Match,
    Note,
    Refusal,
    label,
    name_of,
    unheard,
)
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.extrema import ROW_FOLDS
from blockbuster.rules.legality import first_iteration_gone
from blockbuster.rules.linear_expressions import ONE, NotAffine, Parts
from blockbuster.rules.shared_factor import made_here, shares_a_pass

MAGNITUDE = call("abs", Arg(0))
SCALED = call("mul", Arg(0), call("abs", Arg(1)))


@dataclass(frozen=True)
class ScaleOutOfMagnitude(LocalRule):
    """Largest and smallest absolute values of what all iterations scale alike."""

    name: ClassVar[str] = "scale-out-of-magnitude"
    kind: ClassVar[Kind] = "companion"
    needs: ClassVar[tuple[type[Op], ...]] = (Map,)
    in_place: ClassVar[bool] = True

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        node = graph.nodes[position]
        if not isinstance(node.op, Map) or _folded(node.op) is None:
            return
        if not shares_a_pass(graph, position):
            return
        for port in made_here(graph, position):
            reason = first_iteration_gone(graph, position) or _unfit(graph, node, port)
            reason = reason or _stays(node.op, port)
            factor = name_of(graph, node.operands[port])
            if not reason:
                yield Match(self, graph, {"map": position}, factor)
                return
            note(Refusal(self, (position,), f"{factor} stays in {label(node)}: {reason}"))

    def apply(self, match: Match) -> Graph:
        graph, node, op, origin = match.graph, match.node("map"), match.map("map"), match.origin()
        port = next(
            port
            for port in made_here(graph, match.nodes["map"])
            if not _unfit(graph, node, port) and not _stays(op, port)
        )
        edit = match.edit()
        (new,) = edit.add(_unscaled(op, port, origin), *node.operands, hints=node.hints,
                          origin=origin)  # fmt: skip
        given = [new, node.operands[port]]
        edit.redirect(match.value("map"), by_dim(edit, SCALED, given, node.types[0].axes, origin))
        return edit.finish()

    def describe(self, match: Match) -> str:
        return f"{match.detail} leaves {label(match.node('map'))}"


class _Folded(NamedTuple):
    """The node that takes absolute values, of ``expr``, and the one that folds rows, if any."""

    node: Node
    expr: Expr
    rows: Node | None


def _folded(op: Map) -> _Folded | None:
    """The absolute values of which a map's only result is the largest or the smallest."""
    if op.results not in ((Accumulate("max"),), (Accumulate("min"),)):
        return None
    (result,), value, nodes, rows = op.results, op.body.outputs[0].value, op.body.nodes, None
    assert isinstance(result, Accumulate)
    if value.node >= 0 and nodes[value.node].op == Functional(ROW_FOLDS[result.monoid]):
        rows = nodes[value.node]
        value = rows.operands[0]
    node = nodes[value.node] if value.node >= 0 else None
    if node is None or not isinstance(node.op, Elementwise | Pointwise):
        return None
    match node.op.expr:
        case Call("abs", (expr,)):
            return _Folded(node, expr, rows)
    return None


def _followed(op: Map, port: int, origin: Origin) -> tuple[Builder, Value]:
    """The edited body, and a value of it: the factor times that is what absolute values are of.

    Raises NotAffine where it is no such product.
    """
    folded, factor = _folded(op), Value(-1, port)
    assert folded is not None
    found = Affine(op.body, Builder(op.body), op.body.type_of(factor).axes, origin)
    found.parts[factor] = Parts(None, ONE)
    found.follow()
    parts = found.of_expression(folded.expr, folded.node)
    if parts is None:
        raise NotAffine("nothing depends on it")
    if parts.rest is not None:
        raise NotAffine("a sum of it and others")
    slope = parts.slope
    if not isinstance(slope, Value) or found.builder.type_of(slope) != folded.node.types[0]:
        raise NotAffine("the rest of the product has fewer axes")
    return found.builder, slope


def _stays(op: Map, port: int) -> str:
    """Why a factor stays in a map, or ""."""
    try:
        _followed(op, port, Origin())
    except NotAffine as reason:
        return str(reason)
    return ""


def _unfit(graph: Graph, node: Node, port: int) -> str:
    """Why the factor cannot be applied to the result, or ""."""
    factor = graph.type_of(node.operands[port])
    lost = [dim for dim in factor.axes if dim not in node.types[0].axes]
    return f"{label(node)} folds {lost[0]}, along which it changes" if lost else ""


def _unscaled(op: Map, port: int, origin: Origin) -> Map:
    """The map without the factor."""
    folded, (body, value) = _folded(op), _followed(op, port, origin)
    assert folded is not None
    for node in filter(None, (folded.node, folded.rows)):
        operator = node.op if node is folded.rows else Elementwise(MAGNITUDE)
        (value,) = body.add(operator, value, hints=node.hints, origin=origin)
    return op.around(body.finish(replace(op.body.outputs[0], value=value)))
