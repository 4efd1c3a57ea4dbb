"""Fingerprints of tile programs without names: programs with equal ones share measured results.

Arrays and dims are numbered in the order of the program's text, and names of tiles are left out.
Dims keep their primes. Schedules name dims, so they are written and read with those numbers, too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.show import show_tiles
from blockbuster.emit.tile.trips import sized
from blockbuster.ir.types import Dim

DIGITS = 24  # of a hash, in hexadecimal
TILE = re.compile(r"\b\w+_(\d+)\b")  # the user's word for a tile, and its number
ACCESS = re.compile(r" as \w+")  # the user's word for an access
NAME = re.compile(r"[^\W\d]\w*")
BEHIND = r"(?=_chunks?\d*(?!\w)|(?!\w))"  # chunks of a dim are named after it (chunk_loops.py)


@dataclass(frozen=True)
class Fingerprint:
    """A tile program up to the names of its arrays, dims and tiles."""

    program: TileProgram

    @cached_property
    def text(self) -> str:
        """The program's text with numbers for names, in one line."""
        found = self._numbered
        kept = NAME.sub(lambda word: found.get(word[0], word[0]), self._shown)
        return " ".join(ACCESS.sub("", TILE.sub(r"t\1", kept)).split())

    @cached_property
    def digest(self) -> str:
        """A hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:DIGITS]

    @cached_property
    def dims(self) -> Mapping[Dim, str]:
        """The numbered name of each size class, in their order."""
        dims = {*sized(self.program)}
        found = {name: new for name, new in self._numbered.items() if name in dims}
        return dict(sorted(found.items(), key=lambda pair: int(pair[1][1:])))

    def numbered(self, schedule: str) -> str:
        """A schedule of the program with numbered dims."""
        return _renamed(schedule, self.dims)

    def named(self, schedule: str) -> str:
        """A schedule with numbered dims as one of this program."""
        return _renamed(schedule, {new: name for name, new in self.dims.items()})

    @cached_property
    def _shown(self) -> str:
        return show_tiles(self.program)

    @cached_property
    def _numbered(self) -> Mapping[str, str]:
        """Numbers for arrays and dims: a0, a1, ... and d0, d1, ..."""
        program, dims = self.program, {*sized(self.program)}
        buffers = (*program.inputs, *program.outputs, *program.workspaces)
        arrays = {buffer.name for buffer in buffers} - dims
        found: dict[str, str] = {}
        count = {"a": 0, "d": 0}
        for word in NAME.findall(self._shown):
            if word in found or not (word in dims or word in arrays):
                continue
            kind = "d" if word in dims else "a"
            found[word] = f"{kind}{count[kind]}"
            count[kind] += 1
        return found


def _renamed(schedule: str, names: Mapping[str, str]) -> str:
    if not names:
        return schedule
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    known = re.compile(rf"(?<!\w)({'|'.join(longest_first)}){BEHIND}")
    return known.sub(lambda word: names[word[1]], schedule)
