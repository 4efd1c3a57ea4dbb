"""The extents of an array's axes, as lengths: what a reshape makes of an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from blockbuster.ir.lengths import Length
from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Lengths:
    """The extents of an array's axes, in order.

    >>> from blockbuster.ir.lengths import size, whole
    >>> print(Lengths((size("B"), whole(4))))
    (|B|, 4)
    """

    extents: tuple[Length, ...]

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dims whose sizes are read."""
        return tuple(dict.fromkeys(dim for extent in self.extents for dim in extent.dims))

    def value(self, sizes: Mapping[Dim, int]) -> tuple[int, ...]:
        """The numbers for these sizes. Raises ValueError if one is not whole."""
        return tuple(extent.value(sizes) for extent in self.extents)

    def replaced(self, length_of: Callable[[Dim], Length]) -> Lengths:
        """The same with ``length_of(D)`` for every ``|D|``."""
        return Lengths(tuple(extent.replaced(length_of) for extent in self.extents))

    def __str__(self) -> str:
        words = [*map(str, self.extents)]
        return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"
