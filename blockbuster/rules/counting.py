"""Values that count: made of numbers and conditions alone, they and their sums are exact."""

from __future__ import annotations

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import PREDICATES, Arg, Call, Expr
from blockbuster.ir.graph import Node, Value
from blockbuster.ir.ops import Elementwise, Functional, Pointwise

COUNTING = ("add", "sub", "neg", "mul", "where")


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
            indexes = _indexes(expr)
            return None if indexes is None else [node.operands[index] for index in indexes]
        case Functional("row_sum"):
            return list(node.operands)
    return None


def _indexes(expr: Expr) -> list[int] | None:
    if isinstance(expr, Arg):
        return [expr.index]
    if not isinstance(expr, Call) or expr.fn in PREDICATES:
        return []
    if expr.fn not in COUNTING:
        return None
    parts = [_indexes(arg) for arg in (expr.args[1:] if expr.fn == "where" else expr.args)]
    found = [part for part in parts if part is not None]
    return [index for part in found for index in part] if len(found) == len(parts) else None
