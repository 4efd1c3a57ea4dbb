"""The pointers to the elements of a tile, as Triton text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Address:
    """``pointer``: to the array. ``shared``: terms that are the same for all lanes. ``along``: by
    axes that have lanes, the places of these, how far all of them are shifted, and the stride.
    """

    pointer: str
    shared: list[str] = field(default_factory=list)
    along: dict[int, tuple[str, str, str]] = field(default_factory=dict)

    def text(self) -> str:
        """The pointers. Windows that loops shift are one sum, first what all lanes share: the rest
        is computed once, in front of the loops. Either of the two may need more bits than the sum.
        """
        shifts = [f"{shift} * {stride}" for _, shift, stride in self.along.values() if shift]
        own = " + ".join(f"{place} * {stride}" for place, _, stride in self.along.values())
        if not shifts:
            return " + ".join([self.pointer, *self.shared, *([own] if own else [])])
        return f"{self.pointer} + ({' + '.join([*self.shared, *shifts])} + ({own}))"

    def in_rows(self, lined_up: Callable[[str], str], columns: str) -> str:
        """The pointers to rows with so many ``columns``, which are neighbours along the last axis.

        ``lined_up``: the text of a tile as rows.
        """
        last, terms = max(self.along), [self.pointer, *self.shared]
        for axis, (own, shift, stride) in self.along.items():
            place = lined_up(f"({own} + {shift})" if shift else own)
            hint = "max_contiguous" if axis == last else "max_constancy"
            terms.append(f"tl.{hint}({place}, (1, {columns})) * {stride}")
        return " + ".join(terms)
