"""Operations on masks and integers, rewritten as other operations, to keep their number small.

Arithmetic on masks alone is logic, as in NumPy; a maximum of masks is taken of 0 and 1. An integer
beside a float, even beside a plain 2.0, becomes a float first.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from blockbuster.frontend.added_masks import as_choice
from blockbuster.frontend.array import TracedArray, cast_dtype
from blockbuster.frontend.bits import SIGNS, of_bits
from blockbuster.frontend.by_hand import BY_HAND, as_function
from blockbuster.frontend.conditions import Condition, Ends
from blockbuster.frontend.contractions import contracted
from blockbuster.frontend.distances import Distance
from blockbuster.frontend.functions.einsum import einsum_traced
from blockbuster.frontend.in_groups import SUMS, in_groups
from blockbuster.frontend.in_place import common_dtype
from blockbuster.frontend.integer_powers import integer_power
from blockbuster.frontend.kinds import (
    FLOAT,
    MASK,
    OF_MASKS,
    POSITION,
    SCALAR,
    TRUE,
    WHOLE_NUMBERS,
    WHOLES,
    dtype_of_kind,
    result_kind,
    scalar_kind,
)
from blockbuster.frontend.pooled import POOLED, as_factors, as_pool
from blockbuster.frontend.promotion import counts_as_input
from blockbuster.frontend.remainders import remainder, whole_part
from blockbuster.frontend.sizes import scalar
from blockbuster.frontend.split_parts import of_split_axis
from blockbuster.frontend.written_out import as_one_loop
from blockbuster.ir.dtypes import INTEGERS, OWN, TRUTH
from blockbuster.ir.expr import Size
from blockbuster.ir.lengths import whole

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace


LOOKED_THROUGH = (
    "abs", "add", "cast", "div", "erf", "exp", "expand", "gt", "log", "log1p", "max", "maximum",
    "mean", "min", "minimum", "mul", "neg", "reshape", "sigmoid", "strided", "sum", "transpose",
    "where",
)  # fmt: skip
"""Operations that may be needless once what reads them is recorded as something else."""


def otherwise(
    trace: Trace, op: str, operands: Sequence[Any], params: Mapping[str, Any]
) -> TracedArray | None:
    """The operation recorded as others, where it is one of those; else None."""
    kinds = [_kind(operand) for operand in operands]
    if op == "cast" and params["dtype"] in OWN:
        return _cast(trace, operands[0], params["dtype"])
    if kinds[:1] and kinds[0] in WHOLES and op in ("floor", "round"):
        return trace.integers(operands[0], dtype_of_kind(kinds[0]))
    if op in SIGNS and (combined := of_bits(trace, op, operands, kinds)) is not None:
        return combined
    if op == "pow" and (power := integer_power(trace, operands, kinds)) is not None:
        return power
    if op == "slice" and (place := of_split_axis(trace, operands[0], params)) is not None:
        return place
    if op == "mod" and (left := remainder(trace, operands)) is not None:
        return left
    if op == "concat" and len(set(kinds)) > 1 and (FLOAT in kinds or MASK in kinds):
        return trace.record(op, [_joined(trace, x, kinds) for x in operands], params)
    if op == "concat" and (loop := as_one_loop(trace, operands, params)) is not None:
        return loop
    if op == "matmul" and kinds == [FLOAT, FLOAT] and _sums_one_product(*operands):
        return trace.record("mul", operands)
    if op == "add" and (choice := as_choice(trace, operands)) is not None:
        return choice
    if op in SUMS and (grouped := in_groups(trace, op, operands)) is not None:
        return grouped
    if op in BY_HAND and (known := as_function(trace, op, operands)) is not None:
        return known
    if op in POOLED and (pool := as_pool(trace, op, operands, params)) is not None:
        return pool
    if op == "prod" and (factors := as_factors(trace, operands, params)) is not None:
        return factors
    if op in ("sum", "matmul") and {*kinds} == {FLOAT}:
        return contracted(op, operands, params, einsum_traced)
    numbers = kinds[op == "where" :]
    if MASK in numbers and all(kind in (MASK, TRUE) for kind in numbers):
        return _of_masks(trace, op, operands, params)
    if op in WHOLE_NUMBERS and SCALAR in numbers and FLOAT not in numbers:
        made = [
            trace.floats(operand) if kind in INTEGERS else operand
            for operand, kind in zip(operands, kinds, strict=True)
        ]
        changed = any(kind in INTEGERS for kind in kinds)
        return trace.record(op, made, params) if changed else None
    return None


def _sums_one_product(a: TracedArray, b: TracedArray) -> bool:
    """True for matrices of which one has a single column and the other a single row: their product
    is one of elements, which fuses with what is computed of them.
    """
    return min(a.ndim, b.ndim) > 1 and a.axes[-1] == 1 == b.axes[-2]


def _kind(operand: Any) -> str:
    if isinstance(operand, TracedArray):
        return operand.kind
    known = hasattr(operand, "dtype") or scalar(operand) is not None
    return scalar_kind(operand) if known else ""


def _cast(trace: Trace, x: TracedArray, dtype: str) -> TracedArray:
    """``x`` as a mask, or as integers: numbers are cut, as NumPy cuts them."""
    if dtype == TRUTH:
        return trace.record("ne", (x, 0))
    if x.kind == FLOAT:
        x = whole_part(x)
    return trace.integers(x, dtype)


def _joined(trace: Trace, x: TracedArray, kinds: Sequence[str]) -> TracedArray:
    """An array as it is joined to others: as floats if any are, masks as integers beside integers.

    Each piece may be read by itself, and has to have the kind of them all.
    """
    if FLOAT in kinds:
        return x if x.kind == FLOAT else trace.beside_floats(x)
    return trace.integers(x, dtype_of_kind(result_kind("concat", kinds))) if x.kind == MASK else x


def _integer(trace: Trace, operand: Any, dtype: str) -> Any:
    """A mask as integers, a truth value as 0 or 1."""
    if isinstance(operand, TracedArray):
        return trace.integers(operand, dtype)
    return int(operand)


def _of_masks(
    trace: Trace, op: str, operands: Sequence[Any], params: Mapping[str, Any]
) -> TracedArray | None:
    if op in OF_MASKS:
        return trace.record(OF_MASKS[op], operands)
    if op == "abs":
        return trace.record("and", (*operands, *operands))
    if op == "square":
        return trace.integers(operands[0], POSITION if trace.of_tensors else "int8")
    if op in ("floordiv", "mod"):
        dtype = POSITION if trace.of_tensors else "int8"
        return trace.record(op, [_integer(trace, operand, dtype) for operand in operands])
    if op == "where":
        condition, x, y = operands
        if _kind(condition) not in (MASK, TRUE):
            return None  # refused in a moment
        there = trace.record("and", (condition, x))
        elsewhere = trace.record("and", (trace.record("not", (condition,)), y))
        return trace.record("or", (there, elsewhere))
    if op in ("max", "min", "matmul"):
        numbers = [trace.record("add", (operand, 0)) for operand in operands]
        return trace.record("ne", (trace.record(op, numbers, params), 0))
    return None


def from_positions(
    trace: Trace, array: Any, given: Condition | Distance | TracedArray | float, ends: Ends
) -> TracedArray | None:
    """An array that holds a mask, a table or one number, computed from positions, or a mask from
    truth values in memory: true where the condition holds, and of floats the first of ``ends``
    there and the second elsewhere. None for a number in another dtype than the inputs have: cast,
    it would be no number around what it is joined to.
    """
    dtype = cast_dtype(array.dtype)
    if isinstance(given, float):
        if dtype != common_dtype(trace):
            return None
        inside = [place >= 0 for place in _places(trace, array) if isinstance(place, TracedArray)]
        return trace.record("where", (functools.reduce(operator.and_, inside), given, given))
    if isinstance(given, Distance):
        made = given.at(*_places(trace, array)[-2:])
        if dtype in INTEGERS:
            return counts_as_input(trace.integers(made, dtype))
    else:
        is_true: TracedArray = (
            given.holds(*_places(trace, array)[-2:]) if isinstance(given, Condition) else given
        )
        if dtype == TRUTH:
            return is_true
        made = trace.record("where", (is_true, *ends))
    return trace.record("cast", (made,), {"dtype": dtype})


def _places(trace: Trace, array: Any) -> list[Any]:
    """The positions along each axis of ``array``, of two at least: 0 along axes of one element."""
    shape = tuple(int(extent) for extent in array.shape)
    key = object()  # dims of this array alone
    axes = [trace.dims.derived(whole(n), key, at) for at, n in enumerate(shape)]
    places: list[Any] = [0] * max(2, len(axes))
    for at, axis in enumerate(axes):
        if isinstance(axis, str):
            index = trace.record("arange", (), {"size": Size(axis)})
            keys = tuple(slice(None) if one == at else None for one in range(len(axes)))
            places[at - len(axes)] = index[keys]
    return places
