"""Views of one axis of an array: slices, split axes and windows cost nothing.

An axis is read under one dim, under none (extent 1), or *strided*: the element at the positions
i, j, ... of its runs is ``start + i * step_i + j * step_j + ...``. A slice is one run with an
offset, a split axis is two runs, windows are two runs that may read an element more than once, and
all of these combine. A *padded* axis may be read outside of its elements, where it holds zeros.

One dim may run over several axes, as if they were one: each of these has a *share* of its index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeGuard, TypeVar

import blockbuster.ir.lengths as lengths
from blockbuster.ir.lengths import ONE, ZERO, Length, Rule, clamped, product_of
from blockbuster.ir.types import Dim, size_class

Index = TypeVar("Index", bound=Any)


@dataclass(frozen=True)
class Share:
    """What a dim that joins ``dims``, the last of which runs fastest, says of that at ``at``.

    Of the index i of ``A_H_V``, which joins A, H and V, these are ``i // (|H| * |V|)``,
    ``i // |V| % |H|`` and ``i % |V|``.
    """

    dims: tuple[Dim, ...]
    at: int

    @property
    def dim(self) -> Dim:
        """The dim of which it is the index."""
        return self.dims[self.at]

    @property
    def under(self) -> Length:
        """How many elements of the joined dim follow each other before the index grows."""
        return product_of(lengths.size(size_class(dim)) for dim in self.dims[self.at + 1 :])

    @property
    def within(self) -> Length | None:
        """The number of indices after which it begins anew; None for that of the first dim."""
        return lengths.size(size_class(self.dim)) if self.at else None

    def of(self, index: Index, sizes: Mapping[Dim, int]) -> Index:
        """The share of an index, or of each index in an array."""
        own: Index = index // self.under.value(sizes)
        if self.within is not None:
            own = own % self.within.value(sizes)
        return own

    def python(self, index: str, name: Callable[[Dim], str]) -> str:
        """The text of the share of an index; ``name`` gives that of a size."""
        under = self.under
        if under != ONE:
            text = under.python(name)
            index = f"{index} // {text}" if text.isidentifier() else f"{index} // ({text})"
        return index if self.within is None else f"{index} % {self.within.python(name)}"


@dataclass(frozen=True)
class Run:
    """A dim that runs along an axis in steps; ``size`` is None if others say the dim's size.

    ``share``: the dim runs along several axes, and this is what it says of this one.
    """

    dim: Dim
    size: Length | None = None
    step: Length = ONE
    share: Share | None = None

    @property
    def own(self) -> Dim:
        """The dim that has as many elements as the run."""
        return self.dim if self.share is None else self.share.dim


@dataclass(frozen=True)
class Strided:
    """An axis of ``|of|`` elements under several runs, outermost first, or none: one element.

    ``extent``: what ``|of|`` has to be, where the runs cover the whole axis, or it is put together
    of several such parts. ``padded``: positions below 0 and from ``|of|`` on read zeros; only
    inputs have such axes. ``because``: the user's line that asks for an axis of a least size.
    """

    of: Dim
    runs: tuple[Run, ...]
    start: Length = ZERO
    extent: Length | None = None
    padded: bool = False
    because: str = field(default="", compare=False)

    def __str__(self) -> str:
        runs = []
        for run in self.runs:
            size = "" if run.size is None else f" = {run.size}"
            joined = "" if run.share is None else f" as {run.own} of {' '.join(run.share.dims)}"
            runs.append(f"{run.dim}{joined}{size}{'' if run.step == ONE else f' step {run.step}'}")
        words = [", ".join(runs)] if runs else []
        from_zero = self.padded and not self.runs  # a word alone would be a dim
        words += [f"from {self.start}"] if self.start.terms or from_zero else []
        words += [] if self.extent is None else [f"of {self.extent}"]
        words += ["padded"] if self.padded else []
        return f"{self.of}[{' '.join(words)}]"


AxisView = Dim | Strided | None


def runs_along(axis: AxisView) -> tuple[Run, ...]:
    """The runs of an axis, outermost first; of one that is not strided, that of its dim."""
    if isinstance(axis, Strided):
        return axis.runs
    return () if axis is None else (Run(axis),)


def dims_along(axis: AxisView) -> tuple[Dim, ...]:
    """The dims under which an axis is read, outermost first."""
    if isinstance(axis, Strided):
        return tuple([run.dim for run in axis.runs])
    return () if axis is None else (axis,)


def dims_among(axes: Iterable[AxisView]) -> tuple[Dim, ...]:
    """The dims under which the axes of an array are read, in order."""
    return tuple(dim for axis in axes for dim in dims_along(axis))


def shares_of(axes: Iterable[AxisView]) -> Iterator[tuple[Dim, Share]]:
    """The dims that run along several of ``axes``, with their share of each."""
    for axis in axes:
        for run in axis.runs if isinstance(axis, Strided) else ():
            if run.share is not None:
                yield run.dim, run.share


def array_dim(axis: AxisView) -> Dim | None:
    """The dim whose size is the extent of the array's axis; None for extent 1."""
    return axis.of if isinstance(axis, Strided) else axis


def is_padded(axis: AxisView) -> TypeGuard[Strided]:
    """True for an axis of which some places may read zeros that stand in no array."""
    return isinstance(axis, Strided) and axis.padded


def relabeled(axis: AxisView, names: Mapping[Dim, Dim]) -> AxisView:
    """``axis`` under other dims of the same sizes."""
    if isinstance(axis, Strided):
        runs = (replace(run, dim=names.get(run.dim, run.dim)) for run in axis.runs)
        return replace(axis, runs=tuple(runs))
    return axis if axis is None else names.get(axis, axis)


def rules_of(axes: Iterable[AxisView]) -> Iterator[Rule]:
    """The facts about sizes from axes: those of their runs, and that every element exists.

    Elements that are clamped (``ir/lengths.py``) exist for all sizes if signs show it.
    """
    for axis in axes:
        if not isinstance(axis, Strided):
            continue
        of = size_class(axis.of)
        for run in axis.runs:
            if run.size is not None:
                yield Rule(size_class(run.dim), run.size, because=axis.because)
        if axis.extent is not None and axis.extent != lengths.size(of):
            yield Rule(of, axis.extent)
        if axis.padded:  # zeros stand where no element is
            named = (dim for run in axis.runs if run.size for dim in run.size.dims)
            if of not in (*axis.start.dims, *named):  # yet the array has an extent
                yield Rule(of, ZERO, exact=False, because=axis.because)
            continue
        if not all(_size_of(run).terms for run in axis.runs):
            continue  # nothing is taken
        start, last = axis.start, _last(axis, _reach)
        spare = lengths.size(of) - last - ONE
        any_taken = ONE  # 1, or 0 where clamped runs take nothing
        for own in map(_size_of, axis.runs):
            any_taken = any_taken * (own - clamped(own - ONE)) if own.clamps else any_taken
        is_clamped = any_taken != ONE
        if start.constant is None and not (is_clamped and start.never_negative):
            least = lengths.size(of) - start * any_taken
            yield Rule(of, least, exact=False, because=axis.because)
        if is_clamped and (spare.never_negative or _spare_of_any(axis).never_negative):
            continue
        if spare.constant is None or spare.constant < 0:
            least = (last + ONE) * any_taken
            yield Rule(of, least, exact=False, because=axis.because)


def _size_of(run: Run) -> Length:
    return lengths.size(run.dim) if run.size is None else run.size


def _last(axis: Strided, reach: Callable[[Run], Length]) -> Length:
    """The position of the last element, by how far each run goes from its first one."""
    last = axis.start
    for run in axis.runs:
        last = last + reach(run)
    return last


def _reach(run: Run) -> Length:
    return (_size_of(run) - ONE) * run.step


def _spare_of_any(axis: Strided) -> Length:
    """At most the elements behind the last one, of an axis of which there is any.

    A clamp that is not 0 is what it is of, rounded up: without the rounding, it reaches as far.
    """

    def reach(run: Run) -> Length:
        size = _size_of(run)
        if len(size.clamps) != 1 or size != Length(((size.clamps, Fraction(1)),)):
            return _reach(run)
        clamp = size.clamps[0]
        one = lengths.inverse(clamp.of.fraction[1]) if clamp.rounds else ONE
        return (clamp.of - one) * run.step

    return lengths.size(size_class(axis.of)) - _last(axis, reach) - ONE
