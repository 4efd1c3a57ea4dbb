"""Maps of a largest absolute value, and the factors that may leave them.

``scale_out_of_magnitude.py`` gives the reasons of the conditions here. Exponentials may be anywhere
in e: ``safe`` takes |S exp(t)| as |S| exp(t), so such a maximum has a running exponent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Expr, call
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Accumulate, Elementwise, Map
from blockbuster.ir.origin import Origin
from blockbuster.rules.affine import Affine
from blockbuster.rules.base import maker_of, name_of
from blockbuster.rules.element_formulas import applies, before_rows, scalar_of
from blockbuster.rules.laws import OUT_OF_MAGNITUDES
from blockbuster.rules.legality import first_iteration_gone, map_at
from blockbuster.rules.linear_expressions import NotAffine
from blockbuster.rules.shared_factor import made_here, sharing

MAGNITUDE = call("abs", Arg(0))

# The pattern: a largest absolute value, and a factor that waits for another map ---------------


class Largest(NamedTuple):
    """The node that takes absolute values, of ``expr``, and the one that folds rows, if any."""

    node: Node
    expr: Expr
    rows: Node | None


def largest(op: Map) -> Largest | None:
    """The absolute values of which a map's only result is the largest."""
    if op.results != (Accumulate("max"),):
        return None
    value, rows = before_rows(op.body, op.body.outputs[0].value, "max")
    node = maker_of(op.body, value)
    match scalar_of(node) if node else None:
        case Call("abs", (expr,)):
            assert node is not None
            return Largest(node, expr, rows)
    return None


class Late(NamedTuple):
    """The port of a factor, and the maps that it waits for with which the map shares a list."""

    port: int
    awaited: tuple[int, ...]


def late(graph: Graph, position: int) -> Iterator[Late]:
    """The operands of a map that could be the one thing that keeps it from another map."""
    others = tuple(dict.fromkeys(sharing(graph, position)))
    for port in made_here(graph, position) if others else ():
        maker = graph.nodes[position].operands[port].node
        awaited = tuple(other for other in others if graph.reaches(other, maker))
        if awaited:
            yield Late(port, awaited)


# Conditions: why a factor stays ------------------------------------------------------------


def why_it_stays(graph: Graph, position: int, found: Late) -> str:
    """Why a factor stays in a map, or ""."""
    return (
        no_root(graph, graph.nodes[position].operands[found.port])
        or first_iteration_gone(graph, position)
        or changes_along_the_fold(graph, position, found.port)
        or waits_all_the_same(graph, position, found)
        or no_product(map_at(graph, position), found.port)
    )


def no_root(graph: Graph, factor: Value) -> str:
    """``OUT_OF_MAGNITUDES`` says which factors may leave, or their reciprocals."""
    expr = scalar_of(graph.nodes[factor.node])
    if isinstance(expr, Call) and expr.fn == "reciprocal":
        (expr,) = expr.args
    root = isinstance(expr, Call) and expr.fn in OUT_OF_MAGNITUDES
    return "" if root else "it is no root, and without it values could leave the range of floats"


def changes_along_the_fold(graph: Graph, position: int, port: int) -> str:
    """The factor must be one number for all that a result is the largest of."""
    node = graph.nodes[position]
    lost = [dim for dim in graph.type_of(node.operands[port]).axes if dim not in node.types[0].axes]
    return f"it changes along {lost[0]}, which is folded" if lost else ""


def waits_all_the_same(graph: Graph, position: int, found: Late) -> str:
    """With one of the maps that the factor waits for, no other operand may be in between."""
    node, op = graph.nodes[position], map_at(graph, position)
    between: list[Value] = []
    for other in found.awaited:
        kept = [
            value
            for port, value in enumerate(node.operands)
            if port != found.port and value.node >= 0
            if graph.reaches(other, value.node) or (value.node == other and not op.iterated[port])
        ]
        if not kept:
            return ""
        between += kept
    return f"{name_of(graph, between[0])} waits for the same loop"


def no_product(op: Map, port: int) -> str:
    """The factor times values that are there without it is what absolute values are of."""
    try:
        _followed(op, port, Origin())
    except NotAffine as reason:
        return str(reason)
    return ""


def _followed(op: Map, port: int, origin: Origin) -> tuple[Builder, Value]:
    """The edited body, and a value of it: the factor times that is what absolute values are of.

    Raises NotAffine where it is no such product.
    """
    folded, factor = largest(op), Value(-1, port)
    assert folded is not None
    found = Affine.of(op.body, factor, origin)
    if any(_selects(node, found) for node in op.body.nodes):
        raise NotAffine("where can hide it, and it may be infinite")
    parts = found.of_expression(folded.expr, folded.node)
    if parts is None:
        raise NotAffine("nothing depends on it")
    if parts.rest is not None:
        raise NotAffine("a sum of it and others")
    slope = parts.slope
    if not isinstance(slope, Value) or found.builder.type_of(slope) != folded.node.types[0]:
        raise NotAffine("the rest of the product has fewer axes")
    return found.builder, slope


def _selects(node: Node, found: Affine) -> bool:
    """True if a node has a ``where`` and reads what depends on the factor."""
    read = any(value in found.parts for value in node.operands)
    return read and applies(node, "where")


def unscaled(op: Map, port: int, origin: Origin) -> Map:
    """The map without the factor."""
    folded, (body, value) = largest(op), _followed(op, port, origin)
    assert folded is not None
    for node in filter(None, (folded.node, folded.rows)):
        operator = node.op if node is folded.rows else Elementwise(MAGNITUDE)
        (value,) = body.add(operator, value, hints=node.hints, origin=origin)
    return op.around(body.finish(replace(op.body.outputs[0], value=value)))
