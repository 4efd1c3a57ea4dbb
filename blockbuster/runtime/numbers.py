"""The numbers that a launch computes (LaunchSpec), as one compiled Python function.

Reading formulas one by one takes several microseconds for each new layout; the function takes one,
and puts the numbers where launches need them. Its text consists of integers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from blockbuster.emit.tile.launch_spec import (
    BLOCKS,
    LEAST,
    OVER,
    SIZE,
    STRIDE,
    TIMES,
    Array,
    Formula,
    LaunchSpec,
    Number,
    Start,
)
from blockbuster.ir.formula import function_of, sum_of
from blockbuster.ir.types import Dim

Numbers = tuple[int, ...]
Made = tuple[Numbers, Numbers, Any]
"""A new array: its shape, its strides and torch's dtype."""

Started = tuple[int, Numbers]
"""A start of a kernel: its grid, and its arguments behind the arrays, which are sizes and strides.
"""


class Found(NamedTuple):
    """The numbers for arrays of one layout.

    ``numbers``: those that change with it. ``classes``: that in which Triton puts each kernel
    argument among them (2: it is 1, 1: a multiple of 16, 0: any other), by which it compiles
    kernels anew. ``even``: by start, the powers of two and the sizes that its kernel is told.
    """

    numbers: Numbers
    classes: Numbers
    even: tuple[Numbers, ...]
    made: Sequence[Made]
    starts: Sequence[Started]


class Arithmetic:
    """All numbers of a ``spec``. ``dtype_of`` gives torch's dtypes."""

    def __init__(self, spec: LaunchSpec, dtype_of: Callable[[str], Any]) -> None:
        of = _Texts(spec)
        starts = spec.starts
        made = [f"({of.tuple(a.shape)}, {of.steps(a)}, d[{i}])" for i, a in enumerate(spec.made)]
        begun = [f"({of.name(start.grid)}, {of.tuple(start.numbers)})" for start in starts]
        even = [_tuple(of.constants(start)) for start in starts]
        spans = [of.span(array) for array in spec.launch.inputs]
        classes = of.classes(starts)
        parts = map(_tuple, ([*of.made, *spans], classes, even, made, begun))
        self._function = function_of(f"lambda s, z, d: ({', '.join(parts)})", "a launch's numbers")
        self._dims = [*of.dims]
        self._dtypes = [dtype_of(array.dtype) for array in spec.made]

    def __call__(self, strides: Sequence[Sequence[int]], sizes: Any) -> Found:
        """The numbers for inputs with these strides, and dims of these sizes."""
        known = [sizes[dim] for dim in self._dims]
        return Found(*self._function(strides, known, self._dtypes))


class _Texts:
    """Numbers in Python. ``made`` computes each once, in an order in which they can be had, from
    strides ``s`` of the inputs and sizes ``z`` of ``dims``.
    """

    def __init__(self, spec: LaunchSpec) -> None:
        self.made: list[str] = []
        self.dims: dict[Dim, None] = {}
        self._names: dict[Formula, str] = {
            Formula(SIZE, dim): f"{count:d}" for dim, count in spec.chunks
        }
        for number, array in enumerate(spec.launch.inputs):
            for axis in range(len(array.shape)):
                self._new(Formula(STRIDE, array.name, axis), f"s[{number}][{axis}]")
        for array in spec.made:
            self._lay_out(array)

    def _lay_out(self, array: Array) -> None:
        """The strides of a new array, whose elements lie one after the other."""
        step: Number = 1
        for axis in reversed(range(len(array.shape))):
            self._names[Formula(STRIDE, array.name, axis)] = self.name(step)
            step = Formula(TIMES, array.shape[axis], step)
        self.name(step)  # the number of elements

    def _new(self, number: Formula, text: str) -> str:
        name = self._names[number] = f"n{len(self.made)}"
        self.made.append(f"({name} := {text})")
        return name

    def name(self, number: Number) -> str:
        """A number, made before it is used; one that never changes is its own name."""
        if isinstance(number, int):
            return f"{number:d}"
        if number in self._names:
            return self._names[number]
        kind, one, other = number
        if kind == SIZE:
            self.dims.setdefault(one)
            return self._new(number, f"z[{[*self.dims].index(one)}]")
        left, right = self.name(one), self.name(other)
        if kind == TIMES and "1" in (left, right):
            self._names[number] = right if left == "1" else left
            return self._names[number]
        forms = {
            TIMES: f"{left} * {right}",
            OVER: f"{left} // {right}",
            BLOCKS: f"-(-{left} // {right})",
            LEAST: f"min({left}, {right})",
        }
        return self._new(number, forms[kind])

    def tuple(self, numbers: Iterable[Number]) -> str:
        """Several of them."""
        return _tuple(map(self.name, numbers))

    def steps(self, array: Array) -> str:
        """The strides of an array."""
        return self.tuple(Formula(STRIDE, array.name, axis) for axis in range(len(array.shape)))

    def span(self, array: Array) -> str:
        """No less than the elements that an array spans in memory."""
        steps = [Formula(STRIDE, array.name, axis) for axis in range(len(array.shape))]
        pairs = zip(array.shape, steps, strict=True)
        return sum_of([f"{self.name(extent)} * {self.name(step)}" for extent, step in pairs])

    def classes(self, starts: Iterable[Start]) -> Iterator[str]:
        """Triton's class of each number that changes (see ``Found``), each once."""
        names = [self.name(number) for start in starts for number in start.numbers]
        for name in dict.fromkeys(names):
            if name.startswith("n"):
                yield f"2 if {name} == 1 else not {name} & 15"

    def constants(self, start: Start) -> list[str]:
        """What a kernel is told of numbers: what divides them, and what some are."""
        even = [self.even(numbers) for _, numbers in start.even]
        return [*even, *(self.name(number) for _, number in start.told)]

    def even(self, numbers: Iterable[Number]) -> str:
        """The largest power of two, up to 16, that divides all numbers."""
        bits = " | ".join(["16", *dict.fromkeys(map(self.name, numbers))])
        return f"({bits}) & -({bits})"


def _tuple(texts: Iterable[str]) -> str:
    inner = ", ".join(texts)
    return f"({inner},)" if inner else "()"
