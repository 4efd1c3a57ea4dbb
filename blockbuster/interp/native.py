"""Block programs in the dtypes of their arrays: integers as NumPy computes them, floats in double.

The other semantics compute with numbers that have no dtype, so no integer overflows in them. Here
an integer has the dtype that NumPy's rules give it, and wraps around. A counterexample counts only
if both agree (``evidence.py``): then the programs differ on it in their dtypes, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import FLOAT_SCALARS, UFUNC, Floats, rounded_to
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.expr import BITWISE, PREDICATES
from blockbuster.ir.types import Dim

WHOLE = np.dtype(np.int64)
KEPT = (
    "add", "sub", "mul", "neg", "abs", "square", "maximum", "minimum", "where", "relu", "floordiv",
    "mod", *BITWISE,
)  # fmt: skip
"""Functions that give integers for integers."""


class Native(Floats):
    """Every item has its own dtype; whole arrays, joined from items, are float64."""

    def __init__(self) -> None:
        super().__init__("float64", "float64")
        self.scalars = {name: _typed(name, fn) for name, fn in FLOAT_SCALARS.items()}

    def item(self, array: Array) -> Array:
        held = np.asarray(array)
        return held if held.dtype.kind in "iub" else held.astype(np.float64, copy=False)

    def positions(self, dim: Dim, numbers: Array) -> Array:
        return numbers.astype(WHOLE)

    def constant(self, value: float) -> Any:
        """A Python number, which takes the dtype of the integers beside it."""
        return int(value) if float(value).is_integer() and abs(value) < 2.0**63 else float(value)

    def dot(self, a: Array, b: Array) -> Array:
        a, b = map(_number, (a, b))
        return np.asarray(a @ b.swapaxes(-1, -2))

    def fold_last(self, monoid: str, item: Array) -> Array:
        item = _number(item)
        if item.dtype.kind == "f" or not item.shape[-1]:
            return super().fold_last(monoid, item.astype(np.float64))
        adds = monoid in ("+", "prod")
        return np.asarray(UFUNC[monoid].reduce(item, -1, WHOLE if adds else item.dtype))

    def cast(self, item: Array, dtype: str) -> Array:
        if dtype not in OWN:
            return np.asarray(rounded_to(dtype, item.astype(np.float64)), np.float64)
        held = item if item.dtype.kind in "iub" else rounded_to(dtype, item)
        return np.asarray(held).astype(dtype)


def _number(x: Any) -> Any:
    """A mask as the integers that it counts as; anything else as it is."""
    if isinstance(x, int | float):
        return x
    held = np.asarray(x)
    return held.astype(WHOLE) if held.dtype.kind == "b" else held


def _typed(name: str, fn: Callable[..., Any]) -> Callable[..., Array]:
    """``fn`` with NumPy's dtypes for integers, and double precision for all else."""
    if name == "whole":
        return lambda x: np.asarray(x).astype(WHOLE)
    if name == "where":
        return lambda c, *args: np.asarray(np.where(np.asarray(c) != 0, *_together(args)))
    if name in KEPT:
        return lambda *args: np.asarray(fn(*map(_number, args)))
    if name in PREDICATES:
        return lambda *args: np.asarray(fn(*args))
    return lambda *args: np.asarray(fn(*(np.asarray(x, np.float64) for x in args)), np.float64)


def _together(args: Sequence[Any]) -> list[Array]:
    """Two numbers in the dtype where they meet."""
    given = [_number(x) for x in args]
    dtype = np.result_type(*given)
    return [np.asarray(x, dtype) for x in given]
