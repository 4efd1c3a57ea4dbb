"""The dtype of what an operator gives, from those of its operands.

- What only moves elements keeps their dtype; a cast has its own.
- A comparison gives truth values ("bool").
- Sums, differences and the larger or smaller of indices and whole numbers are indices ("int"):
  places compare exactly.
- All else is arithmetic: float32, or float64 where a program's arithmetic is that.
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.emit.tile.value_dtypes import TRUTH
from blockbuster.ir.expr import PREDICATES, Arg, Call, Const, Expr
from blockbuster.ir.ops import Cast, Op, Pointwise, Relabel, Transpose

FLOAT = "float32"
INDEX = "int"
LITERAL, WHOLE = "a number", "a whole number"
"""Of constants inside an expression: they take the dtype of what they meet."""

WIDTHS = {TRUTH: 0, INDEX: 0, "bfloat16": 1, "float16": 1, "float32": 2, "float64": 3}
"""The dtypes of tiles; every number of a narrower one is a number of a wider one."""

_KEEP_INDICES = ("add", "sub", "maximum", "minimum")
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
        case Transpose() | Relabel():
            return operands[0]
        case Pointwise(expr):
            found = expr_dtype(expr, operands, arithmetic)
            return arithmetic if found in (LITERAL, WHOLE) else found
    return arithmetic


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


def literal_dtype(value: float) -> str:
    """``WHOLE`` or ``LITERAL``."""
    whole = abs(value) < _EXACT and float(value).is_integer()
    return WHOLE if whole else LITERAL


def call_dtype(fn: str, operands: Sequence[str], arithmetic: str = FLOAT) -> str:
    """The dtype of what a scalar function gives.

    >>> call_dtype("add", [INDEX, WHOLE]), call_dtype("mul", [INDEX, WHOLE])
    ('int', 'float32')
    """
    if fn in PREDICATES:
        return TRUTH
    if fn in _KEEP_INDICES and INDEX in operands and are_indices(operands):
        return INDEX
    return arithmetic


def are_indices(dtypes: Sequence[str]) -> bool:
    """True for indices and whole numbers, which are added and compared as integers."""
    return all(dtype in (INDEX, WHOLE) for dtype in dtypes)
