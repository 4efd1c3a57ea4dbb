"""Sums of scaled values whose scale waits for a magnitude of those.

A magnitude is the largest absolute value or the sum of all: no value is larger than it.

``rescale_by_magnitude.py`` gives the reasons of the conditions here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from blockbuster.ir.builder import rebuild
from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, call
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Accumulate
from blockbuster.ir.ports import select_results
from blockbuster.rules.base import name_of
from blockbuster.rules.beside import Waiting, waits_for_more
from blockbuster.rules.element_formulas import InBoth, in_both
from blockbuster.rules.laws import Question, Repaired, repaired, to_power
from blockbuster.rules.legality import first_iteration_gone, map_at
from blockbuster.rules.separate import POWERS, Separation
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
        yield repaired_by(degree, lead, port, alone, scale)


def other_axes(graph: Graph, lead: Value, scale: Value, alone: Node) -> str:
    """Each element of the scale must stand beside the one magnitude of what it scales."""
    if graph.type_of(scale) != graph.type_of(lead):
        return f"is scaled by {name_of(graph, scale)}, which has other axes than the magnitude"
    if not set(graph.type_of(lead).axes) <= set(alone.types[0].axes):
        return f"lacks an axis of {name_of(graph, lead)}"
    return ""


class Degree(NamedTuple):
    """A product has its scale c as c ** signed * |c| ** unsigned."""

    signed: float
    unsigned: float

    @property
    def power(self) -> float:
        """With which power of |c| it grows; or shrinks, if it ``divides`` by c."""
        return abs(self.signed + self.unsigned)

    @property
    def divides(self) -> bool:
        """True if the scale is what values are divided by."""
        return self.signed + self.unsigned < 0


def degree_in(both: InBoth) -> Degree | str:
    """The powers of the scale in what is added up, or why it cannot be scaled by a magnitude."""
    summand = both.all.summand(both.folded, both.late)
    found = degree_of(summand, both.late, both.all.reads)
    if isinstance(found, str):
        return f"waits for its scale and {found}"
    if not found.power or found.signed * found.unsigned < 0:
        return "does not grow or shrink with its scale"
    own, of_lead = _sizes(summand), _sizes(both.lead)
    shares = [own.get(base, 0) / power for base, power in of_lead.items()]
    if not shares or min(shares) < found.power:
        return "scales something else than what the magnitude is of"
    return found


def degree_of(expr: Expr, c: Arg, reads: Callable[[Expr, Expr], bool]) -> Degree | str:
    """The powers of ``c`` in a product of powers; or why it is none, as a predicate.

    ``reads(f, c)`` tells whether f depends on c. A root of what changes its sign with c is refused:
    with |c| it may be NaN.
    """
    for base in _sizes(expr):
        if base == c or not reads(base, c):
            continue
        match base:
            case Call("add" | "sub", _):
                return "adds terms that do not grow with it alike"
            case Call("where", _):
                return "hides it in where, and it may be infinite"
            case Call(fn, _):
                return f"takes {fn} of it"
        return "combines elements that are multiplied by it"
    if _takes_root_of_sign(expr, c):
        return "takes a root of what has its sign"
    powers = powers_in(expr)
    return Degree(powers.get(c, 0), powers.get(call("abs", c), 0))


def powers_in(expr: Expr) -> Mapping[Expr, float]:
    """The bases of a product and their powers; numbers and sizes are left out, and so are signs."""
    factor = Separation(frozenset(arguments(expr)), frozenset(), {}).factor(expr)
    return {**factor.powers, **{call("exp", term): n for term, n in factor.exponent.items()}}


def _sizes(expr: Expr) -> dict[Expr, float]:
    """The powers of the absolute values of bases."""
    found = dict[Expr, float]()
    for base, power in powers_in(expr).items():
        size = base.args[0] if isinstance(base, Call) and base.fn == "abs" else base
        found[size] = found.get(size, 0) + power
    return found


def _takes_root_of_sign(expr: Expr, c: Arg) -> bool:
    if not isinstance(expr, Call) or c.index not in arguments(expr):
        return False
    power = expr.args[1] if expr.fn == "pow" else Const(POWERS.get(expr.fn, 1))
    root = isinstance(power, Const) and power.value % 1 != 0
    odd = root and powers_in(expr.args[0]).get(c, 0) % 2 != 0
    return odd or any(_takes_root_of_sign(arg, c) for arg in expr.args)


def repaired_by(degree: Degree, lead: Value, port: int, alone: Node, scale: Value) -> Waiting:
    """The sum in the loop of its magnitude m, where 1 / m stands for the scale."""
    least, of_all = at_least(Arg(0)), at_least(Arg(1))
    in_loop = least if degree.divides else call("reciprocal", least)
    whole = call("div", of_all, Arg(2)) if degree.divides else call("mul", Arg(2), of_all)
    total: Expr = Arg(0)
    for base, power in ((whole, abs(degree.signed)), (call("abs", whole), abs(degree.unsigned))):
        if power:
            total = call("mul", total, to_power(base, power))
    return Waiting(
        lead.node, port, alone, (lead.port,), rescaled(degree),
        inside=((scale, lead.port, in_loop),), restored=total, outside=(scale,),
    )  # fmt: skip


def rescaled(degree: Degree) -> Expr:
    """What takes a partial sum from its own magnitude to that of both, by the law of factors."""
    of_elements = call("div", Arg(1), to_power(at_least(Arg(0)), degree.power))
    found = repaired(Question(of_elements, (0,), (1,), "+", {}))
    assert isinstance(found, Repaired)
    return found.h
