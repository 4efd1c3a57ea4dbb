"""Views of one axis of an array: slices, split axes and windows cost nothing.

An axis is read under one dim, under none (extent 1), or *strided*: the element at the positions
i, j, ... of its runs is ``start + i * step_i + j * step_j + ...``. A slice is one run with an
offset, a split axis is two runs, windows are two runs that may read an element more than once, and
all of these combine. A *padded* axis may be read outside of its elements, where it holds zeros.

One dim may run over several axes, as if they were one: each of these has a *share* of its index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import Any, TypeGuard, TypeVar

import blockbuster.ir.lengths as lengths
from blockbuster.ir.length_symbols import Clamp
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
        in_front, extent = _ends(axis)
        behind = lengths.size(of) - extent
        any_taken = ONE  # 1, or 0 where clamped runs take nothing
        for own in map(_size_of, axis.runs):
            any_taken = any_taken * (own - clamped(own - ONE)) if own.clamps else any_taken
        least = lengths.size(of) - in_front * any_taken, extent * any_taken
        for spare, asked in zip((in_front, behind), least, strict=True):
            is_there = spare.constant is not None and spare.constant >= 0
            if not is_there and (any_taken == ONE or not _is_shown(spare, axis.runs)):
                yield Rule(of, asked, exact=False, because=axis.because)


def _size_of(run: Run) -> Length:
    return lengths.size(run.dim) if run.size is None else run.size


def _ends(axis: Strided) -> tuple[Length, Length]:
    """The places of the foremost element that is taken, and behind the hindmost one.

    A run with a negative step begins at the back.
    """
    foremost, hindmost = axis.start, axis.start
    for run in axis.runs:
        reach = (_size_of(run) - ONE) * run.step
        if (ZERO - run.step).never_negative:
            foremost = foremost + reach
        else:
            hindmost = hindmost + reach
    return foremost, hindmost + ONE


def _is_shown(spare: Length, runs: tuple[Run, ...]) -> bool:
    """True if signs show that a number is at least 0 wherever each run takes an element."""
    if spare.never_negative:
        return True
    sizes = [_size_of(run) for run in runs]
    clamps = {s.clamps[0] for s in sizes if s.clamps and s == _alone(s.clamps[0])}
    least = _unclamped(spare, clamps)
    if least.never_negative:
        return True
    floors = (_least_size(clamp.of) for clamp in clamps)
    more = {dim: lengths.size(dim) + number for dim, number in filter(None, floors)}
    return least.replaced(lambda dim: more.get(dim, lengths.size(dim))).never_negative


def _alone(clamp: Clamp) -> Length:
    return Length((((clamp,), Fraction(1)),))


def _unclamped(length: Length, clamps: Collection[Clamp]) -> Length:
    """At most ``length`` where none of ``clamps`` is 0: each is what it is of, or rounded up."""
    least = ZERO
    for symbols, share in length.terms:
        term = lengths.number(share)
        for symbol in symbols:
            if not isinstance(symbol, Clamp) or symbol not in clamps:
                term = term * Length((((symbol,), Fraction(1)),))
            elif symbol.rounds and share < 0:
                term = term * (symbol.of + symbol.of.rounding)
            else:
                term = term * symbol.of
        least = least + term
    return least


def _least_size(length: Length) -> tuple[Dim, Length] | None:
    """The dim on which alone a length depends, in proportion, and its least size above 0."""
    if len(length.symbols) != 1 or not isinstance(dim := length.symbols[0], str):
        return None
    shares = dict(length.terms)
    share, added = shares.pop((dim,), Fraction(0)), shares.pop((), Fraction(0))
    if shares or share <= 0:
        return None
    return dim, lengths.whole(max(floor(-added / share) + 1, 0))
