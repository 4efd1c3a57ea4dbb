"""Sums that NumPy need not write out: elements picked by position, and products with a vector.

    sum(where(at == arange(n), x, 0))      the elements of x at the positions ``at``
    sum(x * w)                             x @ w, where w is one row for all rows of x; or w @ x,
                                           where it is one column for all columns

Tracing writes both as sums, because kernels of blocks compute them so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from blockbuster.frontend.kinds import FLOAT, WHOLES
from blockbuster.frontend.program import ArrayProgram, Axis, Equation
from blockbuster.ir.expr import Const
from blockbuster.ir.graph import Value

PICK, CONTRACT = "pick", "contract"
"""The names of both as operators. One reads x and the positions, the other x and the row."""

Alone = Callable[[object], Equation | None]
"""The equation of a value that nothing else reads; else None."""


def pattern(
    program: ArrayProgram, fold: Equation, axis: int, alone: Alone, made: Mapping[Value, Equation]
) -> tuple[Equation, tuple[Value, ...]] | None:
    """A sum along an axis as one of both, and the values that need not be computed; None if it is
    neither.
    """
    inner = alone(fold.operands[0])
    if fold.op != "sum" or inner is None:
        return None
    if inner.op == "where":
        return _picked(program, fold, inner, axis, alone, made)
    if inner.op == "mul" and axis >= len(inner.shape) - 2:
        return _contracted(program, fold, inner, axis)
    return None


def _picked(
    program: ArrayProgram,
    fold: Equation,
    chosen: Equation,
    axis: int,
    alone: Alone,
    made: Mapping[Value, Equation],
) -> tuple[Equation, tuple[Value, ...]] | None:
    mask, x, other = chosen.operands
    compared = alone(mask)
    if compared is None or compared.op != "eq" or other != Const(0.0):
        return None
    if not isinstance(x, Value) or program.shape_of(x) != chosen.shape:
        return None
    for at, lanes in (compared.operands, compared.operands[::-1]):
        if not isinstance(at, Value) or not _counts(program, lanes, axis, chosen, made):
            continue
        row = _aligned(program, at, len(chosen.shape))
        if row[axis] == 1 and program.kind_of(at) in WHOLES:
            params = (("axis", axis), ("keepdims", bool(fold.param("keepdims"))))
            assert isinstance(mask, Value)
            picked = replace(fold, op=PICK, operands=(x, at), params=params)
            return picked, (_value(fold.operands[0]), mask)
    return None


def _counts(
    program: ArrayProgram,
    lanes: object,
    axis: int,
    chosen: Equation,
    made: Mapping[Value, Equation],
) -> bool:
    """True for 0, 1, 2, ... along an axis, the same for all others."""
    if not isinstance(lanes, Value):
        return False
    row = _aligned(program, lanes, len(chosen.shape))
    one = made.get(lanes)
    while one is not None and one.op == "expand":
        one = made.get(_value(one.operands[0]))
    along = [extent for extent in row if extent != 1] == [chosen.shape[axis]]
    return one is not None and one.op == "arange" and along and row[axis] != 1


def _contracted(
    program: ArrayProgram, fold: Equation, product: Equation, axis: int
) -> tuple[Equation, tuple[Value, ...]] | None:
    """A product with a vector along ``axis``, one of the last two."""
    rank = len(product.shape)
    if rank < 2 or not all(isinstance(o, Value) for o in product.operands):
        return None
    other = 2 * rank - 3 - axis
    for x, row in (product.operands, product.operands[::-1]):
        x, row = _value(x), _value(row)
        wide, narrow = _aligned(program, x, rank), _aligned(program, row, rank)
        floats = program.kind_of(x) == program.kind_of(row) == FLOAT
        summed = wide[axis] == narrow[axis] != 1
        if floats and summed and narrow[other] == 1 != wide[other]:
            params = (("axis", axis), ("keepdims", bool(fold.param("keepdims"))))
            made = replace(fold, op=CONTRACT, operands=(x, row), params=params)
            return made, (_value(fold.operands[0]),)
    return None


def _aligned(program: ArrayProgram, value: Value, rank: int) -> tuple[Axis, ...]:
    """The shape of a value as it meets arrays of a rank."""
    shape = program.shape_of(value)
    return (*[1] * (rank - len(shape)), *shape)


def _value(operand: object) -> Value:
    assert isinstance(operand, Value)
    return operand
