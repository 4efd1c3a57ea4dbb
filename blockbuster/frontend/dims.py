"""The dims of a trace: which axes are one dim, decided by the operations that meet them.

A union-find that lives as long as one trace. Named dims unify only with themselves; the unnamed
axes of example arrays unify with what they meet. Raw dims are words: a name, or ``?0``, ``?1``, ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, product
from string import ascii_uppercase

from blockbuster.frontend.program import Axis, Shape, show_shape
from blockbuster.frontend.source import Refused
from blockbuster.ir.types import Dim


class DimTable:
    """Which raw dims are the same, and what is known of their sizes."""

    def __init__(self) -> None:
        self._parent: dict[Dim, Axis] = {}
        self._extent: dict[Dim, int] = {}
        self._fixed: dict[Dim, None] = {}

    def named(self, name: Dim, size: int | None = None) -> Dim:
        """The dim called ``name``; ``size`` fixes its number of elements."""
        self._parent.setdefault(name, name)
        if size is not None:
            if self._extent.setdefault(name, size) != size:
                raise Refused(f"{name} has sizes {self._extent[name]} and {size}")
            self._fixed[name] = None
        return name

    def unnamed(self, extent: int, *, fixed: bool) -> Dim:
        """A fresh dim of ``extent`` elements; ``fixed`` if the program is for that size only."""
        raw = f"?{len(self._parent)}"
        self._parent[raw] = raw
        self._extent[raw] = extent
        if fixed:
            self._fixed[raw] = None
        return raw

    def __contains__(self, dim: object) -> bool:
        return dim in self._parent

    def find(self, axis: Axis) -> Axis:
        """The raw dim that stands for all that ``axis`` was unified with, or 1."""
        while isinstance(axis, str) and self._parent[axis] != axis:
            axis = self._parent[axis]
        return axis

    def shape(self, shape: Shape) -> Shape:
        """``shape`` with every axis found."""
        return tuple(self.find(axis) for axis in shape)

    def unify(self, left: Axis, right: Axis) -> Axis:
        """Make two axes one dim. Raises Refused where names or sizes differ."""
        a, b = self.find(left), self.find(right)
        if a == b:
            return a
        if not isinstance(a, str) or not isinstance(b, str):
            unit = b if isinstance(b, str) else a
            if self._extent.get(str(unit)) != 1:
                raise self._differ(a, b)
            self._parent[str(unit)] = 1
            return 1
        if _is_named(a) and _is_named(b):
            raise self._differ(a, b, "dims with different names never unify")
        if self._extent.get(a) != self._extent.get(b) and a in self._extent and b in self._extent:
            raise self._differ(a, b)
        root, leaf = (a, b) if _is_named(a) or not _is_named(b) else (b, a)
        self._parent[leaf] = root
        if leaf in self._extent:
            self._extent.setdefault(root, self._extent[leaf])
        if leaf in self._fixed:
            self._fixed[root] = None
        return root

    def broadcast(self, left: Axis, right: Axis) -> Axis:
        """The axis of the result where two axes meet: an extent of 1 gives way."""
        a, b = self.find(left), self.find(right)
        if a == 1 or b == 1:
            return b if a == 1 else a
        if a != b and self._gives_way(a, b):
            self._parent[str(a)] = 1
            return b
        if a != b and self._gives_way(b, a):
            self._parent[str(b)] = 1
            return a
        return self.unify(a, b)

    def _gives_way(self, axis: Axis, other: Axis) -> bool:
        """True for an example's axis of extent 1 that meets a longer one."""
        assert isinstance(axis, str)
        assert isinstance(other, str)
        single = not _is_named(axis) and self._extent[axis] == 1
        return single and self._extent.get(other) != 1

    def _differ(self, a: Axis, b: Axis, hint: str = "") -> Refused:
        return Refused(f"{self.word(a)} and {self.word(b)} differ", hint)

    def word(self, axis: Axis) -> str:
        """An axis as the user knows it: a name, or the extent of an unnamed axis."""
        found = self.find(axis)
        named = not isinstance(found, str) or _is_named(found)
        return str(found) if named else str(self._extent[str(found)])

    def show(self, shape: Shape) -> str:
        """A shape as the user knows it."""
        return show_shape(tuple(self.word(axis) for axis in shape))

    def final_names(self, shapes: Iterable[Shape]) -> dict[Dim, Axis]:
        """The final name (or 1) of every raw dim; unnamed ones are A, B, ... as they appear."""
        fresh = (w for w in _letters() if w not in self._parent)
        names: dict[Axis, Axis] = {1: 1}
        for shape in shapes:
            for axis in self.shape(shape):
                if axis not in names:
                    named = not isinstance(axis, str) or _is_named(axis)
                    names[axis] = axis if named else next(fresh)
        return {raw: names[self.find(raw)] for raw in self._parent if self.find(raw) in names}

    def fixed_sizes(self, names: dict[Dim, Axis]) -> dict[Dim, int]:
        """The sizes that were fixed, under final names."""
        return {
            str(names[raw]): self._extent[raw]
            for raw in names
            if self.find(raw) == raw and raw in self._fixed
        }


def _is_named(dim: Dim) -> bool:
    return not dim.startswith("?")


def _letters() -> Iterator[str]:
    for length in count(1):
        yield from ("".join(word) for word in product(ascii_uppercase, repeat=length))
