"""Where the axes of a value lie in the axes of an array: slices, and axes split into two.

A *piece* describes one axis of a value: a ``Cut`` keeps some of its elements, a ``Split`` makes two
axes of it, the outer one in front of all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from blockbuster.frontend.program import Axis
from blockbuster.ir.lengths import ONE, ZERO, Length, size, whole
from blockbuster.ir.types import Dim
from blockbuster.ir.views import AxisView, Run, Strided


@dataclass(frozen=True)
class Cut:
    """``length`` elements from ``start`` on, each ``step`` behind the last one, under ``dim``."""

    dim: Axis
    start: Length
    length: Length
    step: int = 1

    @property
    def stop(self) -> Length:
        """The place behind the last element."""
        return self.start + (self.length - ONE) * whole(self.step) + ONE


@dataclass(frozen=True)
class Split:
    """``count`` groups of ``length`` elements, under ``outer`` and ``inner``."""

    outer: Axis
    inner: Axis
    count: Length
    length: Length


Piece = Cut | Split


@dataclass(frozen=True)
class Along:
    """Axis ``axis`` of a value runs along an array's axis; ``length`` is None for all of it."""

    axis: int
    length: Length | None = None
    step: Length = ONE


@dataclass(frozen=True)
class Strip:
    """One axis of an array: the dim of its extent, and the axes of a value that run along it."""

    of: Axis
    along: tuple[Along, ...]
    start: Length = ZERO
    extent: Length | None = None

    def view(self, dims: Mapping[int, Dim]) -> AxisView:
        """The axis as the inputs and outputs of a graph write it, with ``dims`` of the axes."""
        if not isinstance(self.of, str):
            return None
        if len(self.along) == 1 and self.along[0].length is None and not self.start.terms:
            return dims[self.along[0].axis]
        runs = tuple(
            Run(dim, None if a.length == size(dim) else a.length, a.step)
            for a, dim in ((a, dims[a.axis]) for a in self.along)
        )
        return Strided(self.of, runs, self.start, self.extent)


Strips = tuple[Strip, ...]


def strips_of(axes: tuple[int | None, ...], shape: tuple[Axis, ...]) -> Strips:
    """An array of ``shape`` whose axis i is axis ``axes[i]`` of a value, None for extent 1."""
    return tuple(
        Strip(1, ()) if axis is None else Strip(dim, (Along(axis),))
        for axis, dim in zip(axes, shape, strict=True)
    )


def cut(strips: Strips, axis: int, piece: Cut, extent: Length | None = None) -> Strips:
    """The strips where a value keeps only ``piece`` of its axis, whose ``extent`` may be stated."""

    def changed(strip: Strip) -> Strip:
        found = [a for a in strip.along if a.axis == axis]
        if not found:
            return strip
        kept = replace(found[0], length=piece.length, step=found[0].step * whole(piece.step))
        along = tuple(kept if a is found[0] else a for a in strip.along)
        if piece.dim == 1:
            along = tuple(a for a in along if a is not kept)
        total = extent if found[0].length is None or extent is None else strip.extent
        return Strip(strip.of, along, strip.start + piece.start * found[0].step, total)

    return tuple(map(changed, strips))


def split(strips: Strips, axis: int, piece: Split) -> Strips:
    """The strips where a value's axis becomes two: the outer one axis 0, the others move up."""

    def two(along: Along) -> tuple[Along, ...]:
        if along.axis != axis:
            return (replace(along, axis=along.axis + 1),)
        outer = Along(0, piece.count, piece.length * along.step)
        inner = Along(axis + 1, piece.length, along.step)
        return tuple(a for a, dim in ((outer, piece.outer), (inner, piece.inner)) if dim != 1)

    def changed(strip: Strip) -> Strip:
        along = tuple(part for a in strip.along for part in two(a))
        alone = [a for a in strip.along if a.axis == axis and a.length is None]
        extent = piece.count * piece.length if alone else strip.extent
        return replace(strip, along=along, extent=extent)

    return tuple(map(changed, strips))


def in_order(strips: Strips) -> tuple[Strips, tuple[int, ...]]:
    """The strips of a value whose axes stand as they run along the array, and these axes' places.

    An extent that says what the array's dim does is left out, so that equal views are equal.
    """
    order = tuple(along.axis for strip in strips for along in strip.along)

    def changed(strip: Strip) -> Strip:
        along = tuple(replace(a, axis=order.index(a.axis)) for a in strip.along)
        is_said = isinstance(strip.of, str) and strip.extent == size(strip.of)
        return replace(strip, along=along, extent=None if is_said else strip.extent)

    return tuple(map(changed, strips)), order


def placed(strips: Strips, axes: tuple[int | None, ...]) -> Strips:
    """The strips in terms of another value whose axis ``axes[i]`` is axis i so far."""

    def changed(strip: Strip) -> Strip:
        pairs = ((a, axes[a.axis]) for a in strip.along)
        along = (replace(a, axis=axis) for a, axis in pairs if axis is not None)
        return replace(strip, along=tuple(along))

    return tuple(map(changed, strips))
