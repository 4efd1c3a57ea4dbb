"""reduction in a loop over several blocks a thread: rows that Triton 3.6 exchanges.

Its pass OptimizeThreadLocality turns a reduction in a loop into one behind the loop. To do so it
reshapes a tile from (..., kept, reduced) to (..., kept, threads, elements), and each thread keeps
its registers in order. The two layouts count registers in different orders: if a thread holds
several blocks along the kept axis, values change rows (bench/repro/thread_locality.py). This module
reads both layouts from Triton's text and compares them element by element.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

NAME = "reduction in a loop over several blocks a thread"
LAYOUT = re.compile(
    r"^#(\w+) = #\w+\.blocked<\{sizePerThread = \[([\d, ]+)\], threadsPerWarp = \[([\d, ]+)\], "
    r"warpsPerCTA = \[([\d, ]+)\], order = \[([\d, ]+)\]",
    re.MULTILINE,
)
RESHAPE = re.compile(
    r"tt\.reshape .*allow_reorder.* : tensor<([\dx]+)x\w+, #(\w+)> -> tensor<([\dx]+)x\w+, #(\w+)>"
)


@dataclass(frozen=True)
class Blocked:
    """A layout: elements of a thread, threads of a warp, warps; ``order``: the fastest axis first.

    Blocks of that many elements repeat until a tensor is covered.
    """

    elements: tuple[int, ...]
    threads: tuple[int, ...]
    warps: tuple[int, ...]
    order: tuple[int, ...]

    def registers(self, shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The offsets of one thread's registers, in their order."""
        block = [e * t * w for e, t, w in self._per_axis()]
        repeats = tuple(max(1, n // b) for n, b in zip(shape, block, strict=True))
        for repeat in _counted(repeats, self.order):
            for element in _counted(self.elements, self.order):
                yield tuple(r * b + e for r, b, e in zip(repeat, block, element, strict=True))

    def starts(self) -> Iterator[tuple[int, ...]]:
        """The first element of each thread, warp by warp."""
        for warp in _counted(self.warps, self.order):
            for thread in _counted(self.threads, self.order):
                yield tuple(
                    (w * t_ + t) * e
                    for w, t, (e, t_, _) in zip(warp, thread, self._per_axis(), strict=True)
                )

    def _per_axis(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.elements, self.threads, self.warps, strict=True)


def exchanged_rows(ttgir: str) -> tuple[str, ...]:
    """Each reshape in Triton's text that moves a value to another row, in words."""
    layouts = {name: Blocked(*map(_numbers, fields)) for name, *fields in LAYOUT.findall(ttgir)}
    found = []
    for shape, before, split, after in RESHAPE.findall(ttgir):
        old, new = _numbers(shape, "x"), _numbers(split, "x")
        if before not in layouts or after not in layouts or len(new) != len(old) + 1:
            continue  # no reshape of that pass
        if not keeps_rows(old, layouts[before], new, layouts[after]):
            found.append(f"{NAME}: rows of its {shape} tile are exchanged")
    return tuple(dict.fromkeys(found))


def keeps_rows(
    shape: tuple[int, ...], layout: Blocked, split: tuple[int, ...], split_layout: Blocked
) -> bool:
    """True if reducing the last two axes of the split tensor reduces the last one of the first.

    Both are held by the same threads in the same registers, in order.
    """
    held: dict[tuple[int, ...], tuple[int, ...]] = {}
    registers = list(layout.registers(shape))
    split_registers = list(split_layout.registers(split))
    if len(registers) != len(split_registers):
        return False
    for start, split_start in zip(layout.starts(), split_layout.starts(), strict=True):
        for offset, split_offset in zip(registers, split_registers, strict=True):
            old, new = _at(start, offset, shape), _at(split_start, split_offset, split)
            if old[:-1] != new[:-2] or held.setdefault(new, old) != old:
                return False
    return len(set(held.values())) == math.prod(shape)


def _at(start: tuple[int, ...], offset: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple((s + o) % n for s, o, n in zip(start, offset, shape, strict=True))


def _counted(counts: tuple[int, ...], order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All index tuples below ``counts``; the first axis of ``order`` runs fastest."""
    slowest_first = order[::-1]
    place = [slowest_first.index(axis) for axis in range(len(order))]
    for index in itertools.product(*(range(counts[axis]) for axis in slowest_first)):
        yield tuple(index[p] for p in place)


def _numbers(text: str, separator: str = ",") -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(separator))
