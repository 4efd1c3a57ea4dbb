"""The cache between memory and processors: which blocks of arrays are still there.

A cache keeps the blocks that were used last, as many as fit. One of several parts keeps what its
own processors load, also where another part has it: data that all read is held once in each. What
a part has not, but another has, comes from there and not from memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Block(NamedTuple):
    """A block of an array: accesses that cut it alike give equal blocks equal names."""

    array: str
    name: Hashable


@dataclass
class Part:
    """The blocks of one part with their bytes, those used last at the end.

    ``left``: of each array the fraction that earlier kernels left here, under the block None.
    """

    room: float
    blocks: OrderedDict[Block, float] = field(default_factory=OrderedDict)
    held: float = 0.0
    left: dict[str, float] = field(default_factory=dict)

    def keep(self, block: Block, size: float) -> None:
        """``size`` bytes of ``block`` are in use now; the oldest blocks make room for them."""
        before = self.blocks.pop(block, 0.0)
        if not before and block.array in self.left:
            self._found_again(block.array, size)
        self.blocks[block] = size = max(before, size)
        self.held += size - before
        while self.held > self.room:
            oldest, bytes_ = self.blocks.popitem(last=False)
            self.held -= bytes_
            if oldest.name is None:
                del self.left[oldest.array]

    def _found_again(self, array: str, size: float) -> None:
        rest = Block(array, None)
        found = min(self.blocks[rest], size * self.left[array])
        self.blocks[rest] -= found
        self.held -= found

    def drop(self, block: Block) -> None:
        """``block`` is no longer here."""
        self.held -= self.blocks.pop(block, 0.0)

    def settle(self, sizes: Mapping[str, int]) -> None:
        """Forget how the arrays, of these sizes, are cut: another kernel cuts them otherwise."""
        found: dict[str, float] = {}
        for block, size in self.blocks.items():
            found[block.array] = found.pop(block.array, 0.0) + size
        self.hold({name: min(size, sizes[name]) for name, size in found.items()}, sizes)

    def hold(self, arrays: Mapping[str, float], sizes: Mapping[str, int]) -> None:
        """Hold so many bytes of arrays, which have these sizes, and nothing else."""
        self.blocks = OrderedDict((Block(name, None), held) for name, held in arrays.items())
        self.left = {name: held / sizes[name] for name, held in arrays.items()}
        self.held = sum(arrays.values())


class Cache:
    """``room``: bytes of all parts together."""

    def __init__(self, room: float, parts: int) -> None:
        self.parts = tuple(Part(room / parts) for _ in range(parts))

    def load(self, processor: int, block: Block, size: int) -> int:
        """Bytes of ``block``, whole ones, that have to come from memory for a processor."""
        own = self.parts[processor % len(self.parts)]
        present = own.blocks.get(block, 0.0)
        if present < size:
            present = max(part.blocks.get(block, 0.0) for part in self.parts)
        missing = size - present
        if missing > 0 and not present:
            missing *= 1.0 - min(1.0, sum(part.left.get(block.array, 0.0) for part in self.parts))
        own.keep(block, size)
        return max(0, round(missing))

    def store(self, processor: int, block: Block, size: int) -> None:
        """A processor has written ``block``: what other parts have of it is old."""
        own = self.parts[processor % len(self.parts)]
        for part in self.parts:
            if part is not own:
                part.drop(block)
        own.keep(block, size)

    def settle(self, sizes: Mapping[str, int]) -> None:
        """A kernel has ended; ``sizes``: bytes of the arrays."""
        for part in self.parts:
            part.settle(sizes)

    def warm(self, arrays: Mapping[str, int]) -> None:
        """Every part holds arrays of these sizes, named in the order of their last use."""
        for part in self.parts:
            part.hold(arrays, arrays)
