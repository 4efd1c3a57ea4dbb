"""Launches of known kernels for arrays of a new layout, without running the launcher again.

An emitted launcher computes grids, shapes of new arrays and arguments of kernels from sizes and
strides, by products and quotients that are rounded up. It is run once on stand-ins that record
these formulas. For another layout only the formulas are evaluated; no launcher, compiler or check
runs.

Triton compiles a kernel anew if one of its integers becomes 1, if its divisibility by 16 changes,
if the alignment of a pointer changes, or if the power of two changes that a launcher says divides
the numbers of rows. So launches are kept by such patterns.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from blockbuster.ir.types import Dim
from blockbuster.runtime.launches import Kernel, Laid, Prepared, laid_out, prepared
from blockbuster.runtime.numbers import (
    BLOCKS,
    LEAST,
    NUMBER,
    OVER,
    SIZE,
    STEP,
    TIMES,
    Arithmetic,
    Made,
    Note,
    Pairs,
    Places,
    Start,
)
from blockbuster.runtime.recorder import rebound
from blockbuster.runtime.tensors import ALIGNED

if TYPE_CHECKING:
    from blockbuster.emit.target.gpu import Gpu
    from blockbuster.selection.plans.plan import Sizes

Tensor = Any
LARGEST = 1 << 31  # numbers and offsets from here on are 64 bits wide: other kernels


@dataclass(frozen=True)
class _Started:
    """One start in a launcher: positions of its numbers in the notes, and its arrays."""

    grid: int
    arrays: tuple[int, ...]
    numbers: tuple[int, ...]


class Relaunch:
    """The launches of one emitted file on a device, for all layouts whose kernels are known.

    ``module`` is the loaded file.
    """

    def __init__(self, module: ModuleType, gpu: Gpu) -> None:
        noting = _Noting(module)
        self._gpu = gpu
        self._describes = hasattr(module, "descriptor")
        self._arrays = [start.arrays for start in noting.started]
        self._results = noting.results
        self._arithmetic = Arithmetic(
            noting.notes,
            spans=noting.spans,
            made=[(shape, steps, gpu.dtype(name)) for shape, steps, name in noting.made],
            starts=[(start.grid, start.numbers) for start in noting.started],
            even=noting.even,
        )
        self._lengths = frozenset(dim for dim, *_ in module.LENGTHS)
        self._with_lengths: Callable[[dict[Dim, int]], Sizes] = module.check_lengths
        self._known: dict[Any, Sequence[Kernel]] = {}
        self._prepared: Prepared | None = None

    def learn(self, laid: Laid, tensors: Sequence[Tensor], sizes: Sizes) -> None:
        """Remember the kernels that were compiled for arrays of this layout."""
        found = self._found(tensors, sizes)
        if found is None:
            return
        pattern, _, starts = found
        kernels = [kernel for kernel, _ in laid.launches]
        for (_, start), noted in zip(laid.launches, starts, strict=True):
            assert start[0] == noted[0], "the grid is computed as noted"
            assert start[1] == noted[1], "arguments are computed as noted"
        taken = [kernel.arrays for kernel in kernels]
        assert taken == self._arrays, "kernels take the arrays that were noted"
        self._known[pattern], self._prepared = kernels, laid.prepared

    def laid(self, tensors: Sequence[Tensor], sizes: Sizes) -> Laid | None:
        """The launches for arrays of this layout; None if a kernel is not known."""
        found = self._found(tensors, sizes)
        if found is None:
            return None
        pattern, made, starts = found
        kernels = self._known.get(pattern)
        if kernels is None:
            return None
        launches, part = [*zip(kernels, starts, strict=True)], self._prepared
        if part is not None:  # how many there are of each is the same for all layouts
            counts = part.made, part.launches
            part = prepared(counts, part.inputs, made, launches, part.keeps)
        return laid_out(self._gpu, made, launches, self._results, part, len(tensors))

    def _found(
        self, tensors: Sequence[Tensor], sizes: Sizes
    ) -> tuple[Any, Sequence[Made], Sequence[Start]] | None:
        """The pattern of all numbers, which the kernels are known by, and what is made and started
        with them; None if offsets are wide or a dim is empty.
        """
        if not all(sizes.values()):
            return None
        if self._lengths and not sizes.keys() >= self._lengths:  # a schedule's own: halves of rows
            sizes = self._with_lengths({**sizes})
        numbers, told, made, starts = self._arithmetic([t.stride() for t in tensors], sizes)
        if max(numbers) >= LARGEST:
            return None
        aligned = [not t.data_ptr() % ALIGNED for t in tensors]
        still = [0 in t.stride() for t in tensors] if self._describes else []
        return (told, *aligned, *still), made, starts


@dataclass(frozen=True)
class _Term:
    """A number of a launcher: how it is made stands at ``at`` in the notes."""

    notes: _Notes
    at: int

    @property
    def constant(self) -> int | None:
        """The number, where it never changes."""
        kind, one, _ = self.notes[self.at]
        return one if kind == NUMBER else None

    def __mul__(self, other: _Term | int) -> _Term:
        right = self.notes.term(other)
        if self.constant is not None and right.constant is not None:
            return self.notes.term(self.constant * right.constant)
        if self.constant == 1:
            return right
        return self if right.constant == 1 else self.notes.of(TIMES, self.at, right.at)

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> _Term:
        return self.notes.of(OVER, self.at, self.notes.term(other).at)

    def blocks(self, lanes: int) -> _Term:
        """The number of blocks of so many lanes."""
        return self.notes.of(BLOCKS, self.at, self.notes.term(lanes).at)

    def least(self, most: int) -> _Term:
        """The number, but at most this one."""
        return self.notes.of(LEAST, self.at, self.notes.term(most).at)


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
        self.even: list[Places] = []
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
        kernels = {e["function"].__name__: _StandIn(self) for e in module.KERNELS}
        helpers = {
            "check_array": self._shape,
            "check_lengths": self._lengths,
            "check_sizes": lambda size: None,
            "check_prepared": lambda prepared, expected, like: None,
            "of_constants": lambda size: size,
            "check_assembler": lambda: None,
            "can_overlap": lambda array: False,  # known kernels say themselves how they begin
            "descriptor": lambda array, tile: None,  # known kernels say which they take
            "empty": self._empty,
            "even": self._even,
            "index_type": lambda *arrays: None,
            "on_device": lambda array: contextlib.nullcontext(),
            "argument": lambda array: array,
            "strides": lambda array: array.steps,
            "min": lambda one, most: self.notes.term(one).least(most),
            "triton": SimpleNamespace(cdiv=lambda size, lanes: self.notes.term(size).blocks(lanes)),
        }
        names = {**vars(module), **helpers, **kernels}
        if hasattr(module, "prepare"):
            names["prepare"] = rebound(module.prepare, names)
        return rebound(module.launch, names)

    def _shape(self, name: str, array: _Array, axes: Sequence[Any], like: Any, size: Any) -> None:
        for axis in axes:
            if axis != 1:
                size.setdefault(axis, self.notes.of(SIZE, axis))

    def _lengths(self, size: dict[Dim, Any]) -> dict[Dim, Any]:
        for dim, *_ in self._module.LENGTHS:
            size.setdefault(dim, self.notes.of(SIZE, dim))
        return size

    def _even(self, *numbers: _Term | int) -> None:
        """What divides all these is told to a kernel."""
        self.even.append(tuple([self.notes.term(number).at for number in numbers]))

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
class _StandIn:
    """Stands for a kernel in a launcher."""

    noting: _Noting

    def __getitem__(self, grid: tuple[_Term | int]) -> Callable[..., None]:
        return lambda *arguments, **options: self.noting.start(grid[0], arguments)
