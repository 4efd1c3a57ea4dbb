"""The integer formulas of a launcher, compiled to one Python function.

Reading a list of formulas one by one takes several microseconds for each new layout; the function
takes one, and puts the numbers where launches need them. Its text consists of integers only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from blockbuster.ir.formula import function_of, sum_of
from blockbuster.ir.types import Dim

SIZE, STEP, NUMBER, TIMES, OVER, BLOCKS, LEAST = range(7)
Note = tuple[int, Any, Any]
"""How a number is made: SIZE of a dim; STEP, a stride (array, axis); NUMBER, a constant; TIMES, the
product of two earlier numbers; OVER, their quotient, rounded down, and BLOCKS, rounded up; LEAST,
the lesser of them.
"""

Pairs = Sequence[tuple[int, int]]
Places = Sequence[int]
"""Which numbers, by their notes."""

Numbers = tuple[int, ...]
Made = tuple[Numbers, Numbers, Any]
"""A new array: its shape, its strides and torch's dtype."""

Start = tuple[int, Numbers]
"""A start of a kernel: its grid, and its arguments behind the arrays, which are sizes and strides.
"""

Found = tuple[Numbers, Numbers, Sequence[Made], Sequence[Start]]
"""For arrays of one layout: the numbers that change with it; the class in which Triton puts each
kernel argument among them (2: it is 1, 1: a multiple of 16, 0: any other), by which it compiles
kernels anew; the new arrays; and the starts of kernels.
"""


class Arithmetic:
    """All numbers of ``notes`` that change, and where they go: into ``made`` arrays and ``starts``
    of kernels.

    ``spans``: for each array the pairs of numbers whose products are summed; the sums follow the
    numbers. ``even``: groups of numbers, of each of which launchers tell kernels the power of two,
    up to 16, that divides all.
    """

    def __init__(
        self,
        notes: Sequence[Note],
        *,
        spans: Iterable[Pairs] = (),
        made: Iterable[tuple[Places, Places, Any]] = (),
        starts: Iterable[tuple[int, Places]] = (),
        even: Iterable[Places] = (),
    ) -> None:
        made, starts = [*made], [*starts]
        self._dims: list[Dim] = [one for kind, one, _ in notes if kind == SIZE]
        self._dtypes = [dtype for *_, dtype in made]
        of = _Texts(notes, self._dims)
        sums = [sum_of([f"{of.name(a)} * {of.name(b)}" for a, b in pairs]) for pairs in spans]
        new = [f"({of.tuple(s)}, {of.tuple(t)}, d[{i}])" for i, (s, t, _) in enumerate(made)]
        launches = [f"({of.name(grid)}, {of.tuple(places)})" for grid, places in starts]
        told = [*of.told(at for _, places in starts for at in places), *of.even(even)]
        parts = ", ".join(map(_tuple, ([*of.numbers(), *sums], told, new, launches)))
        self._function = function_of(f"lambda s, z, d: ({parts})", "numbers of a launcher")

    def __call__(self, strides: Sequence[Sequence[int]], sizes: Any) -> Found:
        """The numbers for arrays with these strides, and dims of these sizes."""
        known = [sizes[dim] for dim in self._dims]
        found: Found = self._function(strides, known, self._dtypes)
        return found


@dataclass(frozen=True)
class _Texts:
    """Numbers in Python: ``n3`` is that of note 3; ``s`` are strides, ``z`` the sizes of dims."""

    notes: Sequence[Note]
    dims: Sequence[Dim]

    def name(self, at: int) -> str:
        """A number, once it is made; one that never changes is its own name."""
        kind, one, _ = self.notes[at]
        return f"{one:d}" if kind == NUMBER else f"n{at}"

    def tuple(self, places: Places) -> str:
        """Several of them."""
        return _tuple([self.name(at) for at in places])

    def numbers(self) -> Iterator[str]:
        """How those that change are made, in order."""
        for at, (kind, one, other) in enumerate(self.notes):
            if kind == SIZE:
                yield f"(n{at} := z[{self.dims.index(one)}])"
            elif kind == STEP:
                yield f"(n{at} := s[{one:d}][{other:d}])"
            elif kind == TIMES:
                yield f"(n{at} := {self.name(one)} * {self.name(other)})"
            elif kind == OVER:
                yield f"(n{at} := {self.name(one)} // {self.name(other)})"
            elif kind == BLOCKS:
                yield f"(n{at} := -(-{self.name(one)} // {self.name(other)}))"
            elif kind == LEAST:
                yield f"(n{at} := min({self.name(one)}, {self.name(other)}))"

    def told(self, places: Iterable[int]) -> Iterator[str]:
        """Triton's class of each number that changes (see ``Found``), each once."""
        for at in dict.fromkeys(places):
            if self.notes[at][0] != NUMBER:
                yield f"2 if n{at} == 1 else not n{at} & 15"

    def even(self, groups: Iterable[Places]) -> Iterator[str]:
        """The powers of two that launchers tell, each once."""
        for places in dict.fromkeys(groups):
            bits = " | ".join(["16", *(self.name(at) for at in dict.fromkeys(places))])
            yield f"({bits}) & -({bits})"


def _tuple(texts: Iterable[str]) -> str:
    inner = ", ".join(texts)
    return f"({inner},)" if inner else "()"
