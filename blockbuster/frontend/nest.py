"""Nested maps with one operator inside: the block program of one primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Expr, call
from blockbuster.ir.graph import Value
from blockbuster.ir.ops import (
    ROW_FOLDS,
    Collect,
    Elementwise,
    Functional,
    Map,
    Op,
    Pointwise,
    Reduce,
)
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, Type


class Named(NamedTuple):
    """A value with the word it prints under."""

    value: Value
    hint: str


Leaf = Callable[[Builder, Sequence[Named]], Value]
"""Adds the ops of the innermost body for its items; returns the result."""


def nest(
    builder: Builder,
    dims: Sequence[Dim],
    operands: Sequence[Named],
    leaf: Leaf,
    *,
    hint: str,
    origin: Origin,
) -> Value:
    """Maps over ``dims``, outermost first, around ``leaf``.

    At each level the operands that are lists over its dim are iterated, the others passed whole.
    """
    if not dims:
        return leaf(builder, operands)
    dim, *inner = dims
    body = Builder()
    iterated, items = [], []
    for operand in operands:
        type = builder.type_of(operand.value)
        iterated.append(type.lists[:1] == (dim,))
        item = body.input(type.element() if iterated[-1] else type, hint=operand.hint)
        items.append(Named(item, operand.hint))
    result = nest(body, inner, items, leaf, hint=hint, origin=origin)
    op = Map(dim, body.finish(result), tuple(iterated), (Collect(),))
    return builder.add(op, *(o.value for o in operands), hints=(hint,), origin=origin)[0]


def apply_op(types: Sequence[Type], expr: Expr, axes: tuple[Dim, ...]) -> tuple[Op, list[int]]:
    """The op that computes ``expr`` on local items, and the order in which it takes them.

    Table 1's operators are used under their names wherever they fit, because rules match them.
    """
    match expr:
        case Call(fn, (Arg(0), Arg(1))) if len(types) == 2:
            left, right = (t.axes for t in types)
            if left == right == axes and fn in ("add", "sub", "mul", "div"):
                return Functional(fn), [0, 1]
            if fn in ("add", "mul") and len(axes) == 2:
                found = _broadcast_op(fn, left, right, axes)
                if found:
                    return found
    if types and all(t.axes == axes for t in types):
        return Elementwise(expr), list(range(len(types)))
    return Pointwise(expr, axes), list(range(len(types)))


def _broadcast_op(
    fn: str, left: tuple[Dim, ...], right: tuple[Dim, ...], axes: tuple[Dim, ...]
) -> tuple[Op, list[int]] | None:
    """A sum or product of a block and a vector, or a product of two vectors."""
    verb = "shift" if fn == "add" else "scale"
    for order, block, vector in (([0, 1], left, right), ([1, 0], right, left)):
        if block == axes and vector in (axes[:1], axes[1:]):
            side = "row" if vector == axes[:1] else "col"
            return Functional(f"{side}_{verb}"), order
        if fn == "mul" and block == axes[:1] and vector == axes[1:]:
            return Functional("outer"), order
    return None


def apply_leaf(expr: Expr, axes: tuple[Dim, ...], *, hint: str, origin: Origin) -> Leaf:
    """The leaf of a pointwise op whose result items have ``axes``."""

    def leaf(body: Builder, items: Sequence[Named]) -> Value:
        op, order = apply_op([body.type_of(i.value) for i in items], expr, axes)
        operands = [items[i].value for i in order]
        return body.add(op, *operands, hints=(hint,), origin=origin)[0]

    return leaf


def op_leaf(op: Op, *, hint: str, origin: Origin) -> Leaf:
    """The leaf that applies one op to the items in order."""

    def leaf(body: Builder, items: Sequence[Named]) -> Value:
        return body.add(op, *(i.value for i in items), hints=(hint,), origin=origin)[0]

    return leaf


def fold_leaf(monoid: str, dim: Dim, *, hint: str, origin: Origin) -> Leaf:
    """The leaf that folds a list over ``dim``, first along the rows of items that have the axis."""

    def leaf(body: Builder, items: Sequence[Named]) -> Value:
        (listed,) = (i.value for i in items)
        if dim in body.type_of(listed).axes:
            rows = op_leaf(Functional(ROW_FOLDS[monoid]), hint=hint, origin=origin)
            listed = nest(body, (dim,), items, rows, hint=hint, origin=origin)
        return body.add(Reduce(dim, monoid), listed, hints=(hint,), origin=origin)[0]

    return leaf




def contract_leaf(dim: Dim | None, axes: tuple[Dim, ...], *, hint: str, origin: Origin) -> Leaf:
    """The leaf of a matrix product over ``dim``: its operands list [m,k] and [n,k] items.

    Two blocks make a dot. Where a side has no row axis the product is a scaled block, or a
    product of vectors, summed along its rows. Without a ``dim`` nothing is summed.
    """
    product = call("mul", Arg(0), Arg(1))

    def inside(body: Builder, items: Sequence[Named]) -> Value:
        assert dim is not None
        a, b = (body.type_of(i.value).axes for i in items)
        if len(a) == len(b) == 2:
            order = items if (a[0], b[0]) == axes else items[::-1]
            return op_leaf(Functional("dot"), hint=hint, origin=origin)(body, order)
        scaled = apply_leaf(product, (*axes, dim), hint="t", origin=origin)(body, items)
        return body.add(Functional("row_sum"), scaled, hints=(hint,), origin=origin)[0]

    def leaf(body: Builder, items: Sequence[Named]) -> Value:
        if dim is None:
            return apply_leaf(product, axes, hint=hint, origin=origin)(body, items)
        listed = nest(body, (dim,), items, inside, hint=hint, origin=origin)
        return body.add(Reduce(dim, "+"), listed, hints=(hint,), origin=origin)[0]

    return leaf
