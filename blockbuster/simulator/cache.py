"""The cache between memory and processors: which blocks of arrays it holds.

A cache keeps the most recently used blocks, as many as fit. In a cache of several parts, each part
keeps the blocks that its own processors load, even if another part has them: data that all
processors read are held once in each part. A block that another part holds comes from there and not
from memory. Stored blocks are written to memory when they are evicted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Block(NamedTuple):
    """A block of an array: accesses that cut it alike give equal blocks equal names.

    All that is left of an array that earlier kernels cut otherwise has the name None.
    """

    array: str
    name: Hashable


class Held(NamedTuple):
    """Bytes of a block that are here, and those of them that memory has not."""

    size: float
    stored: float


NOTHING = Held(0.0, 0.0)
OTHER = ""
"""The array that stands for whatever was used before."""


@dataclass
class Part:
    """The blocks of one part, those used last at the end.

    ``left``: the fraction that is here of what was left of an array. ``given_up``: bytes that were
    stored, and had to make room.
    """

    room: float
    blocks: OrderedDict[Block, Held] = field(default_factory=OrderedDict)
    held: float = 0.0
    left: dict[str, float] = field(default_factory=dict)
    given_up: float = 0.0

    def keep(self, block: Block, size: float, *, stored: bool = False) -> None:
        """``size`` bytes of ``block`` are in use now; the oldest blocks make room for them."""
        before = self.blocks.pop(block, NOTHING)
        unwritten = before.stored if before.size else self.found_again(block.array, size)
        size = max(before.size, size)
        self.blocks[block] = Held(size, size if stored else unwritten)
        self.held += size - before.size
        while self.held > self.room:
            self._make_room()

    def found_again(self, array: str, size: float) -> float:
        """A block of so many bytes of what was left of an array has a name now.

        Returns those of its bytes that memory has not.
        """
        if array not in self.left:
            return 0.0
        return self._shrink(Block(array, None), size * self.left[array])

    def drop(self, block: Block) -> None:
        """``block`` is no longer here."""
        self.held -= self.blocks.pop(block, NOTHING).size

    def _make_room(self) -> None:
        oldest = next(iter(self.blocks))
        held, over = self.blocks[oldest], self.held - self.room
        if oldest.name is None and held.size > over:
            self.given_up += self._shrink(oldest, over)
            self.left[oldest.array] *= 1.0 - over / held.size
            return
        del self.blocks[oldest]
        self.held -= held.size
        self.given_up += held.stored
        if oldest.name is None:
            del self.left[oldest.array]

    def _shrink(self, rest: Block, by: float) -> float:
        """Take bytes from what was left of an array; those of them that memory has not."""
        held = self.blocks[rest]
        by = min(by, held.size)
        stored = held.stored * by / held.size if held.size else 0.0
        self.blocks[rest] = Held(held.size - by, held.stored - stored)
        self.held -= by
        return stored

    def settle(self, sizes: Mapping[str, int]) -> None:
        """Forget how the arrays, of these sizes, are cut: another kernel cuts them otherwise."""
        found: dict[str, Held] = {}
        for block, held in self.blocks.items():
            before = found.pop(block.array, NOTHING)
            size = min(before.size + held.size, sizes.get(block.array, self.room))
            found[block.array] = Held(size, min(before.stored + held.stored, size))
        self.hold(found, sizes)

    def hold(self, arrays: Mapping[str, Held], sizes: Mapping[str, int]) -> None:
        """Hold so much of arrays, which have these sizes, and nothing else."""
        self.blocks = OrderedDict((Block(name, None), held) for name, held in arrays.items())
        self.left = {name: h.size / sizes.get(name, self.room) for name, h in arrays.items()}
        self.held = sum(held.size for held in arrays.values())


class Cache:
    """``room``: bytes of all parts together."""

    def __init__(self, room: float, parts: int) -> None:
        self.parts = tuple(Part(room / parts) for _ in range(parts))
        self._before = 0.0

    def load(self, processor: int, block: Block, size: int) -> float:
        """Bytes of ``block`` that have to come from memory for a processor."""
        own = self.parts[processor % len(self.parts)]
        present = own.blocks.get(block, NOTHING).size
        if present < size:
            present = max(part.blocks.get(block, NOTHING).size for part in self.parts)
        missing = max(0.0, size - present)
        if missing and not present:
            missing *= 1.0 - min(1.0, sum(part.left.get(block.array, 0.0) for part in self.parts))
        own.keep(block, size)
        return missing

    def store(self, processor: int, block: Block, size: int) -> None:
        """A processor has written ``block``: what other parts have of it is old."""
        own = self.parts[processor % len(self.parts)]
        for part in self.parts:
            if part is not own:
                part.drop(block)
                part.found_again(block.array, size)
        own.keep(block, size, stored=True)

    def given_up(self) -> float:
        """Bytes that were stored and had to make room, since this was asked last."""
        found = sum(part.given_up for part in self.parts)
        for part in self.parts:
            part.given_up = 0.0
        return found

    def unwritten(self) -> float:
        """Bytes that programs have stored since the start, and that memory has not yet."""
        stored = (
            held.stored
            for part in self.parts
            for block, held in part.blocks.items()
            if block.array != OTHER
        )
        return max(0.0, sum(stored) - self._before)

    def settle(self, sizes: Mapping[str, int]) -> None:
        """A kernel has ended; ``sizes``: bytes of the arrays."""
        for part in self.parts:
            part.settle(sizes)

    def lack(self, arrays: Collection[str]) -> None:
        """Until the next ``settle``, what is used of these arrays is not what was left of them."""
        for part in self.parts:
            part.left.update(dict.fromkeys(part.left.keys() & arrays, 0.0))

    def warm(self, arrays: dict[str, int], split: frozenset[str], stored: frozenset[str]) -> None:
        """Hold arrays of these sizes, as far as they fit.

        They are named in the order of their last use, the oldest first. Each part has its share of
        those in ``split``, and all of the others. Memory has not what is ``stored``.
        """
        count = len(self.parts)
        for part in self.parts:
            shares: dict[str, Held] = {}
            room = part.room
            for name in reversed(arrays):
                size = arrays[name]
                share = size / count if name in split else float(size)
                room -= share
                if room < 0:
                    break
                shares[name] = Held(share, share if name in stored else 0.0)
            part.hold(dict(reversed(shares.items())), arrays)
        self._before = 0.0
        self._before = self.unwritten()

    def flushed(self, unwritten: float) -> None:
        """Be full of other data, of which memory has not got that fraction yet."""
        for part in self.parts:
            part.hold({OTHER: Held(part.room, part.room * unwritten)}, {})
