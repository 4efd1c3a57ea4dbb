"""The place of a tile as NumPy text: its slices of an array, split axes, or its accumulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blockbuster.emit.print.numpy.spelling import aligned
from blockbuster.emit.tile.program import Tile, View
from blockbuster.ir.lengths import ONE, Length
from blockbuster.ir.types import Dim
from blockbuster.ir.views import AxisView, Run, Strided


@dataclass(frozen=True)
class Scope:
    """The place of a statement: its indentation, and the loops around it."""

    indent: str
    loops: tuple[Dim, ...]

    def inside(self, dim: Dim) -> Scope:
        """The place of the body of a loop over ``dim``."""
        return Scope(self.indent + "    ", (*self.loops, dim))


@dataclass(frozen=True)
class SlicedPlaces:
    """Index texts for accesses in one scope.

    ``size``: the variable of a dim's size; ``start``: the first element of its current block, empty
    for 0; ``extent``: how many elements that has.
    """

    size: Callable[[Dim], str]
    start: Callable[[Dim], str]
    extent: Callable[[Dim], str]

    def needs_positions(self, view: View, tile: Tile) -> bool:
        """True if the tile lies along an axis in no slice."""
        return any(
            lies_at_positions(axis, tile.axes) for axis in view.dims if isinstance(axis, Strided)
        )

    def slice(self, axis: Strided, tile: Tile) -> str:
        """A position, or the slice where the tile has an axis."""
        terms = self._length(axis.start)
        lanes = [run for run in axis.runs if run.dim in tile.axes]
        for run in (*(run for run in axis.runs if run not in lanes), *lanes):
            if self.start(run.dim):
                terms += [self._times(self._shared(self.start(run.dim), run), run.step)]
        first = " + ".join(terms)
        if not lanes:
            return first or "0"
        extent, step = self.extent(lanes[0].dim), lanes[0].step
        each = "" if step == ONE else f":{step.constant}"
        stop = extent if step == ONE else f"{extent} * {step.constant}"
        return f"{first}:{first} + {stop}{each}" if first else f":{stop}{each}"

    def positions(self, view: View, tile: Tile) -> list[str]:
        """Every axis as an array of positions, all of the shape of the tile as the array lies."""
        order = view.sliced(tile)
        return [self._position(axis, order) for axis in view.dims]

    def with_zeros(
        self, name: str, view: View, tile: Tile, helper: Callable[[str], str]
    ) -> str:
        """The elements of a tile as they lie in an array, with zeros outside of padded axes."""
        return f"{helper('with_zeros')}({name}, {listed(self.positions(view, tile))})"

    def _position(self, axis: AxisView, order: tuple[Dim, ...]) -> str:
        if axis is None:
            return "0"
        if isinstance(axis, str):
            return self._lane(axis, order)
        terms = self._length(axis.start)
        for run in axis.runs:
            lane = self._lane(run.dim, order)
            terms += [self._times(self._shared(lane, run), run.step)] if lane != "0" else []
        return " + ".join(terms) or "0"

    def _lane(self, dim: Dim, order: tuple[Dim, ...]) -> str:
        start, extent = self.start(dim), self.extent(dim)
        if dim not in order:
            return start or "0"
        lanes = f"np.arange({start}, {start} + {extent})" if start else f"np.arange({extent})"
        return aligned(lanes, (dim,), order)

    def _shared(self, index: str, run: Run) -> str:
        """An index along a dim, or what a joined dim says of the run's own axis."""
        return index if run.share is None else f"({run.share.python(index, self.size)})"

    def _times(self, text: str, step: Length) -> str:
        return text if step == ONE else f"{text} * {step.python(self.size)}"

    def _length(self, length: Length) -> list[str]:
        return [length.python(self.size)] if length.terms else []


def lies_at_positions(axis: Strided, lanes: tuple[Dim, ...]) -> bool:
    """True if a tile with axes ``lanes`` has two of them along an axis of an array, or one whose
    steps are no positive number, or that runs along several axes: no slice shows that.
    """
    found = [run for run in axis.runs if run.dim in lanes]
    slices = all(run.share is None and (run.step.constant or 0) >= 1 for run in found)
    return len(found) > 1 or not slices


def lanes_of(total: Tile, value: Tile) -> str:
    """The part of ``total`` for ``value``: a ragged last block has only the first of its lanes.

    Empty where ``total`` has an entry per element.
    """
    if not total.per_lane:
        return ""
    stops = (
        f":{value.name}.shape[{at}]" if dim in total.per_lane else ":"
        for at, dim in enumerate(total.axes)
    )
    return f"[{', '.join(stops)}]"


def permuted(axes: tuple[Dim, ...], target: tuple[Dim, ...]) -> str:
    """The text that reorders an array with ``axes`` to ``target``."""
    if axes == target:
        return ""
    if len(axes) == 2:
        return ".T"
    return f".transpose({', '.join(str(axes.index(dim)) for dim in target)})"


def listed(texts: list[str]) -> str:
    """A tuple of texts, as text."""
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
