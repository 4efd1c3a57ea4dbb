"""The dtype that a library gives where arrays meet operands whose dtype counts more or less.

Arrays meet as ``value_dtypes.py`` and ``kinds.py`` say. Two sorts of operands are different:

- A scalar or array of one element that a function reads becomes a number of the program. NumPy's
  has a dtype that counts (its NEP 50), torch's if it has axes, or meets tensors without axes.
- A tensor without axes does not count beside tensors with axes, unless it is a float and they are
  integers.

A wider dtype is that of the operands, which are cast before they meet; a narrower one is that of
the result, but integers wrap before they meet. Inputs that are described by dims have no dtype that
is known, and no library computes with float8: in programs of these, all meet as they are.

Python's own integers take the dtype of integers beside them. One that it does not hold wraps in
torch, and is refused in NumPy, as it is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.frontend.array import TracedArray, array_at
from blockbuster.frontend.contractions import equation_of
from blockbuster.frontend.dtype_names import dtype_name
from blockbuster.frontend.in_place import common_dtype
from blockbuster.frontend.kinds import (
    FLOAT,
    INDEX,
    MASK,
    MOVES,
    SCALAR,
    WHOLE_NUMBERS,
    dtype_of_kind,
    result_kind,
    scalar_kind,
)
from blockbuster.frontend.numerics import nearest
from blockbuster.frontend.source import Refused
from blockbuster.ir.dtypes import FLOAT8, INTEGERS, OWN, TRUTH, met
from blockbuster.ir.expr import FUNCTIONS, PREDICATES
from blockbuster.ir.graph import Value

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace


CHOICES = ("maximum", "minimum", "where", "abs", "neg", "relu", "max", "min")
"""Functions whose results are elements of their operands, or those without or with a sign."""

OF_OURS = ("rsqrt", "sigmoid", "silu", "gelu", "relu", "erf", "reciprocal")
"""Functions of one number that make wide floats of narrow integers, as their texts in NumPy do."""


@dataclass(frozen=True)
class _Typed:
    """An operand with a dtype; ``number``: the scalar or array that is a number of the program."""

    dtype: str
    has_axes: bool
    number: Any = None

    @property
    def stand_in(self) -> Any:
        """What NumPy takes for the operand to find the dtype of a result."""
        array = np.empty((0,) if self.has_axes else (), self.dtype)
        return array if self.number is None else self.number


def promoted(trace: Trace, op: str, operands: Sequence[Any]) -> tuple[Sequence[Any], str]:
    """The operands, cast if a library would, and a dtype to cast the result to, or ""."""
    first = int(op == "where")
    held = [_held(trace, op, operands[first:], number) for number in operands[first:]]
    numbers = _as_elements(op, held)
    operands = [*operands[:first], *numbers]
    if op == "where" and not any(isinstance(number, TracedArray) for number in numbers):
        return operands, _of_choice(trace, operands[0], numbers)
    if op not in FUNCTIONS or not _may_differ(trace, numbers):
        return operands, ""
    now, wanted = _now_and_wanted(trace, op, [_typed(trace, number) for number in numbers])
    if now == wanted:
        return operands, ""
    if now and met([now, wanted]) == now and op not in PREDICATES and wanted not in INTEGERS:
        return operands, wanted
    cast = [_cast(number, wanted) for number in numbers]
    return [*operands[:first], *cast], ""


def floats_of_integers(trace: Trace, op: str, operands: Sequence[Any]) -> Sequence[Any]:
    """The operands; if ``op`` makes floats of integers or masks alone, cast to the default floats.

    Not in programs whose inputs are described by dims, nor if all operands are positions or masks
    that are computed of positions: those take the dtype of the operands that they meet later.
    Masks need no cast if all floats that the program reads have the default dtype. NumPy's
    functions of one array make narrow floats of narrow integers.
    """
    arrays = [n for n in operands[op == "where" :] if isinstance(n, TracedArray)]
    if op == "cast" or FLOAT in (x.kind for x in arrays) or not _reads_numbers(trace, arrays):
        return operands
    kinds = [n.kind if isinstance(n, TracedArray) else scalar_kind(n) for n in operands]
    dtype = _default(trace)
    if op in FUNCTIONS and op not in OF_OURS and len(operands) == 1 and not trace.of_tensors:
        dtype = np.result_type(dtype_of_kind(arrays[0].kind), np.float16).name
    needless = common_dtype(trace) == dtype and {x.kind for x in arrays} <= {MASK, INDEX}
    if needless or result_kind(op, kinds) != FLOAT:
        return operands
    return [_cast(n, dtype) if any(n is x for x in arrays) else n for n in operands]


def _default(trace: Trace) -> str:
    """The dtype of floats that the library makes of other numbers."""
    return "float32" if trace.of_tensors else "float64"


def _reads_numbers(trace: Trace, arrays: Sequence[TracedArray]) -> bool:
    """True if an array is computed of elements of inputs that have a dtype."""
    given = [x for x in arrays if x.kind != FLOAT] if trace.of_tensors or trace.of_arrays else []
    return any(map(_reads_an_input, given))


def _of_choice(trace: Trace, condition: Any, numbers: Sequence[Any]) -> str:
    """The dtype to which a choice among numbers is cast, or ""."""
    held = isinstance(condition, TracedArray) and _reads_numbers(trace, [condition])
    if not held or SCALAR not in map(scalar_kind, numbers):
        return ""
    typed = [one for number in numbers if (one := _typed(trace, number)) is not None]
    dtype = _in_library(trace, typed) if typed else _default(trace)
    return "" if dtype == common_dtype(trace) else dtype


def _reads_an_input(x: TracedArray) -> bool:
    """False for what is computed of positions alone."""
    (_, equations), reading = x.trace.recorded, x.trace.reading

    def reads(value: Value) -> bool:
        return value.node < 0 or reading[value.node]

    for equation in equations[len(reading) : x.value.node + 1]:
        reading.append(any(map(reads, equation.arrays)))
    return reads(x.value)


def counts_as_input(x: TracedArray) -> TracedArray:
    """``x``, computed of positions in place of an array that the function holds."""
    _reads_an_input(x)
    x.trace.reading[x.value.node] = True
    return x


def _held(trace: Trace, op: str, numbers: Sequence[Any], number: Any) -> Any:
    """``number``; a Python int that the integers beside it do not hold wraps, or is refused."""
    wraps = op in WHOLE_NUMBERS or (op in PREDICATES and trace.of_tensors)
    if type(number) is not int or not wraps:
        return number
    kinds = {n.kind for n in numbers if isinstance(n, TracedArray)}
    if not kinds or not kinds <= {*INTEGERS} or any(isinstance(n, float) for n in numbers):
        return number
    dtype = met(kinds)
    ends = np.iinfo(dtype)
    if ends.min <= number <= ends.max:
        return number
    if not trace.of_tensors:
        raise Refused(f"{number} is no {dtype}", "make the array wider: x.astype(np.int64)")
    return (number - int(ends.min)) % (1 << ends.bits) + int(ends.min)


def _as_elements(op: str, numbers: Sequence[Any]) -> Sequence[Any]:
    """Numbers as 16-bit floats hold them, where they become, or are compared with, elements.

    Sums and products take a number as it is: both libraries compute them in float32.
    """
    if op not in ("where", "maximum", "minimum", *PREDICATES):
        return numbers
    arrays = [x for x in numbers if isinstance(x, TracedArray) and x.kind == FLOAT]
    if op in PREDICATES and not all(map(_is_stored, arrays)):
        return numbers  # what is computed has more digits than 16 bits hold
    dtype = met(dtype_name(x) for x in arrays)
    if not arrays or dtype not in ("float16", "bfloat16"):
        return numbers
    return [nearest(n, dtype) if type(n) is float else n for n in numbers]


def _is_stored(x: TracedArray) -> bool:
    """True for inputs, for what was cast, and for what is chosen among such elements."""
    seen, left = {x.value}, [x]
    while left:
        one = left.pop()
        equation = equation_of(one)
        if equation is None or equation.op == "cast" or one.kind != FLOAT:
            continue
        if equation.op not in (*MOVES, *CHOICES):
            return False
        left += [array_at(x.trace, value) for value in equation.arrays if value not in seen]
        seen.update(equation.arrays)
    return True


def _may_differ(trace: Trace, numbers: Sequence[Any]) -> bool:
    """True if an operand has a dtype of its own, or tensors with axes meet some without."""
    if any(not isinstance(n, TracedArray) and hasattr(n, "dtype") for n in numbers):
        return True
    if any(one.dtype == FLOAT8 for one in trace.recorded[0]):
        return False
    ranks = {bool(n.ndim) for n in numbers if isinstance(n, TracedArray)}
    return trace.of_tensors and len(ranks) > 1


def _now_and_wanted(trace: Trace, op: str, operands: Sequence[_Typed | None]) -> tuple[str, str]:
    """The dtype in which the arrays among operands meet, and a library's; "" if there is none.

    Beside arrays of floats, integers do not count.
    """
    typed = [one for one in operands if one is not None]
    floats = [one for one in typed if one.dtype not in OWN]
    arrays = [one for one in typed if one.number is None]
    if "" in (one.dtype for one in typed):
        return "", ""
    met_floats = [one.dtype for one in arrays if one in floats]
    if met_floats:
        return met(met_floats), _in_library(trace, floats)
    if floats:
        return "", _in_library(trace, typed)
    if op not in (*WHOLE_NUMBERS, *PREDICATES):
        return "", ""
    return met(one.dtype for one in arrays), _in_library(trace, typed)


def _typed(trace: Trace, operand: Any) -> _Typed | None:
    if isinstance(operand, TracedArray):
        dtype = dtype_name(operand) if operand.kind == FLOAT else dtype_of_kind(operand.kind)
        return _Typed(dtype, bool(operand.ndim))
    if not hasattr(operand, "dtype") or (trace.of_tensors and isinstance(operand, np.generic)):
        return None  # one of Python's own numbers; torch takes NumPy's scalars as such
    return _Typed(str(operand.dtype), bool(operand.ndim), operand)


def _in_library(trace: Trace, typed: Sequence[_Typed]) -> str:
    """The dtype of what NumPy or torch makes of operands of these dtypes."""
    only_torchs = any(one.dtype in ("bfloat16", FLOAT8) for one in typed)
    if not (trace.of_tensors or only_torchs):
        return np.result_type(*(one.stand_in for one in typed)).name
    with_axes = met(one.dtype for one in typed if one.has_axes)
    without = met(one.dtype for one in typed if not one.has_axes)
    return with_axes if _category(with_axes) >= _category(without) else met([with_axes, without])


def _category(dtype: str) -> int:
    """Truth values, integers and floats: the lower ones give way."""
    return 0 if dtype == TRUTH else 1 if dtype in INTEGERS else 2


def _cast(number: Any, dtype: str) -> Any:
    return number.astype(dtype) if isinstance(number, TracedArray) else number
