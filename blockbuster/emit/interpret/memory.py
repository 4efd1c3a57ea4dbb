"""The arrays of a running tile program: who wrote each element, and whether a reader may see it.

Outputs and workspaces start without values. Reading an element raises ``Hazard`` if it has not been
written, or if a parallel iteration that runs at the same time writes it. So no semantics needs a
value for "not written".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from blockbuster.emit.tile.program import Buffer
from blockbuster.errors import VerifyError
from blockbuster.interp.layout import Array
from blockbuster.interp.outside import with_zeros
from blockbuster.ir.types import Dim

Path = tuple[tuple[int, int | range, Dim], ...]
"""The parallel iterations around a statement: number of the loop's run, of the iteration, dim.

A range stands for all iterations of a run, side by side along a leading axis of each index.
"""
Index = tuple[Any, ...]
"""For each axis a position, an array of them, or ``Padded``."""

NOBODY = -1


@dataclass(frozen=True)
class Padded:
    """Places along an axis, some of which may lie outside: zeros stand there."""

    places: Any


class Hazard(VerifyError):
    """A tile program reads what is not there, not there yet, or not there any more."""


@dataclass
class Memory:
    """Arrays by buffer; ``writers[buffer]`` has for each element the number of its last store.

    ``waited``: whether the program that runs has waited for the nest before its own, if it has to.
    ``kept``: how many nests run before the call begins, and are complete then. ``zero``: as arrays
    hold it.
    """

    arrays: dict[Buffer, Array] = field(default_factory=dict)
    writers: dict[Buffer, Array] = field(default_factory=dict)
    _last: dict[Buffer, int] = field(default_factory=dict)
    _paths: list[Path] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _stores: int = 0
    _first: int = 0
    _begun: int = 0
    _nests: int = 0
    waited: bool = True
    kept: int = 0
    zero: Any = 0.0

    def give(self, buffer: Buffer, array: Array) -> None:
        """An array that holds values from the start."""
        self.arrays[buffer] = array

    def allocate(self, buffer: Buffer, shape: tuple[int, ...], dtype: Any) -> None:
        """An array that nobody has written yet."""
        self.arrays[buffer] = np.empty(shape, dtype)
        self.writers[buffer] = np.full(shape, NOBODY)

    def new_nest(self, *, overlaps: bool = False) -> None:
        """All stores so far are complete, whatever is parallel from here on.

        To a nest that ``overlaps`` the one before, only those are that came before its chain. Of
        what the first nest overlaps nothing is known: no array is complete until it has waited.
        """
        self._nests += 1
        self._first = self._stores
        if not overlaps or self._nests == self.kept + 1:
            self._begun = self._first

    def load(self, buffer: Buffer, index: Index, path: Path) -> Array:
        """The elements at ``index``. Raises Hazard if one is not, or not surely, written."""
        if Padded in map(type, index):
            return self._with_zeros(buffer, index)
        self._check(buffer, index, path, "reads")
        return np.array(self.arrays[buffer][(*index, ...)])

    def _with_zeros(self, buffer: Buffer, index: Index) -> Array:
        """The elements at ``index`` of an input, and zeros where a padded axis has none."""
        if buffer in self.writers:
            raise Hazard(f"{buffer.name} is no input, and is read as if zeros stood around it")
        padded = [isinstance(place, Padded) for place in index]
        places = [np.asarray(p.places if isinstance(p, Padded) else p) for p in index]
        return with_zeros(self.arrays[buffer], places, padded, self.zero)

    def version(self, buffer: Buffer, index: Index) -> Array | None:
        """A value that changes whenever an element at ``index`` is written."""
        writers = self.writers.get(buffer)
        return None if writers is None else np.array(writers[(*index, ...)])

    def store(self, buffer: Buffer, index: Index, value: Array, path: Path) -> None:
        """Write ``value``. Raises Hazard if an iteration at the same time writes there, too."""
        if buffer not in self.writers:
            raise Hazard(f"the input {buffer.name} is stored")
        cells = cells_of(path)
        if cells:  # a place for each iteration, be it that of another one
            index = tuple(np.broadcast_to(axis, np.shape(value)) for axis in index)
        self._check(buffer, index, path, "writes")
        self.arrays[buffer][(*index, ...)] = value
        numbers = self._stores + np.arange(prod(cells))
        own = numbers.reshape((*cells, *(1,) * (np.ndim(value) - len(cells))))
        self.writers[buffer][(*index, ...)] = own
        self._note(buffer, path)
        if cells:  # did one of them write where another one has?
            self._check(buffer, index, path, "writes")

    def content(self, buffer: Buffer) -> Hashable:
        """Equal for two arrays that hold the same, in the same places."""
        array, writers = self.arrays[buffer], self.writers.get(buffer)
        if writers is None:
            return array.shape, array.tobytes()
        written = writers != NOBODY
        return array.shape, array[written].tobytes(), written.tobytes()

    def stored_here(self, buffer: Buffer) -> tuple[Array, Array]:
        """Where the nest that has just run stored, and what."""
        here = self.writers[buffer] >= self._first
        return here, self.arrays[buffer][here]

    def store_again(self, buffer: Buffer, here: Array, values: Array) -> None:
        """Store what a nest stored in an earlier run, in which nothing was amiss."""
        self.arrays[buffer][here] = values
        self.writers[buffer][here] = self._stores
        self._note(buffer, ())

    def _note(self, buffer: Buffer, path: Path) -> None:
        """Number a store: one for each iteration of its path."""
        self._paths.append(path)
        self._starts.append(self._stores)
        self._last[buffer] = self._stores
        self._stores += prod(cells_of(path))

    def unwritten(self, buffer: Buffer) -> tuple[int, ...] | None:
        """The first element of ``buffer`` that nobody wrote, or None."""
        return _first_where(self.writers[buffer] == NOBODY)

    def _check(self, buffer: Buffer, index: Index, path: Path, what: str) -> None:
        if not self.waited and self._nests == self.kept + 1 and what == "reads":
            raise Hazard(f"{buffer.name} is read before the wait: it may not be complete yet")
        writers = self.writers.get(buffer)
        if writers is None:
            return
        here = np.asarray(writers[(*index, ...)])
        if not self.waited:
            self._check_early(buffer, index, here >= self._begun, what)
        if what == "reads" and (here == NOBODY).any():
            place = self._place(buffer, index, _first_where(here == NOBODY) or ())
            raise Hazard(f"{place} is read before it is written")
        stored = self._last.get(buffer, NOBODY) >= self._first
        found = self._met(here, path) if stored else None
        if found is not None:
            dim, at = found
            place = self._place(buffer, index, at)
            raise Hazard(f"an iteration over {dim} {what} {place}, which another one writes")

    def _met(self, here: Array, path: Path) -> tuple[Dim, tuple[int, ...]] | None:
        """The place where iterations of a parallel loop access one element, and the loop's dim.

        ``here``: for each element the number of its last store; ``path`` leads to the access that
        is made now.
        """
        if (here < self._first).all() or self._by_itself(here, path):
            return None
        by_path: dict[int, list[int]] = {}
        for store in np.unique(here[here >= self._first]).tolist():
            by_path.setdefault(bisect_right(self._starts, store) - 1, []).append(store)
        for at, stores in by_path.items():
            places = np.argwhere((here >= stores[0]) & (here <= stores[-1]))
            cells = here[tuple(places.T)] - self._starts[at]
            extents = cells_of(self._paths[at])
            along = np.unravel_index(cells, extents) if extents else ()
            written = _numbers(self._paths[at], along)
            for (run, _, dim), own in zip(path, _numbers(path, [*places.T]).values(), strict=True):
                apart = np.flatnonzero(np.broadcast_to(written.get(run, own) != own, len(places)))
                if len(apart):
                    return dim, tuple(places[apart[0]].tolist())
        return None

    def _by_itself(self, here: Array, path: Path) -> bool:
        """Whether all elements were last stored at once by the iterations that are at them now."""
        at = bisect_right(self._starts, int(here.flat[0])) - 1
        if at < 0 or self._paths[at] != path:
            return False
        cells = cells_of(path)
        own = np.arange(prod(cells)).reshape((*cells, *(1,) * (here.ndim - len(cells))))
        return bool((here == self._starts[at] + own).all())

    def _check_early(self, buffer: Buffer, index: Index, late: Array, what: str) -> None:
        """Raise Hazard where a program that did not wait meets what the nest before still does."""
        if what == "writes":
            raise Hazard(f"{buffer.name} is written before the wait: a nest before may read it yet")
        if late.any():
            place = self._place(buffer, index, _first_where(late) or ())
            raise Hazard(f"{place} is read before the wait: a nest before may not have written it")

    def _place(self, buffer: Buffer, index: Index, at: tuple[int, ...]) -> str:
        shape = np.shape(self.arrays[buffer][(*index, ...)])
        entry = [int(np.broadcast_to(axis, shape)[at]) for axis in index]
        return f"{buffer.name}{entry}"


def cells_of(path: Path) -> tuple[int, ...]:
    """How many iterations run side by side, along each leading axis."""
    return tuple(len(number) for _, number, _ in path if isinstance(number, range))


def _numbers(path: Path, side_by_side: Sequence[Array]) -> dict[int, Any]:
    """For each run of a loop, its iteration, or one of those that run side by side."""
    along = iter(side_by_side)
    return {run: next(along) if isinstance(n, range) else n for run, n, _ in path}


def _first_where(found: Array) -> tuple[int, ...] | None:
    places = np.argwhere(found)
    return tuple(map(int, places[0])) if len(places) else None


def same_version(before: Array | None, now: Array | None) -> bool:
    """True if nothing was written between two versions."""
    return before is None or now is None or bool(np.array_equal(before, now))
