"""Semantics whose elements are Python objects: exact fractions or decimal numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Semantics


class Objects(Semantics):
    """Arrays of objects; what one number becomes is ``constant``."""

    dtype = np.dtype(object)

    def __init__(self, functions: Mapping[str, tuple[int, Callable[..., Any]]]) -> None:
        self.scalars = {
            name: self._elementwise(arity, fn) for name, (arity, fn) in functions.items()
        }

    def _elementwise(self, arity: int, fn: Callable[..., Any]) -> Callable[..., Array]:
        ufunc = np.frompyfunc(fn, arity, 1)
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
        return self.fold_last("+", np.asarray(a[..., :, None, :] * b[..., None, :, :], object))

    def fold_last(self, monoid: str, item: Array) -> Array:
        columns = (item[..., at] for at in range(item.shape[-1]))
        start = self.identity(monoid, item.shape[:-1])
        return reduce(lambda total, column: self.fold(monoid, total, column), columns, start)
