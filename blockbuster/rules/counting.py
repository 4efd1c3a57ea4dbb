"""Counting values: values computed from numbers and conditions only, not from data."""

from __future__ import annotations

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import PREDICATES, Arg, Call, Expr
from blockbuster.ir.graph import Node, Value
from blockbuster.ir.ops import Elementwise, Functional, Pointwise


def counts(builder: Builder, value: Value) -> bool:
    """True if ``value`` is made, at this level, of numbers and conditions alone."""
    todo, seen = [value], {value}
    while todo:
        node = builder.maker_of(todo.pop())
        read = None if node is None else _counted(node)
        if read is None:
            return False
        todo += [each for each in read if each not in seen]
        seen.update(read)
    return True


def _counted(node: Node) -> list[Value] | None:
    """The operands that must count for a node to count; None if it does not whatever they do."""
    match node.op:
        case Elementwise(expr) | Pointwise(expr, _):
            return [node.operands[index] for index in _indexes(expr)]
        case Functional("row_sum"):
            return list(node.operands)
    return None


def _indexes(expr: Expr) -> list[int]:
    """The operands of an expression that no condition hides."""
    if isinstance(expr, Arg):
        return [expr.index]
    if not isinstance(expr, Call) or expr.fn in PREDICATES:
        return []
    parts = expr.args[1:] if expr.fn == "where" else expr.args
    return [index for part in parts for index in _indexes(part)]
