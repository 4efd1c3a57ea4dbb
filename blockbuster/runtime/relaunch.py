"""Known kernels started for arrays of a new layout: what a launcher computes, computed again.

An emitted launcher makes grids, shapes of new arrays and arguments of kernels from sizes and
strides, by products and quotients that are rounded up. It is run once on stand-ins that note how.
For another layout a list of numbers is computed by these notes, and no launcher, no compiler and
no check runs.

Triton compiles a kernel anew where one of its whole numbers becomes 1, or one more or less is a
multiple of 16, or a pointer is aligned that was not. So launches are known for such patterns.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from blockbuster.ir.types import Dim
from blockbuster.runtime.numbers import (
    BLOCKS,
    NUMBER,
    SIZE,
    STEP,
    TIMES,
    Arithmetic,
    Note,
    Numbers,
    Pairs,
    picked,
)
from blockbuster.runtime.tensors import ALIGNED

if TYPE_CHECKING:
    from blockbuster.selection.plan import Sizes

Tensor = Any
LARGEST = 1 << 31  # numbers and offsets from here on are 64 bits wide: other kernels


class Launch(NamedTuple):
    """A kernel that was compiled and started: how to start it again.

    ``arrays`` are the numbers of the arrays whose addresses are its first arguments, ``rest`` are
    the other arguments: sizes, strides and constants.
    """

    start: Callable[..., None]
    grid: int
    function: Any
    metadata: Any
    arrays: Sequence[int]
    rest: tuple[Any, ...]


Made = tuple[tuple[int, ...], tuple[int, ...], Any]
"""A new array: its shape, its strides and torch's dtype."""


class Laid(NamedTuple):
    """What a file does for arrays of one layout: the arrays it makes, and its launches."""

    made: list[Made]
    launches: list[Launch]


@dataclass(frozen=True)
class _Started:
    """One start in a launcher: positions of its numbers in the notes, and its arrays."""

    grid: int
    arrays: tuple[int, ...]
    numbers: tuple[int, ...]


class Relaunch:
    """The launches of one emitted file, for all layouts whose kernels are known.

    ``module`` is the loaded file, ``dtype`` gives torch's dtype by name.
    """

    def __init__(self, module: ModuleType, dtype: Callable[[str], Any]) -> None:
        noting = _Noting(module)
        self._notes = tuple(noting.notes)
        self._made = [(picked(s), picked(t), dtype(name)) for s, t, name in noting.made]
        self._started = noting.started
        self._starts = [(s.grid, s.arrays, picked(s.numbers)) for s in self._started]
        self.results = noting.results
        numbers = dict.fromkeys(at for start in self._started for at in start.numbers)
        told = [at for at in numbers if self._notes[at][0] != NUMBER]
        self._arithmetic = Arithmetic(self._notes, noting.spans, told)
        self._known: dict[Any, list[Launch]] = {}

    def learn(self, launches: Sequence[Launch], tensors: Sequence[Tensor], sizes: Sizes) -> None:
        """Remember the kernels that were compiled for arrays of this layout."""
        found = self._found(tensors, sizes)
        if found is None:
            return
        numbers, pattern = found
        assert len(launches) == len(self._started), "the launcher starts what it started before"
        for launch, start in zip(launches, self._started, strict=True):
            given = tuple(numbers[at] for at in start.numbers)
            assert launch.grid == numbers[start.grid], "the grid is computed as noted"
            assert launch.rest[: len(given)] == given, "arguments are computed as noted"
            assert tuple(launch.arrays) == start.arrays, "kernels take the arrays that were noted"
        self._known[pattern] = [*launches]

    def laid(self, tensors: Sequence[Tensor], sizes: Sizes) -> Laid | None:
        """What to do for arrays of this layout; None where a kernel is not known."""
        found = self._found(tensors, sizes)
        known = self._known.get(found[1]) if found else None
        if not found or not known:
            return None
        numbers = found[0]
        made = [(shape(numbers), steps(numbers), dtype) for shape, steps, dtype in self._made]
        launches = []
        for launch, (grid, arrays, given) in zip(known, self._starts, strict=True):
            start, _, function, metadata, _, rest = launch
            own = given(numbers)
            rest = own + rest[len(own) :]
            launches.append(Launch(start, numbers[grid], function, metadata, arrays, rest))
        return Laid(made, launches)

    def _found(self, tensors: Sequence[Tensor], sizes: Sizes) -> tuple[Numbers, Any] | None:
        """All numbers, in the order of the notes, and their pattern, which the kernels are known
        by; None where offsets are wide or a dim is empty.
        """
        numbers, spans, told = self._arithmetic([tensor.stride() for tensor in tensors], sizes)
        if max(numbers + spans, default=0) >= LARGEST:
            return None
        if 0 in numbers and self._is_empty(numbers):
            return None
        return numbers, (told, *[not tensor.data_ptr() % ALIGNED for tensor in tensors])

    def _is_empty(self, numbers: Sequence[int]) -> bool:
        pairs = zip(numbers, self._notes, strict=True)
        return any(not number and note[0] != STEP for number, note in pairs)


@dataclass(frozen=True)
class _Term:
    """A number of a launcher: how it is made stands at ``at`` in the notes."""

    notes: _Notes
    at: int

    def __mul__(self, other: _Term | int) -> _Term:
        return self.notes.of(TIMES, self.at, self.notes.term(other).at)

    __rmul__ = __mul__

    def blocks(self, lanes: int) -> _Term:
        """The number of blocks of so many lanes."""
        return self.notes.of(BLOCKS, self.at, self.notes.term(lanes).at)


class _Notes(list[Note]):
    """How numbers are made, each once, in an order in which they can be."""

    def of(self, kind: int, one: Any, other: Any = None) -> _Term:
        """The number that is made so."""
        note = (kind, one, other)
        if note not in self:
            self.append(note)
        return _Term(self, self.index(note))

    def term(self, number: _Term | int) -> _Term:
        """A number of the launcher, which may be a plain one."""
        return number if isinstance(number, _Term) else self.of(NUMBER, number)


@dataclass(frozen=True, eq=False)
class _Array:
    """Stands for an array in a launcher, by its number."""

    number: int
    steps: tuple[_Term, ...]


class _Noting:
    """A launcher, run with stand-ins for its arrays, sizes, helpers and kernels."""

    def __init__(self, module: ModuleType) -> None:
        self.notes = _Notes()
        self.made: list[tuple[tuple[int, ...], tuple[int, ...], str]] = []
        self.started: list[_Started] = []
        self.spans: list[Pairs] = []
        self._module, self._inputs = module, len(module.INPUTS)
        arrays = [self._input(i, axes) for i, axes in enumerate(module.INPUTS.values())]
        parameters = inspect.signature(module.launch).parameters.values()
        names = [p.name for p in parameters if p.default is p.empty][len(arrays) :]
        sizes = [self.notes.of(SIZE, dim) for dim in module.FREE]
        found = self._launcher()(*arrays, **dict(zip(names, sizes, strict=True)))
        results = found if isinstance(found, tuple) else (found,)
        self.results = [array.number for array in results]

    def _input(self, number: int, axes: Sequence[Any]) -> _Array:
        steps = tuple(self.notes.of(STEP, number, axis) for axis in range(len(axes)))
        extents = [self.notes.of(NUMBER, 1) if a == 1 else self.notes.of(SIZE, a) for a in axes]
        self.spans.append([(n.at, step.at) for n, step in zip(extents, steps, strict=True)])
        return _Array(number, steps)

    def _launcher(self) -> Callable[..., Any]:
        module = self._module
        kernels = {e["function"].__name__: _Kernel(self) for e in module.KERNELS}
        helpers = {
            "check_array": self._shape,
            "check_lengths": self._lengths,
            "check_sizes": lambda size: None,
            "check_assembler": lambda: None,
            "empty": self._empty,
            "index_type": lambda *arrays: None,
            "on_device": lambda array: contextlib.nullcontext(),
            "argument": lambda array: array,
            "strides": lambda array: array.steps,
            "triton": SimpleNamespace(cdiv=lambda size, lanes: self.notes.term(size).blocks(lanes)),
        }
        own = module.launch
        launch = FunctionType(own.__code__, {**vars(module), **helpers, **kernels}, own.__name__)
        launch.__kwdefaults__, launch.__defaults__ = own.__kwdefaults__, own.__defaults__
        return launch

    def _shape(self, name: str, array: _Array, axes: Sequence[Any], like: Any, size: Any) -> None:
        for axis in axes:
            if axis != 1:
                size.setdefault(axis, self.notes.of(SIZE, axis))

    def _lengths(self, size: dict[Dim, Any]) -> dict[Dim, Any]:
        for dim, *_ in self._module.LENGTHS:
            size.setdefault(dim, self.notes.of(SIZE, dim))
        return size

    def _empty(self, shape: Sequence[_Term | int], dtype: str, like: Any) -> _Array:
        """A new array, whose elements lie one after the other."""
        extents = [self.notes.term(extent) for extent in shape]
        steps = [self.notes.term(1)]
        for extent in reversed(extents):
            steps.insert(0, extent * steps[0])  # the first is the number of elements
        _, *within = steps
        self.made.append((tuple(t.at for t in extents), tuple(t.at for t in within), dtype))
        return _Array(self._inputs + len(self.made) - 1, tuple(within))

    def start(self, grid: _Term | int, arguments: Sequence[Any]) -> None:
        """Note a start of a kernel."""
        arrays = tuple(a.number for a in arguments if isinstance(a, _Array))
        numbers = tuple(self.notes.term(a).at for a in arguments if not isinstance(a, _Array))
        self.started.append(_Started(self.notes.term(grid).at, arrays, numbers))


@dataclass(frozen=True)
class _Kernel:
    """Stands for a kernel in a launcher."""

    noting: _Noting

    def __getitem__(self, grid: tuple[_Term | int]) -> Callable[..., None]:
        return lambda *arguments, **options: self.noting.start(grid[0], arguments)
