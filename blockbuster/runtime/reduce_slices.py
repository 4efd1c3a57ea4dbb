"""Reductions in Triton's interpreter, half a tile at a time instead of element by element.

Where a kernel reduces with a function of its own, the interpreter calls it for each pair of
scalars: a row of 4096 elements takes half a second. Such a function works on tiles as on scalars,
so it is called here for all pairs of neighbours at once, then for pairs of their results, and so
on: twelve calls. It has to be associative, as on a GPU, where threads combine in an order of their
own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def reduce_slices() -> None:
    """From now on, let the interpreter of this process reduce so, where an axis is named."""
    from triton.runtime.interpreter import ReduceOps

    by_elements = ReduceOps.generic_reduce

    def generic_reduce(self: Any, given: tuple[Any, ...]) -> Any:
        return by_elements(self, given) if self.axis is None else _reduced(self, given)

    ReduceOps.generic_reduce = generic_reduce


def _reduced(self: Any, tiles: tuple[Any, ...]) -> list[Any]:
    """The method of ``ReduceOps``: ``tiles`` of one shape, reduced together along its axis."""
    axis = self.axis

    def rounded(arrays: Iterable[Any]) -> list[Any]:
        """As tiles of the dtypes that are reduced: a function may give wider ones."""
        return [self.to_tensor(x, t.dtype) for x, t in zip(arrays, tiles, strict=True)]

    def slices(found: list[Any], which: range) -> list[Any]:
        return rounded(_data(tile).take(which, axis) for tile in found)

    found = list(tiles)  # whose extents are powers of two
    while (count := _data(found[0]).shape[axis]) > 1:
        even, odd = (slices(found, range(first, count, 2)) for first in (0, 1))
        combined = self.combine_fn.fn(*even, *odd)
        found = rounded(map(_data, combined if isinstance(combined, tuple) else (combined,)))
    if self.keep_dims:
        return found
    return rounded(np.squeeze(_data(tile), axis)[()] for tile in found)


def _data(tile: Any) -> Any:
    """The elements of a tile."""
    return tile.handle.data
