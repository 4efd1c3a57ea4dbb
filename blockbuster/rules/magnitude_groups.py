"""Sums of scaled values whose scale waits for a magnitude of those.

A magnitude is the largest absolute value or the sum of all: no value is larger than it.

``rescale_by_magnitude.py`` gives the reasons of the conditions here.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.builder import rebuild
from blockbuster.ir.expr import Arg, Call, Expr, call
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Accumulate
from blockbuster.ir.ports import select_results
from blockbuster.rules.base import name_of
from blockbuster.rules.beside import Waiting, waits_for_more
from blockbuster.rules.element_formulas import InBoth, in_both
from blockbuster.rules.laws import Question, Repaired, repaired, to_power
from blockbuster.rules.legality import first_iteration_gone, map_at
from blockbuster.rules.monomials import Monomial, NotProductError, Products
from blockbuster.rules.shared_factor import made_here, sharing

LEAST = 1e-30
"""The least magnitude to divide by: its inverse, times numbers as usual, is no infinity.

What is divided by it instead of by a smaller magnitude, down to the least subnormal float32, keeps
its digits through a square.
"""


def at_least(magnitude: Expr) -> Expr:
    """A magnitude that can be divided by."""
    return call("maximum", magnitude, LEAST)


def scaled(graph: Graph, position: int) -> Iterator[Waiting | str]:
    """The sums of a map that can run beside a magnitude; else the reason, in words."""
    node = graph.nodes[position]
    for first in dict.fromkeys(sharing(graph, position)):
        for lead in _magnitudes(graph, first):
            for port in made_here(graph, position):
                scale = node.operands[port]
                if scale == lead or graph.reaches(first, scale.node):
                    yield from _of_scale(graph, position, lead, scale)


def _magnitudes(graph: Graph, first: int) -> Iterator[Value]:
    """The results of a map that are magnitudes if what they fold are absolute values."""
    op = map_at(graph, first)
    for port, result in enumerate(op.results):
        if result in (Accumulate("max"), Accumulate("+")) and not op.start:
            yield Value(first, port)


def _of_scale(graph: Graph, position: int, lead: Value, scale: Value) -> Iterator[Waiting | str]:
    node, op = graph.nodes[position], map_at(graph, position)
    if gone := first_iteration_gone(graph, position):
        yield gone
        return
    for port, result in enumerate(op.results):
        alone = select_results(node, (port,), rebuild)[0]
        if result != Accumulate("+") or scale not in alone.operands:
            continue
        both = in_both(graph, lead, scale, alone)
        if not isinstance(both.lead, Call) or both.lead.fn != "abs":
            continue
        more = waits_for_more(graph, lead.node, scale, alone)
        degree = more or other_axes(graph, lead, scale, alone) or degree_in(both)
        if isinstance(degree, str):
            yield f"{name_of(graph, Value(position, port))} {degree}"
            continue
        ports, inside = (lead.port,), ((scale, lead.port, inverse(degree, at_least(Arg(0)))),)
        restored = restored_from(degree, Arg(0), Arg(2), at_least(Arg(1)))
        yield Waiting(
            lead.node, port, alone, ports, rescaled(degree), inside,
            restored=restored, outside=(scale,),
        )  # fmt: skip


def other_axes(graph: Graph, lead: Value, scale: Value, alone: Node) -> str:
    """Each element of the scale must stand beside the one magnitude of what it scales."""
    if graph.type_of(scale) != graph.type_of(lead):
        return f"is scaled by {name_of(graph, scale)}, which has other axes than the magnitude"
    if not set(graph.type_of(lead).axes) <= set(alone.types[0].axes):
        return f"lacks an axis of {name_of(graph, lead)}"
    return ""


def degree_in(both: InBoth) -> Monomial | str:
    """The powers of the scale in what is added up, or why it cannot be scaled by a magnitude."""
    products = Products(both.late, both.all.reads)
    try:
        found = products.of(both.all.summand(both.folded, both.late))
    except NotProductError as reason:
        return f"waits for its scale and {reason}"
    power = abs(found.signed + found.unsigned)
    if not power or found.signed * found.unsigned < 0:
        return "does not grow or shrink with its scale"
    if not found.covers(products.of(both.lead), power):
        return "scales something else than what the magnitude is of"
    return found


def inverse(degree: Monomial, magnitude: Expr) -> Expr:
    """What stands for the scale in the loop, of the magnitude of a block."""
    return magnitude if _divides(degree) else call("reciprocal", magnitude)


def restored_from(degree: Monomial, total: Expr, scale: Expr, magnitude: Expr) -> Expr:
    """The sum from that of the loop, its scale, and the magnitude of all blocks."""
    divides = _divides(degree)
    whole = call("div", magnitude, scale) if divides else call("mul", scale, magnitude)
    for base, power in ((whole, abs(degree.signed)), (call("abs", whole), abs(degree.unsigned))):
        if power:
            total = call("mul", total, to_power(base, power))
    return total


def _divides(degree: Monomial) -> bool:
    """True if the scale is what values are divided by."""
    return degree.signed + degree.unsigned < 0


def rescaled(degree: Monomial) -> Expr:
    """What takes a partial sum from its own magnitude to that of both, by the law of factors."""
    power = abs(degree.signed + degree.unsigned)
    of_elements = call("div", Arg(1), to_power(at_least(Arg(0)), power))
    found = repaired(Question(of_elements, (0,), (1,), "+", {}))
    assert isinstance(found, Repaired)
    return found.h
