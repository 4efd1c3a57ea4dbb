"""How much of each array kernels touch, also if each of them touches another part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from blockbuster.costs.work import Work, entries
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.program import Issue, Load, Nest, Store, View, statements
from blockbuster.ir.views import AxisView, Strided

Box: TypeAlias = tuple[tuple[int, int], ...]
"""Along each axis of an array the first and the last element that an access touches."""


@dataclass(frozen=True)
class Touched:
    """The part of an array that a kernel touches: ``bytes`` of ``whole``, lying in ``boxes``."""

    bytes: int
    whole: int
    boxes: frozenset[Box]

    def apart(self, others: Iterable[Box]) -> bool:
        """True if it touches nothing in any of ``others``."""
        return not any(_meet(own, other) for own in self.boxes for other in others)


def touched_by(nest: Nest, work: Work, extents: Extents) -> dict[str, Touched]:
    """The part of each array that a nest's kernel touches, by name; ``work`` is its work."""
    boxes: dict[str, set[Box]] = {name: set() for name in work.unique}
    whole = dict.fromkeys(work.unique, 0)
    accesses = (s for s in statements(nest.body) if isinstance(s, Load | Issue | Store))
    for view in dict.fromkeys(stmt.view for stmt in accesses):
        name = view.buffer.name
        boxes[name].add(_box(view, extents))
        whole[name] = max(whole[name], MEMORY[view.buffer.dtype].bytes * entries(view, extents))
    return {
        name: Touched(size, whole[name], frozenset(boxes[name]))
        for name, size in work.unique.items()
    }


def in_order(kernels: Iterable[Mapping[str, Touched]]) -> dict[str, int]:
    """The bytes of each array that kernels touch, in the order of their last use.

    ``kernels``: for each, what it touches of arrays, by name.
    """
    sizes: dict[str, int] = {}
    boxes: dict[str, frozenset[Box]] = {}
    for touched in kernels:
        for name, found in touched.items():
            before, known = sizes.pop(name, 0), boxes.get(name, frozenset())
            again = found.boxes <= known
            size = max(before, found.bytes) if again else before + found.bytes
            sizes[name] = min(size, found.whole)
            boxes[name] = known | found.boxes
    return sizes


def apart(kernels: Sequence[Mapping[str, Touched]], at: int) -> frozenset[str]:
    """The arrays of which a kernel touches nothing that those before it have touched."""
    before = kernels[:at]
    return frozenset(
        name
        for name, found in kernels[at].items()
        if all(found.apart(touched[name].boxes) for touched in before if name in touched)
    )


def _meet(one: Box, other: Box) -> bool:
    if len(one) != len(other):
        return True  # looked at as arrays of other ranks: nobody knows
    pairs = zip(one, other, strict=True)
    return all(first[0] <= second[1] and second[0] <= first[1] for first, second in pairs)


def _box(view: View, extents: Extents) -> Box:
    def along(axis: AxisView) -> tuple[int, int]:
        if axis is None:
            return (0, 0)
        if not isinstance(axis, Strided):
            return (0, extents.size(axis) - 1)
        first = last = axis.start.value(extents.sizes)
        for run in axis.runs:
            last += (extents.size(run.own) - 1) * run.step.value(extents.sizes)
        return (min(first, last), max(first, last))

    return tuple(map(along, view.dims))
