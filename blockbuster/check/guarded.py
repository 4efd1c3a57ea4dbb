"""Copies of arrays between guard zones: they show what a kernel reads or writes outside its arrays.

    | guard zone | element, gap, element, gap, element | guard zone |

All bytes that belong to no element hold a pattern. A changed pattern has been written. A pattern
that was read shows in the results, because it changes from turn to turn: NaN, then a large number,
then its negative. Guard zones of outputs hold other patterns than those of inputs, so a kernel that
copies one into the other is seen, too. They are NaN in one turn and ordinary numbers in the others,
because NaN plus a number has the same bits as before.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.runtime.launch import from_host, to_host
from blockbuster.runtime.tensors import dtype_name

Array = Any  # a NumPy array or a torch tensor
Bytes = NDArray[np.uint8]

ALIGN = 64  # bytes: an address is kept up to multiples of it
LEAST_ZONE, MOST_ZONE = 2**15, 2**20  # bytes; between these a zone is as long as its array
WORDS = (1, 2, 4, 8)  # bytes of elements that are compared as whole numbers
TURNS = 3
# the first bytes of a pattern, the most significant one first, for each turn
FLOATS = {
    "input": ("ffffffffffffffff", "7a5a5a5a5a5a5a5a", "fa5a5a5a5a5a5a5a"),
    "output": ("7ffe5a5a5a5a5a5a", "3fa5a5a5a5a5a5a5", "3fa5a5a5a5a5a5a5"),
    "unwritten": ("7ffd5a5a5a5a5a5a",) * TURNS,
}
OTHERS = {
    "input": ("7f" * 8, "5b" * 8, "80" * 8),
    "output": ("6d" * 8, "2b" * 8, "a9" * 8),
    "unwritten": ("7e" * 8, "3c" * 8, "91" * 8),
}
TRUTHS = OTHERS | dict.fromkeys(("input", "unwritten"), ("01", "00", "01"))


@dataclass(frozen=True)
class Packed:
    """An array on its way to a call: its numbers, and how it shall lie in memory.

    ``device`` is None for NumPy arrays, whose ``dtype`` is NumPy's; that of tensors is a name.
    ``steps`` are in bytes; ``lead`` is the address of the first element modulo ``ALIGN``. An output
    has no ``data``: its elements hold a pattern until they are written.
    """

    name: str
    dtype: Any
    itemsize: int
    device: str | None
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    lead: int
    data: NDArray[np.void] | None = None

    @property
    def is_float(self) -> bool:
        """True for floating-point numbers."""
        return "float" in self.dtype_name

    @property
    def dtype_name(self) -> str:
        """The name of the dtype."""
        return str(getattr(self.dtype, "name", self.dtype))


def packed(name: str, array: Array) -> Packed:
    """A copy of an array, with its layout."""
    shell = laid(name, array)
    if isinstance(array, np.ndarray):
        flat = np.array(array, order="C", subok=False).reshape(-1)
    else:
        own = array.detach().new_empty((array.numel(),))  # contiguous() keeps odd strides of size 1
        own.copy_(array.detach().reshape(-1))
        flat = np.array(to_host(own.view(sys.modules["torch"].uint8)))
    return replace(shell, data=flat.view(f"V{shell.itemsize}"))


def laid(name: str, array: Array) -> Packed:
    """The layout of an array, without its numbers."""
    if isinstance(array, np.ndarray):
        lead = array.ctypes.data % ALIGN
        return Packed(name, array.dtype, array.itemsize, None, array.shape, array.strides, lead)
    size, lead = array.element_size(), array.data_ptr() % ALIGN
    steps = tuple(size * step for step in array.stride())
    shape, device = tuple(array.shape), str(array.device)
    return Packed(name, dtype_name(array), size, device, shape, steps, lead)


def blank(name: str, like: Packed, *, padding: int = 0) -> Packed:
    """An output to be written, with gaps of ``padding`` elements between its rows."""
    steps, step = [], like.itemsize
    for at, size in enumerate(reversed(like.shape)):
        steps.append(step)
        step *= max(size, 1) + (padding if at == 0 else 0)
    return replace(like, name=name, steps=tuple(reversed(steps)), lead=0, data=None)


def unaligned(array: Packed) -> Packed:
    """The same array one element behind an address that is a multiple of ``ALIGN``."""
    return replace(array, lead=array.itemsize % ALIGN)


@dataclass(frozen=True)
class Guarded:
    """An array between guard zones. ``memory`` holds all of it, ``before`` what that held first.

    ``start`` is where the first element lies; ``low`` and ``high`` are where the zones end.
    """

    packed: Packed
    view: Array
    memory: Array
    before: Bytes
    start: int
    low: int
    high: int
    unwritten: bytes

    def problems(self) -> Iterator[str]:
        """The forbidden changes that a call made to an input or an output."""
        after = self._now()
        if self.packed.data is not None and _same(self.before, after):
            return
        changed = self.before != after
        yield from self._outside(changed)
        name, size = self.packed.name, math.prod(self.packed.shape)
        if self.packed.data is not None:
            count = int(self._elements(changed).any(-1).sum())
            if count:
                yield (
                    f"changes its input {name}: {count} of {size} elements;"
                    " the launcher has to copy what it works on in place"
                )
        elif self.packed.is_float:
            count = self._unwritten(after)
            if count:
                yield (
                    f"leaves {count} of {size} elements of {name} as they were before the call:"
                    " not written, or computed from what was there"
                )

    def overruns(self) -> Iterator[str]:
        """The places outside of the elements where a call wrote."""
        after = self._now()
        if not _same(self.before, after):
            yield from self._outside(self.before != after)

    def _now(self) -> Bytes:
        return self.memory if isinstance(self.memory, np.ndarray) else to_host(self.memory)

    def _outside(self, changed: Bytes) -> Iterator[str]:
        name, size = self.packed.name, self.packed.itemsize
        ahead, behind = changed[: self.low], changed[self.high :]
        if ahead.any():
            reach = _reach(np.flatnonzero(ahead[::-1]) // size + 1, "before its first")
            yield f"writes before the start of {name}: {reach}"
        if behind.any():
            reach = _reach(np.flatnonzero(behind) // size + 1, "after its last")
            yield f"writes past the end of {name}: {reach}"
        if _has_gaps(self.packed):
            gaps = changed.copy()
            self._elements(gaps)[...] = False
            count = int(gaps[self.low : self.high].sum())
            if count:
                yield f"writes into the gaps between the elements of {name}: {count} bytes"

    def _unwritten(self, after: Bytes) -> int:
        """How many elements hold the pattern of what nobody has written."""
        shape, steps, size = self.packed.shape, self.packed.steps, self.packed.itemsize
        if size in WORDS:
            words = np.ndarray(shape, f"u{size}", after, self.start, steps)
            return int((words == np.frombuffer(self.unwritten, words.dtype)).sum())
        left = np.frombuffer(self.unwritten, np.uint8)
        return int((self._elements(after) == left).all(-1).sum())

    def _elements(self, block: NDArray[Any]) -> NDArray[Any]:
        """The bytes of each element in a block as large as ``memory``."""
        shape, steps = self.packed.shape, self.packed.steps
        size = self.packed.itemsize
        return np.ndarray((*shape, size), block.dtype, block, self.start, (*steps, 1))


def guarded(array: Packed, turn: int) -> Guarded:
    """The array in new memory, between guard zones that hold the patterns of this turn."""
    first, length = _span(array)
    zone = min(max(LEAST_ZONE, length), MOST_ZONE)
    block = np.ndarray(-(-(2 * zone + length) // ALIGN) * ALIGN + ALIGN, np.uint8)
    on_host = array.device in (None, "cpu")
    address = block.ctypes.data if on_host else 0  # torch aligns what it allocates on a GPU
    start = zone - first
    start += (array.lead - address - start) % ALIGN
    role = "output" if array.data is None else "input"
    _fill(block, pattern(array, role, turn), start)
    unwritten = pattern(array, "unwritten", turn)
    elements = np.ndarray(array.shape, f"V{array.itemsize}", block, start, array.steps)
    if array.data is None:
        elements[...] = np.frombuffer(unwritten, elements.dtype)
    else:
        elements[...] = array.data.reshape(array.shape)
    before = block.copy()
    low = start + first
    ends = (start, low, low + length, unwritten)
    if array.device is None:
        view = np.ndarray(array.shape, array.dtype, block, start, array.steps)
        return Guarded(array, view, block, before, *ends)
    memory = from_host(block, "uint8", array.device)
    typed = memory.view(getattr(sys.modules["torch"], array.dtype))
    steps = [step // array.itemsize for step in array.steps]
    view = typed.as_strided(array.shape, steps, start // array.itemsize)
    return Guarded(array, view, memory, before, *ends)


def _same(left: Bytes, right: Bytes) -> bool:
    """True if no byte differs; compared in words, which are fewer."""
    return bool((left.view(np.uint64) == right.view(np.uint64)).all())


def _fill(block: Bytes, one: bytes, start: int) -> None:
    """Fill memory with a pattern that has its first byte at ``start``."""
    size = len(one)
    if size in WORDS and start % size == 0:
        block.view(f"u{size}")[:] = np.frombuffer(one, f"u{size}")
    else:
        block[:] = np.resize(np.roll(np.frombuffer(one, np.uint8), start % size), len(block))


def pattern(array: Packed, role: str, turn: int) -> bytes:
    """The bytes of one element that nobody has written; ``role``: input, output, unwritten."""
    kind = "float" if array.is_float else array.dtype_name
    return pattern_of(kind, array.itemsize, role, turn)


def pattern_of(kind: str, size: int, role: str, turn: int) -> bytes:
    """The same for an element of ``size`` bytes; ``kind``: "float", "bool", or any other."""
    table = FLOATS if kind == "float" else TRUTHS if kind == "bool" else OTHERS
    found = bytes.fromhex(table[role][turn % TURNS])
    return (found * -(-size // len(found)))[:size][::-1]


def _span(array: Packed) -> tuple[int, int]:
    """The bytes that elements cover: the first, relative to the first element, and how many."""
    if 0 in array.shape:
        return 0, 0
    ends = [step * (size - 1) for step, size in zip(array.steps, array.shape, strict=True)]
    return sum(end for end in ends if end < 0), sum(map(abs, ends)) + array.itemsize


def _has_gaps(array: Packed) -> bool:
    """False if elements follow one another without a gap; they may overlap, or be the same ones."""
    covered = array.itemsize
    pairs = zip(array.steps, array.shape, strict=True)
    for step, size in sorted((abs(step), size) for step, size in pairs if step and size > 1):
        if step > covered:
            return True
        covered += step * (size - 1)
    return False


def _reach(found: NDArray[Any], where: str) -> str:
    """How many elements of a guard zone were written, and how near the nearest is."""
    count, nearest = len(np.unique(found)), int(found.min())
    return (
        f"{count} element{'' if count == 1 else 's'}, the nearest is {nearest}"
        f" element{'' if nearest == 1 else 's'} {where}"
    )
