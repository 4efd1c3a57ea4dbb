"""The arrays of a running tile program: who wrote each element, and whether a reader may see it.

Outputs and workspaces start without values. Reading an element raises ``Hazard`` if it has not been
written, or if a parallel iteration that runs at the same time writes it. So no semantics needs a
value for "not written".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from blockbuster.emit.tile.program import Buffer
from blockbuster.errors import VerifyError
from blockbuster.interp.layout import Array
from blockbuster.ir.types import Dim

Path = tuple[tuple[int, int | range, Dim], ...]
"""The parallel iterations around a statement: number of the loop's run, of the iteration, dim.

A range stands for all iterations of a run, side by side along a leading axis of each index.
"""
Index = tuple[Any, ...]

NOBODY = -1


class Hazard(VerifyError):
    """A tile program reads what is not there, not there yet, or not there any more."""


@dataclass
class Memory:
    """Arrays by buffer; ``writers[buffer]`` has for each element the number of its last store.

    ``waited``: whether the program that runs has waited for the nest before its own, if it has to.
    ``kept``: how many nests run before the call begins, and are complete then.
    """

    arrays: dict[Buffer, Array] = field(default_factory=dict)
    writers: dict[Buffer, Array] = field(default_factory=dict)
    _paths: list[Path] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _stores: int = 0
    _first: int = 0
    _begun: int = 0
    _nests: int = 0
    waited: bool = True
    kept: int = 0

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
        self._check(buffer, index, path, "reads")
        return np.array(self.arrays[buffer][(*index, ...)])

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
        self._note(path, prod(cells))
        self._check_apart(buffer, index, path, np.broadcast_to(own, np.shape(value)))

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
        self._note((), 1)

    def _note(self, path: Path, cells: int) -> None:
        """Note the path of a store, or of one for each of so many iterations."""
        self._paths.append(path)
        self._starts.append(self._stores)
        self._stores += cells

    def _path(self, store: int) -> Path:
        """The parallel iterations of a store."""
        at = bisect_right(self._starts, store) - 1
        return cell_path(self._paths[at], store - self._starts[at])

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
        for store in np.unique(here[here >= self._first]).tolist():
            met = here == store
            cells = cells_of(path)
            rows = np.argwhere(met)[:, : len(cells)] if cells else np.zeros((1, 0), int)
            for cell in np.unique(np.ravel_multi_index(rows.T, cells) if cells else [0]).tolist():
                self._refuse(buffer, index, (self._path(store), cell_path(path, cell)), met, what)

    def _refuse(
        self, buffer: Buffer, index: Index, paths: tuple[Path, Path], met: Array, what: str
    ) -> None:
        """Raise Hazard where two iterations that run at the same time meet."""
        dim = _apart(*paths)
        if dim is not None:
            place = self._place(buffer, index, _first_where(met) or ())
            raise Hazard(f"an iteration over {dim} {what} {place}, which another one writes")

    def _check_apart(self, buffer: Buffer, index: Index, path: Path, own: Array) -> None:
        """Raise Hazard where iterations that ran side by side have just written one element."""
        if not cells_of(path):
            return
        last = np.broadcast_to(self.writers[buffer][(*index, ...)], own.shape)
        lost = last != own
        if lost.any():
            at = _first_where(lost) or ()
            paths = self._path(int(last[at])), self._path(int(own[at]))
            self._refuse(buffer, index, paths, lost, "writes")

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


def cell_path(path: Path, cell: int) -> Path:
    """The path of one of the iterations that run side by side."""
    cells = cells_of(path)
    numbers = iter(np.unravel_index(cell, cells) if cells else ())
    return tuple(
        (run, int(next(numbers)) if isinstance(number, range) else number, dim)
        for run, number, dim in path
    )


def _first_where(found: Array) -> tuple[int, ...] | None:
    places = np.argwhere(found)
    return tuple(map(int, places[0])) if len(places) else None


def _apart(written: Path, read: Path) -> Dim | None:
    """The dim of a parallel loop in whose iterations both run, but not in the same one."""
    iterations = {run: number for run, number, _ in written}
    for run, number, dim in read:
        if iterations.get(run, number) != number:
            return dim
    return None


def same_version(before: Array | None, now: Array | None) -> bool:
    """True if nothing was written between two versions."""
    return before is None or now is None or bool(np.array_equal(before, now))
