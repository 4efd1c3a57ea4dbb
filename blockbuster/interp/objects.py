"""Semantics whose elements are Python objects: exact fractions, decimal numbers or terms."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from blockbuster.interp.bits import exact_bits
from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Semantics
from blockbuster.ir.expr import FUNCTIONS


def larger(x: Any, y: Any) -> Any:
    """The maximum, undefined if one is."""
    return x + y if x != x or y != y else max(x, y)


def smaller(x: Any, y: Any) -> Any:
    """The minimum, undefined if one is."""
    return x + y if x != x or y != y else min(x, y)


def in_common(number: Callable[[int], Any]) -> dict[str, Callable[..., Any]]:
    """The functions that mean the same of all numbers; ``number`` makes one of an integer."""
    return {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg,
        "square": lambda x: x * x, "abs": abs, "relu": lambda x: larger(x, number(0)),
        "maximum": larger, "minimum": smaller, "whole": lambda x: x,
        "and": lambda x, y: number(x != 0 and y != 0), "not": lambda x: number(x == 0),
        "or": lambda x, y: number(x != 0 or y != 0), "where": lambda c, x, y: x if c != 0 else y,
        **exact_bits(number),
    }  # fmt: skip


class Objects(Semantics):
    """Arrays of objects; what one number becomes is ``constant``."""

    dtype = np.dtype(object)

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self.scalars = {name: self._elementwise(name, fn) for name, fn in functions.items()}

    def _elementwise(self, name: str, fn: Callable[..., Any]) -> Callable[..., Array]:
        ufunc = np.frompyfunc(fn, FUNCTIONS[name], 1)
        return lambda *args: np.asarray(ufunc(*args), object)

    def item(self, array: Array) -> Array:
        if array.dtype == object:
            return array
        flat = np.empty(array.size, object)
        flat[:] = [self.constant(float(x)) for x in np.ravel(array)]
        return flat.reshape(array.shape)

    def numbers(self, item: Array) -> Array:
        return item.astype(float)

    def dot(self, a: Array, b: Array) -> Array:
        return self.fold_last("+", self.scalars["mul"](a[..., :, None, :], b[..., None, :, :]))

    def fold_last(self, monoid: str, item: Array) -> Array:
        columns = (item[..., at] for at in range(item.shape[-1]))
        start = self.identity(monoid, item.shape[:-1])
        return reduce(lambda total, column: self.fold(monoid, total, column), columns, start)
