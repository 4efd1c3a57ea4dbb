"""Random programs whose maps fold groups: results that are rescaled by another result, the lead.

No operator of an array program makes a group; rules do, when a fold joins the loop of the extremum
that it waits for. So every rule must expect a group in any map. ``with_groups`` adds groups to the
maps of any program: beside a planted site of a rule, and led by the results that the rule changes.
"""

from __future__ import annotations

import math
from random import Random

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Const, Expr, call, rewrite
from blockbuster.ir.graph import Graph, Output, Value
from blockbuster.ir.ops import (
    Accumulate,
    Elementwise,
    Functional,
    Map,
    Pointwise,
    Rescale,
    Result,
)
from blockbuster.ir.parse import parse
from blockbuster.testing.planted import planted

Folded = tuple[Value, Result]
"""A value of a map's body, and how the map folds it."""

AT_LEAD = call("where", call("eq", Arg(1), Arg(2)), Arg(0), Const(math.inf))
"""The factor of a minimum at the places of an extremum: other partial results become neutral."""
BY_RATIO = call("mul", Arg(0), call("div", Arg(1), Arg(2)))
"""The factor of a sum of terms that are divided by the lead."""
BY_EXP = call("mul", Arg(0), call("exp", call("sub", Arg(1), Arg(2))))
"""The factor of a sum of significands, whose exponent is the lead."""


def beside_groups(site: str, random: Random) -> Graph:
    """A random program with a planted site, some of whose maps fold groups, too."""
    return planted(with_groups(parse(site), random).show(), random)


def with_groups(graph: Graph, random: Random) -> Graph:
    """``graph`` with a group in about half of its maps; the program returns what they give."""
    edit, ends, instead = Builder(graph), [*graph.outputs], dict[Value, Value]()
    for position, op in graph.of_type(Map):
        body = Builder(op.body)
        group = [] if op.start or random.random() < 0.5 else _group(op, body, random)
        if not group:
            continue
        outputs = (*op.body.outputs, *(Output(value) for value, _ in group))
        results = (*op.results, *(result for _, result in group))
        node, count = graph.nodes[position], len(op.results)
        larger = Map(op.dim, body.finish(*outputs), op.iterated, results)
        operands = [instead.get(value, value) for value in node.operands]
        made = edit.add(larger, *operands, hints=node.hints, origin=node.origin)
        instead |= {Value(position, port): made[port] for port in range(count)}
        ends += [Output(made[count + at]) for at in range(len(group)) if _leaves(group[at], random)]
    edit.redirect_all([*instead], [*instead.values()])
    ends = [end.of(instead.get(end.value, end.value)) for end in ends]
    random.shuffle(ends)
    return edit.finish(*ends)


def _leaves(folded: Folded, random: Random) -> bool:
    """Members leave the program; a lead often serves its group alone."""
    return isinstance(folded[1], Rescale) or random.random() < 0.4


def _group(op: Map, body: Builder, random: Random) -> list[Folded]:
    """A member led by a fold that the map has, or a lead with a member; nothing if neither fits."""
    folds = [port for port, result in enumerate(op.results) if isinstance(result, Accumulate)]
    if folds and random.random() < 0.5:
        return [_led_by(op, random.choice(folds), random)]
    axes = {value: op.body.type_of(value).axes for value in _items(op.body)}
    rows = [value for value in axes if axes[value][-1:] == (op.dim,)]
    if not rows:
        return []
    row = random.choice(rows)
    (largest,) = body.add(Functional("row_max"), row)
    there = call("where", call("eq", Arg(0), Arg(1)), call("mul", Arg(0), 2), Const(math.inf))
    (found,) = body.add(Pointwise(there, axes[row]), row, largest)
    (least,) = body.add(Functional("row_min"), found)
    return [(largest, Accumulate("max")), (least, Rescale("min", (len(op.results),), AT_LEAD))]


def _led_by(op: Map, port: int, random: Random) -> Folded:
    """A member that is rescaled by the fold ``port`` of the map."""
    value = op.body.outputs[port].value
    lead = {*op.body.type_of(value).axes}
    types = {value: op.body.type_of(value) for value in (value, *_items(op.body))}
    members = [v for v, type in types.items() if op.dim not in type.axes and lead <= {*type.axes}]
    sums = op.results[port] == Accumulate("+")
    factor = random.choice((BY_RATIO, BY_EXP)) if sums else AT_LEAD
    return random.choice(members), Rescale("+" if sums else "min", (port,), factor)


def _items(body: Graph) -> list[Value]:
    """The items among the values of a body, as far as none is infinite: products with those are
    undefined in exact arithmetic.
    """
    values = [Value(-1, port) for port in range(len(body.inputs))]
    if math.inf not in _constants(body):
        for at, node in enumerate(body.nodes):
            values += [Value(at, port) for port in range(len(node.types))]
    return [value for value in values if not body.type_of(value).buffered]


def _constants(body: Graph) -> list[float]:
    """The absolute values of the numbers in a body."""
    found: list[float] = []

    def note(expr: Expr) -> Expr:
        found.extend([abs(expr.value)] if isinstance(expr, Const) else [])
        return expr

    for node in body.nodes:
        if isinstance(node.op, Elementwise | Pointwise):
            rewrite(node.op.expr, note)
    return found
