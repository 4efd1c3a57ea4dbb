"""Views of one axis of an array: slices, and axes split into two, cost nothing.

An axis is read under one dim, under none (extent 1), or *strided*: the element at the positions
i, j, ... of its runs is ``start + i * step_i + j * step_j + ...``. A slice is one run with an
offset, a split axis is two runs, and the two combine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import blockbuster.ir.lengths as lengths
from blockbuster.ir.lengths import ONE, ZERO, Length, Rule
from blockbuster.ir.types import Dim, size_class


@dataclass(frozen=True)
class Run:
    """A dim that runs along an axis in steps; ``size`` is None if others say the dim's size."""

    dim: Dim
    size: Length | None = None
    step: Length = ONE


@dataclass(frozen=True)
class Strided:
    """An axis of ``|of|`` elements under several runs, outermost first, or none: one element.

    ``extent``: what ``|of|`` has to be, where the runs cover the whole axis, or it is put together
    of several such parts.
    """

    of: Dim
    runs: tuple[Run, ...]
    start: Length = ZERO
    extent: Length | None = None

    def __str__(self) -> str:
        runs = []
        for run in self.runs:
            size = "" if run.size is None else f" = {run.size}"
            runs.append(f"{run.dim}{size}{'' if run.step == ONE else f' step {run.step}'}")
        words = [", ".join(runs)] if runs else []
        words += [f"from {self.start}"] if self.start.terms else []
        words += [] if self.extent is None else [f"of {self.extent}"]
        return f"{self.of}[{' '.join(words)}]"


AxisView = Dim | Strided | None


def dims_along(axis: AxisView) -> tuple[Dim, ...]:
    """The dims under which an axis is read, outermost first."""
    if isinstance(axis, Strided):
        return tuple(run.dim for run in axis.runs)
    return () if axis is None else (axis,)


def dims_among(axes: Iterable[AxisView]) -> tuple[Dim, ...]:
    """The dims under which the axes of an array are read, in order."""
    return tuple(dim for axis in axes for dim in dims_along(axis))


def array_dim(axis: AxisView) -> Dim | None:
    """The dim whose size is the extent of the array's axis; None for extent 1."""
    return axis.of if isinstance(axis, Strided) else axis


def relabeled(axis: AxisView, names: Mapping[Dim, Dim]) -> AxisView:
    """``axis`` under other dims of the same sizes."""
    if isinstance(axis, Strided):
        runs = (replace(run, dim=names.get(run.dim, run.dim)) for run in axis.runs)
        return replace(axis, runs=tuple(runs))
    return axis if axis is None else names.get(axis, axis)


def rules_of(axes: Iterable[AxisView]) -> Iterator[Rule]:
    """The facts about sizes from axes: those of their runs, and that every element exists."""
    for axis in axes:
        if not isinstance(axis, Strided):
            continue
        of = size_class(axis.of)
        last = axis.start
        for run in axis.runs:
            own = lengths.size(run.dim) if run.size is None else run.size
            last = last + (own - ONE) * run.step
            if run.size is not None:
                yield Rule(size_class(run.dim), run.size)
        if axis.extent is not None and axis.extent != lengths.size(of):
            yield Rule(of, axis.extent)
        if axis.start.constant is None:
            yield Rule(of, lengths.size(of) - axis.start, exact=False)
        spare = (lengths.size(of) - last - ONE).constant
        if spare is None or spare < 0:
            yield Rule(of, last + ONE, exact=False)
