"""Which values cannot be negative, or cannot be positive, whatever the inputs are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Const, Expr, Size, call
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import (
    Cast,
    Collect,
    Elementwise,
    Functional,
    Map,
    Pointwise,
    Relabel,
    Transpose,
)
from blockbuster.rules.by_dim import SCALAR_FUNCTIONS


class Sign(NamedTuple):
    """``above``: never negative; ``below``: never positive; both: 0."""

    above: bool
    below: bool

    @property
    def known(self) -> bool:
        """True if no two elements have opposite signs."""
        return self.above or self.below


ANY, ABOVE = Sign(False, False), Sign(True, False)


def sign_of(builder: Builder, value: Value, given: Mapping[Value, Sign]) -> Sign:
    """The sign of ``value``, from what makes it at this level, and from those of ``given`` values.

    Other inputs may have any.
    """
    found = dict(given)
    todo = [value]
    while todo:
        top = todo[-1]
        node = builder.maker_of(top)
        waiting = [v for v in node.operands if v not in found] if node and top not in found else []
        if waiting and node and _is_followed(node):
            todo += waiting
            continue
        todo.pop()
        found.setdefault(top, _of_node(node, found) if node else ANY)
    return found[value]


def signs_given(graph: Graph, position: int) -> dict[Value, Sign]:
    """Of the inputs of the body of the map at ``position``, those that maps make item by item."""
    node = graph.nodes[position]
    found: dict[Value, Sign] = {}
    for port, value in enumerate(node.operands):
        maker = graph.nodes[value.node].op if value.node >= 0 else None
        if isinstance(maker, Map) and maker.results[value.port] == Collect():
            body = maker.body
            found[Value(-1, port)] = sign_of(Builder(body), body.outputs[value.port].value, {})
    return found


def _is_followed(node: Node) -> bool:
    return isinstance(node.op, Elementwise | Pointwise | Functional | Cast | Relabel | Transpose)


def _of_node(node: Node, found: Mapping[Value, Sign]) -> Sign:
    if not _is_followed(node):
        return ANY
    given = [found[value] for value in node.operands]
    match node.op:
        case Elementwise(expr) | Pointwise(expr, _):
            return of_expression(expr, given)
        case Functional("dot"):
            return _product(given)
        case Functional(name) if name in SCALAR_FUNCTIONS:
            return of_expression(call(SCALAR_FUNCTIONS[name], Arg(0), Arg(1)), given)
    return given[0]  # of a row reduction, a cast, or another order


def of_expression(expr: Expr, given: Sequence[Sign]) -> Sign:
    """The sign of an expression of operands with these signs."""
    match expr:
        case Arg(index):
            return given[index]
        case Const(value):
            return Sign(value >= 0, value <= 0)
        case Size():
            return ABOVE
    if expr.fn in NEVER_NEGATIVE:
        return ABOVE
    parts = [of_expression(arg, given) for arg in expr.args]
    return RULES[expr.fn](parts) if expr.fn in RULES else ANY


def _negated(parts: Sequence[Sign]) -> Sign:
    return Sign(*parts[-1][::-1])


def _product(parts: Sequence[Sign]) -> Sign:
    a, b = parts
    return Sign(
        (a.above and b.above) or (a.below and b.below),
        (a.above and b.below) or (a.below and b.above),
    )


def _all(parts: Sequence[Sign]) -> Sign:
    return Sign(all(p.above for p in parts), all(p.below for p in parts))


def _larger(parts: Sequence[Sign]) -> Sign:
    return Sign(any(p.above for p in parts), all(p.below for p in parts))


NEVER_NEGATIVE = frozenset(
    (
        "exp", "square", "abs", "relu", "sigmoid", "sqrt", "rsqrt",
        "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not",
    )
)  # fmt: skip

RULES: Mapping[str, Callable[[Sequence[Sign]], Sign]] = {
    "add": _all, "where": lambda parts: _all(parts[1:]), "neg": _negated,
    "sub": lambda parts: _all([parts[0], _negated(parts)]),
    "mul": _product, "div": _product, "maximum": _larger,
    "reciprocal": lambda parts: parts[0], "recip0": lambda parts: parts[0],
}  # fmt: skip
