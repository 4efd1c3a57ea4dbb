"""Operations on masks and integers, rewritten as other operations, to keep their number small.

Arithmetic on masks alone is logic, as in NumPy; a maximum of masks is taken of 0 and 1. An integer
beside a float, even beside a plain 2.0, becomes a float first.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Mapping, Sequence
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
)
from blockbuster.frontend.operation import Operation, Recognizer, kind_of
from blockbuster.frontend.pooled import POOLED, as_factors, as_pool
from blockbuster.frontend.promotion import counts_as_input
from blockbuster.frontend.remainders import remainder, whole_part
from blockbuster.frontend.repeated import beside_others
from blockbuster.frontend.split_parts import of_split_axis
from blockbuster.frontend.written_out import as_one_loop
from blockbuster.ir.dtypes import INTEGERS, OWN, TRUTH
from blockbuster.ir.expr import FUNCTIONS, Size
from blockbuster.ir.lengths import whole

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace


LOOKED_THROUGH = (
    "abs", "add", "cast", "div", "erf", "exp", "expand", "gt", "log", "log1p", "max", "maximum",
    "mean", "min", "minimum", "mul", "neg", "reshape", "sigmoid", "strided", "sum", "transpose",
    "where",
)  # fmt: skip
"""Operations that may be needless once what reads them is recorded as something else."""


def _in_own_dtype(asked: Operation) -> TracedArray | None:
    """A cast to masks or integers: numbers are cut, as NumPy cuts them."""
    trace, (x,), dtype = asked.trace, asked.operands, asked.params["dtype"]
    if dtype not in OWN:
        return None
    if dtype == TRUTH:
        return trace.record("ne", (x, 0))
    return trace.integers(whole_part(x) if x.kind == FLOAT else x, dtype)


def _rounded(asked: Operation) -> TracedArray | None:
    """Integers rounded to whole numbers."""
    trace, (x, *_), (kind, *_) = asked.trace, asked.operands, asked.kinds
    return trace.integers(x, dtype_of_kind(kind)) if kind in WHOLES else None


def _of_several_kinds(asked: Operation) -> TracedArray | None:
    """A join in which all pieces have one kind: each may be read by itself, and has to have it."""
    trace, op, operands, params, kinds = asked
    if len({*kinds}) < 2 or not (FLOAT in kinds or MASK in kinds):
        return None
    return trace.record(op, [_joined(trace, x, kinds) for x in operands], params)


def _of_elements(asked: Operation) -> TracedArray | None:
    """A product of matrices of which one has a single column and the other a single row, as one of
    elements, which fuses with what is computed of them.
    """
    a, b = asked.operands
    sums_one = asked.kinds == [FLOAT, FLOAT] and min(a.ndim, b.ndim) > 1
    return asked.trace.record("mul", (a, b)) if sums_one and a.axes[-1] == 1 == b.axes[-2] else None


def _contracted(asked: Operation) -> TracedArray | None:
    return contracted(asked, einsum_traced) if {*asked.kinds} == {FLOAT} else None


def _joined(trace: Trace, x: TracedArray, kinds: Sequence[str]) -> TracedArray:
    """An array as it is joined to others: as floats if any are, masks as integers beside integers.
    """
    if FLOAT in kinds:
        return x if x.kind == FLOAT else trace.beside_floats(x)
    return trace.integers(x, dtype_of_kind(result_kind("concat", kinds))) if x.kind == MASK else x


def _integer(trace: Trace, operand: Any, dtype: str) -> Any:
    """A mask as integers, a truth value as 0 or 1."""
    if isinstance(operand, TracedArray):
        return trace.integers(operand, dtype)
    return int(operand)


def _of_masks(asked: Operation) -> TracedArray | None:
    """Arithmetic on masks alone, as NumPy has it."""
    trace, op, operands, params, kinds = asked
    numbers = kinds[op == "where" :]
    if MASK not in numbers or any(kind not in (MASK, TRUE) for kind in numbers):
        return None
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
        if kinds[0] not in (MASK, TRUE):
            return None  # refused in a moment
        there = trace.record("and", (condition, x))
        elsewhere = trace.record("and", (trace.record("not", (condition,)), y))
        return trace.record("or", (there, elsewhere))
    if op in ("max", "min", "matmul"):
        counts = [trace.record("add", (operand, 0)) for operand in operands]
        return trace.record("ne", (trace.record(op, counts, params), 0))
    return None


def _beside_scalars(asked: Operation) -> TracedArray | None:
    """Integers beside a plain float, as floats."""
    trace, op, operands, params, kinds = asked
    numbers = kinds[op == "where" :]
    is_integer = [kind in INTEGERS for kind in kinds]
    if SCALAR not in numbers or FLOAT in numbers or not any(is_integer):
        return None
    pairs = zip(operands, is_integer, strict=True)
    return trace.record(op, [trace.floats(x) if whole else x for x, whole in pairs], params)


RECOGNIZERS: tuple[tuple[Collection[str], Recognizer], ...] = (
    (("cast",), _in_own_dtype),
    (("floor", "round"), _rounded),
    (SIGNS, of_bits),
    (("pow",), integer_power),
    (("slice",), of_split_axis),
    (("mod",), remainder),
    (("concat",), _of_several_kinds),
    (("concat",), as_one_loop),
    (("matmul",), _of_elements),
    (("add",), as_choice),
    (SUMS, in_groups),
    (BY_HAND, as_function),
    (POOLED, as_pool),
    (("prod",), as_factors),
    (("sum", "matmul"), _contracted),
    ((*OF_MASKS, "abs", "square", "floordiv", "mod", "where", "max", "min", "matmul"), _of_masks),
    (WHOLE_NUMBERS, _beside_scalars),
    (FUNCTIONS, beside_others),
)
"""What is recorded as others: by operation, in this order. The first that applies is taken."""


def otherwise(
    trace: Trace, op: str, operands: Sequence[Any], params: Mapping[str, Any]
) -> TracedArray | None:
    """The operation recorded as others, where it is one of those; else None."""
    asked = Operation(trace, op, operands, params, [kind_of(operand) for operand in operands])
    found = (recognizer(asked) for ops, recognizer in RECOGNIZERS if op in ops)
    return next((made for made in found if made is not None), None)


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
