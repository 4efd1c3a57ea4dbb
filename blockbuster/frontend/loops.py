"""Merging loops into one, unless one of them must run around the other.

In a fully fused program, a fold's loop runs inside the loops over the axes of its result, and
inside all loops around these. Sets of loops are bits of integers, so a query costs a few operations
on words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Loop = int
"""A number, in the order in which loops were made."""


class Bar(NamedTuple):
    """A fold's loop is not to be one with the loops ``outside``; ``result``: axes of the result.

    It may be, for who reads a tile that has all axes of the result: where the two loops are one,
    the result is stored, and that is less than the tile.
    """

    outside: int
    result: tuple[Loop, ...]


class Loops:
    """Which loops are one, and which are not to be. Lists go by representative."""

    def __init__(self) -> None:
        self._parent: list[Loop] = []
        self._members: list[int] = []
        self._beside: list[int] = []
        """Loops of the same tile as a member."""
        self._outside: list[int] = []
        """All that the bars name."""
        self._bars: list[list[Bar]] = []

    def new(self) -> Loop:
        """A loop of its own."""
        loop = len(self._parent)
        self._parent.append(loop)
        self._members.append(1 << loop)
        self._beside.append(0)
        self._outside.append(0)
        self._bars.append([])
        return loop

    def find(self, loop: Loop) -> Loop:
        """The loop that stands for all that are one with ``loop``."""
        while self._parent[loop] != loop:
            self._parent[loop] = self._parent[self._parent[loop]]
            loop = self._parent[loop]
        return loop

    def found(self, loops: Sequence[Loop]) -> tuple[Loop, ...]:
        """The representative of each of ``loops``."""
        return tuple(map(self.find, loops))

    def keep_apart(self, loops: Sequence[Loop]) -> None:
        """Let no two of these new loops become one: they are axes of one tile."""
        together = sum(1 << loop for loop in loops)
        for loop in loops:
            self._beside[loop] |= together & ~(1 << loop)

    def fold_inside(self, folded: Loop, result: Sequence[Loop], around: Sequence[int]) -> int:
        """Bar the new loop ``folded`` from what it runs in, which is returned as bits.

        ``result`` are the loops along the axes of the fold's result, ``around`` what runs around
        each of them.
        """
        inside = 0
        for loop, outer in zip(result, around, strict=True):
            inside |= outer | 1 << loop
            self._beside[folded] |= 1 << loop
        if inside:
            self._outside[folded] = inside
            self._bars[folded].append(Bar(inside, tuple(result)))
        return inside

    def unite(self, ones: Sequence[Loop], others: Sequence[Loop]) -> bool:
        """Make the loops of two reads one, pair by pair, all or none; returns True if done."""
        left, right = self.found(ones), self.found(others)
        at = {loop: place for place, loop in enumerate(left)}
        tile = {*left, *right}
        for place, (one, other) in enumerate(zip(left, right, strict=True)):
            if at.get(other, place) != place:
                return False
            if one != other and (
                self._bars_of(one, other, tile) or self._bars_of(other, one, tile)
            ):
                return False
        for one, other in zip(left, right, strict=True):
            self._merge(one, other)
        return True

    def _bars_of(self, one: Loop, other: Loop, tile: set[Loop]) -> bool:
        """True if a member of ``one`` is not to be one with a member of ``other``."""
        members = self._members[other]
        if self._beside[one] & members:
            return True
        if not self._outside[one] & members:
            return False
        barring = (bar for bar in self._bars[one] if bar.outside & members)
        return any(not tile.issuperset(self.found(bar.result)) for bar in barring)

    def _merge(self, one: Loop, other: Loop) -> None:
        if one != other:
            first, second = sorted((one, other))
            self._parent[second] = first
            self._members[first] |= self._members[second]
            self._beside[first] |= self._beside[second]
            self._outside[first] |= self._outside[second]
            self._bars[first] += self._bars[second]
