"""Axes read at entries of tables, ``x[n, c, h + shift[c]]``: a copy in front of what reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.creation import arange
from blockbuster.frontend.functions.einsum_spec import Place, Spec
from blockbuster.frontend.functions.row import Array
from blockbuster.frontend.functions.shapes import transpose
from blockbuster.frontend.kinds import MASK
from blockbuster.frontend.torch import is_tensor


@dataclass(frozen=True)
class Lookup:
    """The elements of an axis at places that an array of integers names; 0 outside of the axis.

    ``shared``: the axes that the array shares with the places, whose first axes these are, in this
    order. The result has the axes of the places, then the other ones of the array.
    """

    axis: int
    shared: tuple[int, ...]

    def __str__(self) -> str:
        return f"lookup[{self.axis}]"

    def __call__(self, array: Any, places: Any) -> Any:
        rest = [i for i in range(array.ndim) if i not in (*self.shared, self.axis)]
        order = (*self.shared, self.axis, *rest)
        if is_tensor(array):
            places = (places if is_tensor(places) else array.new_tensor(places)).long()
            rows, found = array.permute(order), array.new_zeros(self._shape(array, places, rest))
            at = tuple(((places >= 0) & (places < array.shape[self.axis])).nonzero().T)
        else:
            array, places = np.asarray(array), np.asarray(places, np.int64)
            rows = array.transpose(order)
            found = np.zeros(self._shape(array, places, rest), array.dtype)
            at = ((places >= 0) & (places < array.shape[self.axis])).nonzero()
        found[at] = rows[(*at[: len(self.shared)], places[at])]
        return found

    def _shape(self, array: Any, places: Any, rest: Sequence[int]) -> tuple[int, ...]:
        return (*places.shape, *(array.shape[axis] for axis in rest))


@dataclass(frozen=True)
class Tables:
    """What a place with entries of tables reads: ``sizes`` of letters, and the tables by name.

    ``pads``: how many zeros stand in front of the axis and behind it.
    """

    spec: Spec
    place: Place
    sizes: dict[str, Any]
    tables: Mapping[str, Array]
    pads: tuple[int, int]

    def looked_up(
        self, x: Array, letters: Sequence[str], axis: int, outer: str
    ) -> tuple[Array, list[str]]:
        """``x`` with axes for the letters of the place instead of one axis."""
        span = self._span()
        if span is not None and span[0] < -self.pads[0]:
            self._refuse(span[0], x.shape[axis])
        if outer and outer not in self.sizes:
            self.sizes[outer] = self._count(x, axis, span)
        shared = [x for x in self.place.every_letter if x in letters]
        own = [*shared, *(x for x in self.place.every_letter if x not in letters)]
        places = self._places(own)
        self._check_within(places, x.shape[axis])
        fn = Lookup(axis, tuple(letters.index(letter) for letter in shared))
        rest = [n for n in range(len(letters)) if n != axis and letters[n] not in shared]
        return _copied(fn, x, places, rest), [*own, *(letters[n] for n in rest)]

    def _span(self) -> tuple[int, int] | None:
        """The least and the largest offset from the place of the outer letter, if known."""
        low = high = self.place.offset - self.pads[0]
        for entry in self.place.entries:
            table = self.tables[entry.name]
            if isinstance(table, TracedArray) or not table.size:
                return None
            low, high = low + int(table.min()), high + int(table.max())
        return low, high

    def _count(self, x: Array, axis: int, span: tuple[int, int] | None) -> Any:
        """How many places fit, if the tables are known."""
        letter = next(letter for letter, _ in self.place.letters if letter not in self.sizes)
        if span is None or dict(self.place.letters)[letter] != 1 or len(self.place.letters) > 1:
            reason = f"the size of {letter!r} is not known"
            self.spec.refuse(self.place.at, reason, f"give it: sizes={{{letter!r}: ...}}")
        count = x.shape[axis] + self.pads[1] - span[1]
        if isinstance(count, int) and count < 1:
            self._refuse(span[1], x.shape[axis])
        return count

    def _places(self, own: Sequence[str]) -> Array:
        """The places along the axis, with an axis for each letter."""
        total: Array = self.place.offset - self.pads[0]
        for letter, factor in self.place.letters:
            behind = len(own) - 1 - own.index(letter)
            total = arange(self.sizes[letter])[(slice(None), *(None,) * behind)] * factor + total
        for entry in self.place.entries:
            order = sorted(entry.letters, key=own.index)
            table = transpose(self.tables[entry.name], [entry.letters.index(x) for x in order])
            kept = own[own.index(order[0]) :]
            total = table[tuple(slice(None) if x in order else None for x in kept)] + total
        return total

    def _check_within(self, places: Array, extent: Any) -> None:
        """Raise TraceError for a place outside of the axis and its pads, where that is known."""
        if isinstance(places, TracedArray) or not isinstance(extent, int) or not places.size:
            return
        before, behind = self.pads
        for place in (int(places.min()), int(places.max())):
            if not -before <= place < extent + behind:
                self._refuse(place, extent)

    def _refuse(self, place: int, extent: Any) -> None:
        words = ", ".join(entry.name for entry in self.place.entries)
        reason = f"{words}: place {place} of {extent} is read"
        self.spec.refuse(self.place.at, reason, "pad the letter with zeros")


def _copied(fn: Lookup, x: Array, places: Array, rest: Sequence[int]) -> Array:
    traced = [one for one in (x, places) if isinstance(one, TracedArray)]
    if not traced:
        return fn(x, places)
    trace = traced[0].trace
    x, places = trace.array(x), trace.array(places)
    if x.kind == MASK:  # NumPy has no masks among what functions of whole arrays give
        return _copied(fn, x + 0, places, rest) != 0
    shape = (*places.axes, *(x.axes[n] for n in rest))
    return trace.custom(fn, (x, places), shape, str(fn), x.kind)
