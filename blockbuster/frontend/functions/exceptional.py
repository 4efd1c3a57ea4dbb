"""Functions about numbers that are not finite, and about numbers that are nearly equal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.dtype_names import dtype_name
from blockbuster.frontend.functions.pointwise import abs, isfinite, maximum, minimum, where
from blockbuster.frontend.functions.row import Array, Row, example
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


_GROUP = "Numbers that are not finite"


def _of(function: Any, *examples: Any, reference: Any = None) -> Row:
    name = function.__name__
    return Row(function, _GROUP, (name,), torch=(name, f"Tensor.{name}"), examples=examples,
               reference=reference, public=False)  # fmt: skip


ROWS = (
    _of(isclose, example("M N", "N"), example("M N", "M N", atol=0.5, equal_nan=True)),
    _of(isposinf, example("M N")), _of(isneginf, example("M N")),
    _of(nan_to_num, example("M N", nan=1.0, posinf=2.0, neginf=3.0), example("int: M N")),
)  # fmt: skip
