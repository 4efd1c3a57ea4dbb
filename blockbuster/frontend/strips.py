"""Where the axes of a value lie in the axes of an array: slices, split axes and windows.

A *piece* describes one axis of a value: a ``Cut`` keeps some of its elements, a ``Split`` makes two
axes of it, the outer one in front of all others, and so do ``Windows``.
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


def turned(dim: Axis, extent: Length) -> Cut:
    """All elements of an axis, from the last to the first."""
    return Cut(dim, extent - ONE, extent, -1)


@dataclass(frozen=True)
class Split:
    """``count`` groups of ``length`` elements, under ``outer`` and ``inner``."""

    outer: Axis
    inner: Axis
    count: Length
    length: Length

    @property
    def runs(self) -> tuple[Length, Length, Length]:
        """The place of the first element, and the steps along ``outer`` and along ``inner``."""
        return ZERO, self.length, ONE

    @property
    def covers(self) -> Length | None:
        """The extent that the axis has to have, if the pieces hold each of its elements once."""
        return self.count * self.length


@dataclass(frozen=True)
class Windows(Split):
    """``count`` windows of ``length`` elements, which may overlap or leave elements out.

    Element r of window h is the one at h * ``step`` + r * ``dilation`` - ``before``. ``padded``:
    that may be a place outside of the axis. An input reads zeros there; for any other value,
    ``Pieces.windows`` chooses between the value and zero.
    """

    step: int
    dilation: int
    before: Length
    padded: bool

    @property
    def runs(self) -> tuple[Length, Length, Length]:
        """As those of a split."""
        return ZERO - self.before, whole(self.step), whole(self.dilation)

    @property
    def covers(self) -> Length | None:
        """None: some elements may stand in several windows, and others in none."""
        return None


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
    padded: bool = False

    @property
    def moving(self) -> tuple[Along, ...]:
        """The axes that run along it; none if the array has one element there."""
        return self.along if isinstance(self.of, str) else ()

    def view(self, dims: Mapping[int, Dim]) -> AxisView:
        """The axis as the inputs and outputs of a graph write it, with ``dims`` of the axes."""
        if not isinstance(self.of, str):
            return None
        plain = not self.start.terms and not self.padded
        if plain and len(self.along) == 1 and self.along[0].length is None:
            return dims[self.along[0].axis]
        runs = tuple(
            Run(dim, None if a.length == size(dim) else a.length, a.step)
            for a, dim in ((a, dims[a.axis]) for a in self.along)
        )
        return Strided(self.of, runs, self.start, self.extent, self.padded)


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
        start = strip.start + piece.start * found[0].step
        return replace(strip, along=along, start=start, extent=total)

    return tuple(map(changed, strips))


def split(strips: Strips, axis: int, piece: Split) -> Strips:
    """The strips where a value's axis becomes two: the outer one axis 0, the others move up."""
    start, far, near = piece.runs

    def two(along: Along) -> tuple[Along, ...]:
        if along.axis != axis:
            return (replace(along, axis=along.axis + 1),)
        outer = Along(0, piece.count, far * along.step)
        inner = Along(axis + 1, piece.length, near * along.step)
        return tuple(a for a, dim in ((outer, piece.outer), (inner, piece.inner)) if dim != 1)

    def changed(strip: Strip) -> Strip:
        along = tuple(part for a in strip.along for part in two(a))
        found = [a for a in strip.along if a.axis == axis]
        if not found:
            return replace(strip, along=along)
        return replace(
            strip,
            along=along,
            start=strip.start + start * found[0].step,
            extent=piece.covers if found[0].length is None else strip.extent,
            padded=strip.padded or (isinstance(piece, Windows) and piece.padded),
        )

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
