"""Scalar functions of blocks, vectors and numbers whose axes are matched by dim.

Rules look for functional operators. So a block times a vector of its rows becomes a row_scale, and
only a function that no functional operator expresses becomes a pointwise operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Expr, arguments, rewrite
from blockbuster.ir.graph import Value
from blockbuster.ir.ops import Elementwise, Functional, Op, Pointwise
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim

SCALAR_FUNCTIONS = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "outer": "mul",
    "row_shift": "add", "row_scale": "mul", "col_shift": "add", "col_scale": "mul",
}  # fmt: skip
"""What functional operators of Table 1 do to one element."""

BY_VECTOR = {"add": "shift", "mul": "scale"}


def by_dim(
    builder: Builder,
    expr: Expr,
    operands: Sequence[Value] | Mapping[int, Value],
    axes: tuple[Dim, ...],
    origin: Origin,
    hints: tuple[str, ...] = (),
) -> Value:
    """The value of ``expr``, which has arguments, over those of ``axes`` that its operands have."""
    if isinstance(expr, Arg):
        return operands[expr.index]
    local, used = packed(expr)
    read = [operands[index] for index in used]
    shown = [builder.type_of(value).axes for value in read]
    result = tuple(dim for dim in axes if any(dim in each for each in shown))
    op, order = _operator(local, shown, result)
    return builder.add(op, *(read[at] for at in order), hints=hints, origin=origin)[0]


def packed(expr: Expr) -> tuple[Expr, tuple[int, ...]]:
    """``expr`` with its arguments numbered as they come, and the numbers that they had."""
    used = arguments(expr)
    place = {index: Arg(at) for at, index in enumerate(used)}
    return rewrite(expr, lambda e: place[e.index] if isinstance(e, Arg) else e), used


def _operator(
    expr: Expr, shown: Sequence[tuple[Dim, ...]], result: tuple[Dim, ...]
) -> tuple[Op, Sequence[int]]:
    """The operator for ``expr`` over operands of axes ``shown``, and the order of its operands."""
    if isinstance(expr, Call) and expr.args == (Arg(0), Arg(1)):
        for order in ((0, 1), (1, 0)) if expr.fn in BY_VECTOR else ((0, 1),):
            name = _functional(expr.fn, shown[order[0]], shown[order[1]], result)
            if name:
                return Functional(name), order
    same = all(each == result for each in shown)
    return Elementwise(expr) if same else Pointwise(expr, result), range(len(shown))


def _functional(
    fn: str, first: tuple[Dim, ...], second: tuple[Dim, ...], result: tuple[Dim, ...]
) -> str:
    """The functional operator that applies ``fn`` to such operands in this order, or ""."""
    if first == second == result:
        return fn if fn in ("add", "sub", "mul", "div") else ""
    if len(result) != 2 or fn not in BY_VECTOR or len(second) != 1:
        return ""
    if first == result:
        return f"{'row' if second == result[:1] else 'col'}_{BY_VECTOR[fn]}"
    return "outer" if fn == "mul" and (*first, *second) == result else ""
