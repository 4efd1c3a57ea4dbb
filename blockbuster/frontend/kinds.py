"""The kind of each array of a program: floating-point numbers, a mask, or integers.

A kind is "float" (of the floating dtype for which the program is compiled), "mask" (truth values),
the name of an integer dtype, or "index": positions along dims, their sums and choices among them.
Integers keep NumPy's dtypes: two of them have NumPy's common dtype, a Python int takes the dtype of
the array beside it, indices are int64, and so are sums. Beside floats, integers become floats.

Kernels compute with indices in int32, or in float32 beside sizes, which is exact below 2**24;
with other integers they compute in their own dtypes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import Refused
from blockbuster.ir.dtypes import INTEGERS, TRUTH
from blockbuster.ir.expr import BITWISE, PREDICATES

FLOAT, MASK, INDEX, POSITION = "float", "mask", "index", "int64"
KINDS = (FLOAT, MASK, INDEX, *INTEGERS)
WHOLES = (INDEX, *INTEGERS)
"""The kinds of integers."""

SCALAR, WHOLE, TRUE = "scalar", "whole", "truth"
"""Of operands that are no arrays: floats, ints and sizes, True and False."""

LOGICAL = ("and", "or", "not")
MOVES = (
    "transpose", "expand", "slice", "strided", "windows", "reshape",
)  # fmt: skip
WHOLE_NUMBERS = (
    "add", "sub", "mul", "neg", "abs", "square", "maximum", "minimum", "where", "relu", "sum",
    "max", "min", "concat", "floordiv", "mod", "matmul", "cumsum", "cumprod", "cummax", "cummin",
    *BITWISE,
)  # fmt: skip
"""Operations that give integers for integers; all others give floats, or masks."""

GROWING = ("mul", "square", "floordiv", "mod", "pow", "matmul", *BITWISE)
"""Of indices, these are more than indices: numbers may get large."""

OF_MASKS: Mapping[str, str] = {"add": "or", "mul": "and", "maximum": "or", "minimum": "and"}
"""What arithmetic on masks alone is, in NumPy as here."""


def kind_of_dtype(dtype: str) -> str:
    """The kind of an input of a dtype; empty stands for floats. Raises Refused for other dtypes."""
    if dtype == TRUTH:
        return MASK
    if dtype in INTEGERS:
        return dtype
    if dtype and "float" not in dtype:
        known = f"arrays are of floats, bool, {', '.join(INTEGERS)}"
        if "complex" in dtype:
            known = "take the real and the imaginary part apart: w.real and w.imag are arrays"
        wider = "torch computes nothing in it: a wider one holds its numbers\n"
        hint = f"{wider if dtype[0] == 'u' else ''}{known}"
        raise Refused(f"an array of {dtype} cannot be traced", hint)
    return FLOAT


def dtype_of_kind(kind: str) -> str:
    """The dtype that arrays of a kind have; empty for floats, which have the program's."""
    return {MASK: TRUTH, INDEX: POSITION, FLOAT: ""}.get(kind, kind)


def scalar_kind(value: object) -> str:
    """The kind of an operand that is no array: a number, an array of one number, or a size."""
    dtype = getattr(value, "dtype", None)
    if isinstance(value, bool) or (dtype is not None and dtype.kind == "b"):
        return TRUE
    if isinstance(value, SizeExpr):
        return WHOLE if value.is_whole else SCALAR
    whole = isinstance(value, int) or (dtype is not None and dtype.kind in "iu")
    return WHOLE if whole else SCALAR


def result_kind(op: str, kinds: Sequence[str]) -> str:
    """The kind of what ``op`` gives for operands of these kinds.

    Raises Refused if masks are wanted and numbers given, or numbers wanted that masks are not.
    """
    if op in LOGICAL and any(kind not in (MASK, TRUE) for kind in kinds):
        raise Refused("and, or and not combine masks", "compare first: (x > 0) & (y > 0)")
    if op == "where" and kinds[0] not in (MASK, TRUE):
        hint = "compare first: bb.where(x > 0, x, y)"
        raise Refused("the condition of where is not a mask", hint)
    if op in PREDICATES:
        return MASK
    if op in MOVES or (op == "concat" and len(set(kinds)) == 1):
        return kinds[0]
    if op == "arange":
        return INDEX
    if op == "whole":
        return POSITION
    if op in ("neg", "sub") and all(kind in (MASK, TRUE) for kind in kinds):
        instead = "use ~mask" if op == "neg" else "use mask != other, or mask & ~other"
        raise Refused("NumPy neither negates nor subtracts masks", instead)
    if op in ("floordiv", "mod") and any(kind in (FLOAT, SCALAR) for kind in kinds):
        hint = "make them integers, or use / and bb.floor"
        raise Refused("// and % are for integers; x % 1 and other powers of 2 for floats", hint)
    if op == "sum" and kinds[0] in (MASK, *WHOLES):
        return POSITION
    return _met(op, kinds[op == "where" :]) if op in WHOLE_NUMBERS else FLOAT


def _met(op: str, kinds: Sequence[str]) -> str:
    """Where operands of arithmetic meet; True and False count as masks, Python's ints as ints."""
    if any(kind in (FLOAT, SCALAR) for kind in kinds):
        return FLOAT
    integers = [kind for kind in kinds if kind in INTEGERS]
    if not integers:
        return POSITION if MASK in kinds or op in GROWING else INDEX
    wide = [POSITION] if INDEX in kinds else []
    return np.result_type(*map(np.dtype, (*integers, *wide))).name
