"""The results of nests in one draw: a nest that reads the same arrays again is not run again.

A move changes few nests of a program, and most nests read the same arrays as before. A semantics is
a function of its arguments, so the remembered result is the one that a run would compute. A nest
that may begin before the one before it has ended always runs, because only a run shows its waits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache

from blockbuster.emit.interpret.memory import Memory
from blockbuster.emit.tile.dataflow import loaded, stored
from blockbuster.emit.tile.each_nest import Same
from blockbuster.emit.tile.program import Buffer, Nest, Stmt
from blockbuster.emit.tile.verify_waits import is_dependent
from blockbuster.interp.degree import Noted
from blockbuster.interp.layout import Array


@dataclass(frozen=True)
class _Made:
    """The elements that a nest stored in each array, and what its run noted."""

    arrays: tuple[tuple[Buffer, Array, Array], ...]
    noted: Noted


class Remembered:
    """Runs of nests under one semantics, whose items are numbers and no objects: arrays are told
    apart by their bytes. ``noted``: where that semantics notes what degrees add to the error.
    """

    def __init__(self, noted: Noted | None = None) -> None:
        self._noted = noted or Noted()
        self._made: dict[Hashable, _Made] = {}

    def run(self, nest: Nest, where: Hashable, memory: Memory, act: Callable[[], None]) -> None:
        """Let ``act`` run the nest, unless it met the same arrays before. ``where``: the sizes and
        blocks at hand. Raises what ``act`` raises, and then remembers nothing.
        """
        if is_dependent(nest):
            act()
            return
        buffers = _accessed(Same(nest.body))
        key = (nest.body, nest.grid, where, *map(memory.content, buffers))
        known = self._made.get(key)
        if known is None:
            before = self._noted.copy()
            act()
            arrays = tuple((b, *memory.stored_here(b)) for b in stored(nest.body))
            self._made[key] = _Made(arrays, self._noted.since(before))
            return
        for buffer, here, values in known.arrays:
            memory.store_again(buffer, here, values)
        self._noted.add(known.noted)


@lru_cache(maxsize=256)
def _accessed(body: Same[tuple[Stmt, ...]]) -> tuple[Buffer, ...]:
    return (*loaded(body.one), *stored(body.one))
