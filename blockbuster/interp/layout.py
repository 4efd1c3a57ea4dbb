"""Lists of blocks and whole arrays: where each block lies, cutting and joining."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.ir.types import Dim, Type, size_class, whole
from blockbuster.ir.views import Strided

Array = NDArray[Any]
Nested = Any  # an item (an Array), or a list of Nested


@dataclass(frozen=True)
class Layout:
    """The size of each size class, and the blocks of each dim as ranges of positions."""

    sizes: Mapping[Dim, int]
    blocks: Mapping[Dim, tuple[range, ...]]

    def size(self, dim: Dim) -> int:
        """The number of elements along ``dim``."""
        return self.sizes[size_class(dim)]

    def positions(self, axis: Strided) -> NDArray[np.intp]:
        """Which elements of an axis its runs read, as an array with one axis per run."""
        found = np.array(axis.start.value(self.sizes))
        for run in axis.runs:
            steps = np.arange(self.size(run.dim)) * run.step.value(self.sizes)
            found = found[..., None] + steps
        return found

    def read(self, array: Array, at: int, axis: Strided, zero: Any) -> Array:
        """``array`` with what ``axis`` reads of its axis ``at``; ``zero`` where that is nothing."""
        places = self.positions(axis)
        if not axis.padded:
            return np.asarray(array.take(places, at), array.dtype)  # one term, too, is 0-d
        inside = (places >= 0) & (places < array.shape[at])
        shape = (*array.shape[:at], *places.shape, *array.shape[at + 1 :])
        found = np.full(shape, zero, array.dtype)
        found[(slice(None),) * at + (inside,)] = array.take(places[inside], at)
        return found

    def nest(self, lists: Sequence[Dim], entry: Callable[[tuple[int, ...]], Array]) -> Nested:
        """Nested lists over ``lists`` whose item at block numbers ``index`` is ``entry(index)``."""

        def level(index: tuple[int, ...]) -> Nested:
            if len(index) == len(lists):
                return entry(index)
            return [level((*index, i)) for i in range(len(self.blocks[lists[len(index)]]))]

        return level(())

    def indices(self, lists: Sequence[Dim]) -> Iterator[tuple[int, ...]]:
        """The block numbers of every item of nested lists over ``lists``, in order."""
        return product(*(range(len(self.blocks[d])) for d in lists))

    def cut(self, array: Array, type: Type) -> Nested:
        """The value of ``type`` in a whole array whose axes are ``whole(type)``.

        ``join`` gives the array back: raises ValueError where blocks would lose elements.
        """
        self._check_blocks(type)
        kept = [d for d in whole(type) if d in type.axes]
        order = [kept.index(d) for d in type.axes]

        def level(part: Array, depth: int, axis: int) -> Nested:
            """Cut along the list dims from ``depth`` on, the next of which is axis ``axis``."""
            if depth == len(type.lists):
                return part.transpose(order)
            dim, before = type.lists[depth], (slice(None),) * axis
            kept = dim in type.axes
            places: list[tuple[int | slice, ...]] = [
                (*before, slice(span.start, span.stop) if kept else span.start)
                for span in self.blocks[dim]
            ]
            # the ellipsis keeps one object of an array of objects an array, without axes
            return [level(part[(*place, ...)], depth + 1, axis + kept) for place in places]

        return level(array, 0, 0)

    def join(self, value: Nested, type: Type, dtype: Any) -> Array:
        """The whole array, with the axes ``whole(type)``, that a value of ``type`` fills.

        Raises ValueError if blocks have more elements than items.
        """
        if not type.buffered:
            order = [type.axes.index(d) for d in whole(type)]
            return np.asarray(value, dtype).transpose(order)
        self._check_blocks(type)
        array = np.empty([self.size(d) for d in whole(type)], dtype)
        order = [type.axes.index(d) for d in whole(type) if d in type.axes]
        for index in self.indices(type.lists):
            place = (*self._where(type, index), ...)
            array[place] = item_at(value, index).transpose(order)
        return array

    def join_stacks(self, stacks: Iterable[tuple[Array, Array]], type: Type, dtype: Any) -> Array:
        """``join`` of a buffered value whose items lie in stacks, one for each of their shapes.

        Beside each stack stand the numbers that its items have, counted through all lists.
        """
        self._check_blocks(type)
        dims = whole(type)
        kept = [d for d in dims if d in type.axes]
        order = [0, *(1 + type.axes.index(d) for d in kept)]
        array = np.empty([self.size(d) for d in dims], dtype)
        for numbers, stack in stacks:
            items = stack.transpose(order)
            index = np.unravel_index(numbers, [len(self.blocks[d]) for d in type.lists])
            blocks = dict(zip(type.lists, index, strict=True))
            places = []
            for dim in dims:
                starts = np.array([span.start for span in self.blocks[dim]])
                at = starts[blocks[dim]] if dim in blocks else np.zeros(1, int)
                place = at.reshape(-1, *[1] * len(kept))
                if dim in kept:
                    axis = kept.index(dim)
                    lanes = np.arange(items.shape[1 + axis])
                    place = place + lanes.reshape(-1, *[1] * (len(kept) - 1 - axis))
                places.append(place)
            array[tuple(places)] = items
        return array

    def _check_blocks(self, type: Type) -> None:
        """Raise ValueError where a list dim is no axis of the items and has larger blocks."""
        for dim in type.lists:
            if dim not in type.axes and any(len(span) != 1 for span in self.blocks[dim]):
                raise ValueError(
                    f"a value of type {type} holds one item per block of {dim}: it is an array "
                    "only where blocks hold one element"
                )

    def _where(self, type: Type, index: tuple[int, ...]) -> tuple[int | slice, ...]:
        """The part of a whole array that the item at block numbers ``index`` holds."""
        spans = [self.blocks[d][i] for d, i in zip(type.lists, index, strict=True)]
        return tuple(
            slice(span.start, span.stop) if dim in type.axes else span.start
            for dim, span in zip(type.lists, spans, strict=True)
        )


def item_at(value: Nested, index: Sequence[int]) -> Array:
    """The item at block numbers ``index``, outermost first."""
    for i in index:
        value = value[i]
    return np.asarray(value)
