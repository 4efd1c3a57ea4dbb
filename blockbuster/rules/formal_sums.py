"""Exponents as sums of values; a value is split into terms if a part of it cancels another term.

    t + r with r = -m            under  t - m,  of which m cancels if another term has it
    c = -(log(s) + t), t + c     is     -log(s)

A value that was computed as a sum or difference stays one term unless splitting lets a term cancel:
(a - b) + c is rounded once less than a - b + c, and a - b is exact if a is near b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Const, Expr
from blockbuster.ir.graph import Value
from blockbuster.rules.element_formulas import scalar_of
from blockbuster.rules.pairs import Terms, joined

SIGNS = {"add": (1.0, 1.0), "sub": (1.0, -1.0), "neg": (-1.0,)}


@dataclass(frozen=True)
class Part:
    """A part of a sum that is no value of its own: ``expr`` of a node's operands."""

    expr: Expr
    operands: tuple[Value, ...]


Sum = dict["Value | Part", float]
"""Coefficients of what a value is the sum of."""


def sum_of(builder: Builder, value: Value) -> Sum:
    """The sum that computes ``value`` at this level; the value itself if it is not a sum."""
    found: Sum = {}
    todo: list[tuple[float, Value | Part]] = [(1.0, value)]
    while todo:
        sign, part = todo.pop()
        inner = _addends(part) if isinstance(part, Part) else _addends_of(builder, part)
        if inner is None:
            found[part] = found.get(part, 0.0) + sign
        else:
            todo += [(sign * s, p) for s, p in reversed(inner)]
    return {part: coefficient for part, coefficient in found.items() if coefficient}


def _addends_of(builder: Builder, value: Value) -> list[tuple[float, Value | Part]] | None:
    node = builder.maker_of(value)
    if node is None or any(builder.type_of(v) != node.types[0] for v in node.operands):
        return None  # what is broadcast has fewer elements than its sum
    expr = scalar_of(node)
    return None if expr is None else _addends(Part(expr, node.operands))


def _addends(part: Part) -> list[tuple[float, Value | Part]] | None:
    if not isinstance(part.expr, Call):
        return None
    signs = SIGNS.get(part.expr.fn)
    given = part.expr.args
    if part.expr.fn == "mul" and isinstance(given[1], Const):
        signs, given = (given[1].value,), given[:1]
    if signs is None:
        return None

    def addend(expr: Expr) -> Value | Part:
        return part.operands[expr.index] if isinstance(expr, Arg) else Part(expr, part.operands)

    return [*zip(signs, map(addend, given), strict=True)]


def cancelled(builder: Builder, terms: Terms, made: Callable[[Part], Value]) -> Terms:
    """``terms``, those taken apart of which a part cancels; ``made`` gives the value of a part."""
    apart = _apart(builder, terms)
    gone = {part for part, coefficient in _total(apart).items() if coefficient == 0}
    if not gone:
        return terms
    whole = tuple((c, v) for c, v, parts in apart if gone.isdisjoint(parts))
    taken = _total([each for each in apart if not gone.isdisjoint(each[2])])
    left = [(c, made(p) if isinstance(p, Part) else p) for p, c in taken.items() if c]
    return joined(whole, tuple(left))


Apart = list[tuple[float, Value, Sum]]


def _apart(builder: Builder, terms: Terms) -> Apart:
    return [(coefficient, value, sum_of(builder, value)) for coefficient, value in terms]


def _total(apart: Apart) -> Sum:
    total: Sum = {}
    for coefficient, _, parts in apart:
        for part, inner in parts.items():
            total[part] = total.get(part, 0.0) + coefficient * inner
    return total
