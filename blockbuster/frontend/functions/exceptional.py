"""Functions about numbers that are not finite, and about numbers that are nearly equal."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply
from blockbuster.frontend.dtype_names import dtype_name
from blockbuster.frontend.functions.pointwise import (
    abs,
    isfinite,
    isnan,
    maximum,
    minimum,
    square,
    where,
)
from blockbuster.frontend.functions.reductions import Axes, max, min, prod, sum
from blockbuster.frontend.functions.row import Array, Row, alike, example, named
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.memory import own
from blockbuster.frontend.source import trace_error

_LARGEST = {"bfloat16": 3.3895313892515355e38, "float8_e4m3fn": 448.0}
"""Of dtypes that NumPy lacks."""


def isclose(
    x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Array:
    """True where two numbers are equal, or no farther apart than ``atol + rtol * abs(y)``."""
    apart = abs(x - y)
    close = (x == y) | (isfinite(apart) & (apart <= atol + rtol * abs(y)))
    return close | ((x != x) & (y != y)) if equal_nan else close


def isposinf(x: Array) -> Array:
    """The mask of the elements that are infinity."""
    return x == math.inf


def isneginf(x: Array) -> Array:
    """The mask of the elements that are -infinity."""
    return x == -math.inf


def nan_to_num(
    x: Array, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Numbers in place of NaN and infinities: 0, and the largest and smallest of the dtype."""
    if not isinstance(x, TracedArray) or x.kind != FLOAT:
        return own(x)
    found = where(x != x, nan or 0.0, x)
    found = minimum(found, _largest(x)) if posinf is None else where(isposinf(x), posinf, found)
    return maximum(found, -_largest(x)) if neginf is None else where(isneginf(x), neginf, found)


def _largest(x: TracedArray) -> float:
    """The largest number of the dtype of ``x``."""
    name = dtype_name(x)
    if not name:
        hint = "pass posinf= and neginf=, or trace with example arrays"
        raise trace_error("nan_to_num: the largest number depends on the dtype", hint=hint)
    return _LARGEST.get(name) or float(np.finfo(name).max)


def _beside_nan(name: str, extremum: Callable[..., Array], which: str) -> Callable[..., Array]:
    """The larger or smaller element of two arrays."""

    def chosen(x: Array, y: Array) -> Array:
        return where(isnan(x), y, where(isnan(y), x, extremum(x, y)))

    return named(chosen, name, f"The {which} element of two arrays; a number beside NaN.")


fmax, fmin = _beside_nan("fmax", maximum, "larger"), _beside_nan("fmin", minimum, "smaller")


def nansum(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The sum without NaN."""
    return sum(_instead(x, 0.0), axis, keepdims)


def nanprod(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The product without NaN."""
    return prod(_instead(x, 1.0), axis, keepdims)


def nanmean(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The mean of the elements that are numbers; NaN if there are none."""
    return nansum(x, axis, keepdims) / _numbers(x, axis, keepdims)


def _of_numbers(
    name: str, extremum: Callable[..., Array], other: float, which: str
) -> Callable[..., Array]:
    """The largest or smallest number, for which ``other`` stands where there is none."""

    def found(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
        made = extremum(_instead(x, other), axis, keepdims)
        is_one = _numbers(x, axis, keepdims) > 0 if _may_be_nan(x) else None
        return made if is_one is None else where(is_one, made, math.nan)

    return named(found, name, f"The {which} element that is a number; NaN if there is none.")


nanmax = _of_numbers("nanmax", max, -math.inf, "largest")
nanmin = _of_numbers("nanmin", min, math.inf, "smallest")


def nanvar(x: Array, axis: Axes = None, keepdims: bool = False, *, ddof: float = 0) -> Array:
    """The squared deviations of numbers from their mean, over their count less ``ddof``."""
    apart = where(isnan(x), 0.0, x - nanmean(x, axis, True))
    free = _numbers(x, axis, keepdims) - ddof
    return sum(square(apart), axis, keepdims) / where(free > 0, free, math.nan)


def nanstd(x: Array, axis: Axes = None, keepdims: bool = False, *, ddof: float = 0) -> Array:
    """The square root of the variance without NaN."""
    return nanvar(x, axis, keepdims, ddof=ddof) ** 0.5


def _instead(x: Array, number: float) -> Array:
    """``x`` with a number in place of NaN; integers have none."""
    return where(isnan(x), number, x) if _may_be_nan(x) else x


def _numbers(x: Array, axis: Axes, keepdims: bool) -> Array:
    """How many elements are numbers, as floats of the dtype of ``x``, where it is one of floats."""
    ones = where(isnan(x), 0.0, 1.0)
    if _may_be_nan(x) and isinstance(x, TracedArray) and dtype_name(ones) != dtype_name(x):
        ones = apply("cast", ones, dtype=dtype_name(x))
    return sum(ones, axis, keepdims)


def _may_be_nan(x: Array) -> bool:
    """True for floats; a dtype of torch's has no ``kind``."""
    if isinstance(x, TracedArray):
        return x.kind == FLOAT
    return getattr(np.asarray(x).dtype if np.isscalar(x) else x.dtype, "kind", "f") == "f"


_GROUP = "Numbers that are not finite"


def _of(function: Any, *examples: Any) -> Row:
    return alike(function, _GROUP, *examples, public=False)


def _of_numpys(function: Any, *examples: Any) -> Row:
    """The row of a function that torch does not have."""
    return Row(function, _GROUP, (function.__name__,), examples=examples, public=False)


_ALONG = (example("M N"), example("nan: M N", axis=-1), example("int: M N", axis=0))


ROWS = (
    _of(isclose, example("M N", "N"), example("M N", "M N", atol=0.5, equal_nan=True)),
    _of(isposinf, example("M N")), _of(isneginf, example("M N")),
    _of(nan_to_num, example("M N", nan=1.0, posinf=2.0, neginf=3.0), example("int: M N")),
    _of(fmax, example("nan: M N", "N")), _of(fmin, example("nan: M N", "N")),
    _of(nansum, *_ALONG), _of(nanmean, *_ALONG), _of_numpys(nanprod, *_ALONG),
    _of_numpys(nanmax, *_ALONG), _of_numpys(nanmin, *_ALONG),
    _of_numpys(nanvar, *_ALONG, example("nan: M N", axis=-1, ddof=1)),
    _of_numpys(nanstd, *_ALONG),
)  # fmt: skip
