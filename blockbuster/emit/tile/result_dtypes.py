"""The dtype of an operator's result, from the dtypes of its operands.

- Operators that only move elements keep their dtype; a cast has its own.
- A comparison has truth values ("bool").
- Sums, differences, minima and maxima of indices and whole numbers are indices ("int"), so that
  comparisons of positions are exact.
- Arithmetic on integers has integers, in NumPy's common dtype of the operands; an index counts as
  int64 beside them. Their sums are int64.
- All other operators are arithmetic: float32, or float64 if that is the program's arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blockbuster.ir.dtypes import FLOAT8, INTEGERS, TRUTH
from blockbuster.ir.expr import BITWISE, PREDICATES, Arg, Call, Const, Expr, arguments, functions_of
from blockbuster.ir.ops import Cast, Functional, Op, Pointwise, Relabel, Scan, Transpose
from blockbuster.ir.regroup import Regroup

FLOAT = "float32"
SUMS = "int64"
"""What sums of integers are, and indices beside integers."""
INDEX = "int"
LITERAL, WHOLE = "a number", "a whole number"
"""Of constants inside an expression: they take the dtype of what they meet."""

WIDTHS = {
    **dict.fromkeys((TRUTH, INDEX, *INTEGERS), 0),
    **{FLOAT8: 1, "bfloat16": 2, "float16": 2, "float32": 3, "float64": 4},
}
"""The dtypes of tiles; every number of a narrower float is a number of a wider one."""

NEGATED = {"uint8": "int16", "int8": "int16", "int16": "int32"}
"""The dtypes of negated narrow integers, so that rules may make a difference a sum; a program's own
negation is cast back, and wraps.
"""

_KEEP_INDICES = ("add", "sub", "maximum", "minimum")
_KEEP_INTEGERS = (
    *_KEEP_INDICES, "mul", "neg", "abs", "square", "relu", "floordiv", "mod", "where", *BITWISE,
)  # fmt: skip
_EXACT = 1 << 53  # whole numbers below are exact as floats


def value_dtype(op: Op, operands: Sequence[str], arithmetic: str = FLOAT) -> str:
    """The dtype of what ``op`` gives for tiles of the dtypes ``operands``.

    >>> from blockbuster.ir.ops import Functional
    >>> value_dtype(Cast("float16"), ["float32"]), value_dtype(Functional("dot"), ["float16"] * 2)
    ('float16', 'float32')
    """
    match op:
        case Cast(dtype):
            return dtype
        case Transpose() | Relabel() | Regroup():
            return operands[0]
        case Pointwise(expr):
            found = expr_dtype(expr, operands, arithmetic)
            return arithmetic if found in (LITERAL, WHOLE) else found
        case Functional("row_sum" | "row_prod") | Scan("+" | "prod") if operands[0] in INTEGERS:
            return SUMS
        case Functional("row_max" | "row_min") | Scan() if operands[0] in INTEGERS:
            return operands[0]
    return arithmetic


def folded_dtype(monoid: str, values: Sequence[str]) -> str:
    """The dtype of an accumulator into which integers alone are folded; else empty.

    >>> folded_dtype("+", ["int8", "int8"]), folded_dtype("max", ["int8"])
    ('int64', 'int8')
    """
    if not values or any(value not in INTEGERS for value in values):
        return ""
    return SUMS if monoid in ("+", "prod") else _met(values)


def expr_dtype(expr: Expr, operands: Sequence[str], arithmetic: str = FLOAT) -> str:
    """The dtype of a scalar expression; ``LITERAL`` or ``WHOLE`` for a constant."""
    match expr:
        case Arg(index):
            return operands[index]
        case Const(value):
            return literal_dtype(value)
        case Call(fn, args):
            return call_dtype(fn, [expr_dtype(a, operands, arithmetic) for a in args], arithmetic)
    return arithmetic


def holds_integers(expr: Expr, operands: Sequence[str]) -> bool:
    """True if ``expr`` makes integers of operands of these dtypes, or some part of it does.

    >>> from blockbuster.ir.expr import call
    >>> holds_integers(call("exp", call("whole", Arg(0))), [FLOAT])
    True
    """
    integers = any(operands[at] in INTEGERS for at in arguments(expr))
    return integers or "whole" in functions_of(expr)


def literal_dtype(value: float) -> str:
    """``WHOLE`` or ``LITERAL``: no integer is -0.0, which tracing adds to make integers floats.

    >>> literal_dtype(3.0), literal_dtype(-0.0)
    ('a whole number', 'a number')
    """
    whole = abs(value) < _EXACT and float(value).is_integer() and str(float(value)) != "-0.0"
    return WHOLE if whole else LITERAL


def call_dtype(fn: str, operands: Sequence[str], arithmetic: str = FLOAT) -> str:
    """The dtype of what a scalar function gives.

    >>> call_dtype("add", [INDEX, WHOLE]), call_dtype("mul", [INDEX, WHOLE])
    ('int', 'float32')
    """
    if fn in PREDICATES:
        return TRUTH
    if fn == "whole":
        return SUMS
    numbers = operands[fn == "where" :]
    if fn in _KEEP_INTEGERS and any(dtype in INTEGERS for dtype in numbers):
        if fn == "neg" and numbers[0] in NEGATED:
            return NEGATED[numbers[0]]
        return _met(numbers) if are_whole(numbers) else arithmetic
    if fn in _KEEP_INDICES and INDEX in operands and are_indices(operands):
        return INDEX
    return arithmetic


def are_whole(dtypes: Sequence[str]) -> bool:
    """True for integers, indices, whole numbers and truth values."""
    return all(dtype in (INDEX, WHOLE, TRUTH, *INTEGERS) for dtype in dtypes)


def _met(dtypes: Sequence[str]) -> str:
    """The dtype where integers meet; a whole number has the dtype of what it meets."""
    if INDEX in dtypes:
        return SUMS
    return np.result_type(*(np.dtype(dtype) for dtype in dtypes if dtype in INTEGERS)).name


def are_indices(dtypes: Sequence[str]) -> bool:
    """True for indices and whole numbers, which are added and compared as integers."""
    return all(dtype in (INDEX, WHOLE) for dtype in dtypes)
