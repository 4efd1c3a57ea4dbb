"""Changes in place: Python's ``+=`` and the like, ``out=``, ``inplace=True``, torch's ``add_``.

The result is computed as a new array and written to the memory of the array that changes
(``memory.py``), whose shape and dtype it takes. What NumPy and torch refuse is refused: a result of
another shape, and one that would be cast to another kind, such as floats to integers.

NumPy's numbers, which ``x.sum()`` and ``x[0]`` of a vector are, do not change: ``s += 1`` makes
another number for the name ``s``. NumPy's arrays of no axes change, and so do torch's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.errors import a_kind
from blockbuster.frontend.dtype_names import dtype_name
from blockbuster.frontend.kinds import FLOAT, MASK, MOVES
from blockbuster.frontend.memory import is_held, own, perhaps, write
from blockbuster.frontend.source import trace_error
from blockbuster.ir.dtypes import OWN

if TYPE_CHECKING:
    from blockbuster.frontend.array import TracedArray
    from blockbuster.frontend.trace import Trace

IN_NUMPY, IN_TORCH, UNKNOWN = "numpy", "torch", ""

_NUMBER = "NumPy changes an array of no axes, and makes another number of a number"
_TAKEN_OUT = "x[0] of a vector is a view in torch, and a number in NumPy"
_MATMUL = "@= changes an array of NumPy's, and makes another tensor of torch's"
_NO_NUMBERS = (*MOVES, "where", "cast", "whole", "custom", "and", "or", "not")
"""Operations that may give arrays of no axes in NumPy: all others give numbers."""


def library(trace: Trace) -> str:
    """The library whose arrays the arguments are; UNKNOWN where dims alone describe them."""
    return IN_TORCH if trace.of_tensors else IN_NUMPY if trace.of_arrays else UNKNOWN


def augmented(x: TracedArray, op: str, other: Any) -> TracedArray:
    """The array that the name ``x`` means after ``x += other``, or another operation ``op``."""
    made, known = x.trace.record(op, (x, other)), library(x.trace)
    if op == "matmul" and known != IN_NUMPY:
        return made if known == IN_TORCH else _rebound(x, made, _MATMUL)
    if x.ndim == 0 and known != IN_TORCH and x.is_number is not False:
        if known == IN_NUMPY and _is_number(x):
            return made
        if dtype_name(x) != dtype_name(made):
            reason = f"an array without axes stays {dtype_name(x)}, a number becomes"
            reason = f"{reason} {dtype_name(made)}: this may be either"
            raise trace_error(reason, hint="make a new array: y = y + z")
        return _rebound(x, made, _NUMBER)
    changed: TracedArray = change(x, made)
    return changed


def _rebound(x: TracedArray, made: TracedArray, why: str) -> TracedArray:
    """``made`` as a new array; ``x`` may have changed with it, so it cannot be read any more."""
    x.memory.claim(made)
    x.memory.lose(why, made)
    made.taken_as = x.taken_as
    return made


def _is_number(x: TracedArray) -> bool:
    """True if ``x`` is surely a number in NumPy, not an array of no axes."""
    value, (_, equations) = x.value, x.trace.recorded
    if x.is_number is not None:
        return x.is_number
    return value.node >= 0 and equations[value.node].op not in _NO_NUMBERS


def taken_out(x: TracedArray, base: TracedArray, key: tuple[Any, ...]) -> Any:
    """``base[key]``, a single element: a view in torch, a number in NumPy, but not with ``...``."""
    known, with_dots = library(x.trace), any(entry is Ellipsis for entry in key)
    if known == IN_TORCH:
        return x
    if with_dots and base.ndim:
        x.is_number = False
        return x
    if known == UNKNOWN or with_dots:
        return perhaps(x, x, _TAKEN_OUT)
    x = own(x)
    x.is_number = True
    return x


def change(x: Any, made: Any, *, casts: bool = False) -> Any:
    """``x`` after ``made`` was written to it. ``casts``: also to another kind, as ``x[...] =``."""
    if not is_held(x):
        reason = f"{a_kind(x)} that is not traced cannot change in a traced function"
        raise trace_error(reason, hint="change an array made of traced ones: bb.zeros_like(x)")
    made = x.trace.array(made)
    _check_shape(x, made)
    write(x, converted(x, made, casts=casts).current())
    return x


def replaced(x: Any, made: Any, what: str) -> Any:
    """``x`` after the function ``what`` gave ``made`` for it, and changed it in place."""
    if made is x:  # dropout, where nothing is dropped
        return x
    if is_held(x) and is_held(made) and made.memory is x.memory:
        reason = f"{what} changes the axes of an array in place"
        raise trace_error(reason, hint=f"go on with the result of {what.rstrip('_')}")
    return change(x, made)


def written_out(out: Any, made: Any, what: str) -> Any:
    """The array ``out=`` of the function ``what`` after ``made`` was written to it."""
    found = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if not is_held(found):
        reason = f"{what} with out= of {a_kind(found)} that is not traced"
        raise trace_error(reason, hint="go on with the result, or give bb.zeros_like(x) as out=")
    return change(found, made)


def _check_shape(x: TracedArray, made: TracedArray) -> None:
    length, shown = x.trace.dims.length, x.trace.dims.show
    if [*map(length, x.axes)] != [*map(length, made.axes)]:
        reason = f"an array {shown(x.axes)} changes in place to {shown(made.axes)}"
        raise trace_error(f"{reason}: it keeps its shape", hint="make a new array: y = y + z")


def converted(x: TracedArray, made: TracedArray, *, casts: bool) -> TracedArray:
    """``made`` in the dtype of ``x``, which it keeps. Raises TraceError if kinds differ."""
    here, other = dtype_name(x), dtype_name(made)
    if here == other or (not here and other == common_dtype(x.trace)):
        return made
    if x.kind == FLOAT and not here:
        if made.kind != FLOAT:
            return x.trace.floats(made)
        reason = f"an array in the inputs' dtype changes in place to {other}"
        raise trace_error(reason, hint="make a new array, or cast it")
    if not casts and not _fits(x, made):
        reason = f"an array of {here} changes in place to {other or 'floats'}"
        raise trace_error(f"{reason}: it keeps its dtype", hint="make a new array: y = y + z")
    return x.trace.record("cast", (made,), {"dtype": here})


def common_dtype(trace: Trace) -> str:
    """The dtype of all inputs of floats, which constants take; empty if they have several."""
    inputs, _ = trace.recorded
    names = {one.dtype for one in inputs if one.dtype not in OWN}
    return names.pop() if len(names) == 1 else ""


def _fits(x: TracedArray, made: TracedArray) -> bool:
    """Whether both libraries cast in place, or torch where the arguments are tensors."""
    if x.kind == FLOAT or made.kind == MASK:
        return True
    if made.kind == FLOAT or x.kind == MASK:
        return False
    tensors = library(x.trace) == IN_TORCH
    return tensors or np.can_cast(dtype_name(made), dtype_name(x), "same_kind")
