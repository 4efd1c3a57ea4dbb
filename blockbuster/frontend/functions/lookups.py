"""Axes read at entries of tables, ``x[n, c, h + shift[c]]``: a copy in front of what reads it.

All axes of an operand that tables name are looked up at once: one copy, in the order in which the
operand lies. A table that is known to hold multiples of its letters is none: that is a view.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.creation import arange
from blockbuster.frontend.functions.einsum_spec import Place, Spec
from blockbuster.frontend.functions.row import Array
from blockbuster.frontend.functions.shapes import transpose
from blockbuster.frontend.kinds import MASK
from blockbuster.frontend.shapes import broadcast
from blockbuster.frontend.torch import is_tensor


@dataclass(frozen=True)
class Lookup:
    """The elements of an array at places along some of its axes, one array of integers each.

    The places broadcast, and their axes replace the ``axes`` of the array, at the first of them.
    No table makes this read outside of the array: places are clipped to it. ``zeros``: elements at
    places that were clipped are 0; it is False where tables were found to name no such place.
    """

    axes: tuple[int, ...]
    zeros: bool

    def __str__(self) -> str:
        return f"lookup[{', '.join(map(str, self.axes))}]"

    def __call__(self, array: Any, *places: Any) -> Any:
        ahead, behind = self.kept(range(array.ndim))
        extents = [array.shape[axis] for axis in self.axes]
        if is_tensor(array):
            rows = array.permute(*ahead, *self.axes, *behind)
            places = tuple((x if is_tensor(x) else array.new_tensor(x)).long() for x in places)
        else:
            rows = np.asarray(array).transpose(*ahead, *self.axes, *behind)
            places = tuple(np.asarray(x, np.int64) for x in places)
        every = (slice(None),) * len(ahead)
        if not all(extents):
            return self._nothing(array, rows, places, len(ahead))
        near = (x.clip(0, n - 1) for x, n in zip(places, extents, strict=True))
        found = rows[(*every, *near)]
        if self.zeros:
            pairs = zip(places, extents, strict=True)
            outside = functools.reduce(operator.or_, ((x < 0) | (x >= n) for x, n in pairs))
            found[(*every, outside)] = 0
        return found

    def kept(self, axes: Iterable[int]) -> tuple[list[int], list[int]]:
        """The other axes, those in front of the first one that is looked up and those behind."""
        rest = [axis for axis in axes if axis not in self.axes]
        first = min(self.axes)
        return [axis for axis in rest if axis < first], [axis for axis in rest if axis > first]

    def _nothing(self, array: Any, rows: Any, places: Sequence[Any], ahead: int) -> Any:
        """Zeros: there is no element that a place could name."""
        shape = tuple(rows.shape)
        middle = np.broadcast_shapes(*(tuple(x.shape) for x in places))
        shape = (*shape[:ahead], *middle, *shape[ahead + len(self.axes) :])
        return array.new_zeros(shape) if is_tensor(array) else np.zeros(shape, array.dtype)


@dataclass(frozen=True)
class Tables:
    """A place with entries of tables: ``sizes`` of letters, and the tables by name.

    ``pads``: how many zeros stand in front of the axis and behind it.
    """

    spec: Spec
    place: Place
    sizes: dict[str, Any]
    tables: Mapping[str, Array]
    pads: tuple[int, int]

    def fitted(self, extent: Any, outer: str) -> bool:
        """Find the size of the letter ``outer`` along an axis of ``extent`` elements.

        True if all places lie in the axis then. Raises TraceError if some lie outside of its pads.
        """
        span = self._span()
        if span is not None and span[0] < -self.pads[0]:
            self._refuse(span[0], extent)
        if not outer or outer in self.sizes:
            return False
        self.sizes[outer] = self._count(extent, span)
        return not any(self.pads)

    def _span(self) -> tuple[int, int] | None:
        """The least and the largest offset from the place of the outer letter, if known."""
        low = high = self.place.offset - self.pads[0]
        for entry in self.place.entries:
            table = self.tables[entry.name]
            if isinstance(table, TracedArray) or not table.size:
                return None
            low, high = low + int(table.min()), high + int(table.max())
        return low, high

    def _count(self, extent: Any, span: tuple[int, int] | None) -> Any:
        """How many places fit, if the tables are known."""
        letter = next(letter for letter, _ in self.place.letters if letter not in self.sizes)
        if span is None or dict(self.place.letters)[letter] != 1 or len(self.place.letters) > 1:
            reason = f"the size of {letter!r} is not known"
            self.spec.refuse(self.place.at, reason, f"give it: sizes={{{letter!r}: ...}}")
        count = extent + self.pads[1] - span[1]
        if isinstance(count, int) and count < 1:
            self._refuse(span[1], extent)
        return count

    def places(self, own: Sequence[str], extent: Any) -> Array:
        """The places along the axis, with an axis for each letter of ``own``.

        Raises TraceError for a place outside of the axis and its pads, where that is known.
        """
        total: Array = self.place.offset - self.pads[0]
        for letter, factor in self.place.letters:
            behind = len(own) - 1 - own.index(letter)
            total = along(arange(self.sizes[letter]), behind) * factor + total
        for entry in self.place.entries:
            order = sorted(entry.letters, key=own.index)
            table = transpose(self.tables[entry.name], [entry.letters.index(x) for x in order])
            kept = own[own.index(order[0]) :]
            total = table[tuple(slice(None) if x in order else None for x in kept)] + total
        self._check_within(total, extent)
        return total

    def _check_within(self, places: Array, extent: Any) -> None:
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


def along(x: Array, behind: int) -> Array:
    """A row with so many axes of one element behind it."""
    return x[(slice(None), *(None,) * behind)]


def copied(fn: Lookup, x: Array, places: Sequence[Array]) -> Array:
    """``fn`` of arrays; as a call of it in a traced program, if one of them is traced."""
    traced = [one for one in (x, *places) if isinstance(one, TracedArray)]
    if not traced:
        return fn(x, *places)
    trace = traced[0].trace
    x, places = trace.array(x), [trace.array(one) for one in places]
    if x.kind == MASK:  # NumPy has no masks among what functions of whole arrays give
        return copied(fn, x + 0, places) != 0
    ahead, behind = fn.kept(range(len(x.axes)))
    named = broadcast(trace.dims, [one.axes for one in places])
    shape = (*(x.axes[n] for n in ahead), *named, *(x.axes[n] for n in behind))
    return trace.custom(fn, (x, *places), shape, str(fn), x.kind)


def as_sum(place: Place, tables: Mapping[str, Array], others: Sequence[str]) -> Place:
    """A place whose tables are known to hold sums of multiples of their letters, as such a sum.

    It is a view, then, and no table is read. Multiples are not negative, and no letter that is
    left is one of ``others``, those of the operand's other axes: it would read a diagonal.
    """
    letters, entries, offset = dict(place.letters), [], place.offset
    for entry in place.entries:
        found = _multiples(tables[entry.name])
        steps = dict(zip(entry.letters, found[1], strict=True)) if found else {}
        moves = {letter: step for letter, step in steps.items() if step}
        is_view = all(step > 0 and letter not in others for letter, step in moves.items())
        if found is None or not is_view or any(x not in (*others, *moves) for x in entry.letters):
            entries.append(entry)
            continue
        offset += found[0]
        for letter, step in moves.items():
            letters[letter] = letters.get(letter, 0) + step
    return Place(tuple(letters.items()), tuple(entries), offset, place.at)


def _multiples(table: Array) -> tuple[int, list[int]] | None:
    """b and s of a known table whose entry i, j, ... is b + i * s[0] + j * s[1] + ...; or None."""
    if not isinstance(table, np.ndarray) or not table.size:
        return None
    whole = table.astype(object)  # differences of unsigned integers are no such integers
    last = np.array(table.shape) - 1
    first = whole.flat[0]
    steps = [whole[tuple(np.minimum(one, last))] - first for one in np.eye(table.ndim, dtype=int)]
    moves = (at * step for at, step in zip(np.indices(table.shape), steps, strict=True))
    sums = sum(moves, first)
    return (first, steps) if np.array_equal(whole, sums) else None
