"""An axis along which a contraction convolves: its stride, dilation and padding, if it fits one.

forward      x[step * h + dilation * r - before] * w[r]
transposed   x[h + b - t] * w[step * t + q - f], for element step * h + q of the result
             x[h + b - dilation * r] * w[r], for element h

In the second form t and q tell r = step * t + q - f, and x is read where a transposed convolution
with step * b - f elements of padding reads it: at (step * h + q + padding - r) / step.
"""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.ir.lengths import ONE, Length, whole
from blockbuster.selection.library.extents import is_even
from blockbuster.selection.library.origins import Index


@dataclass(frozen=True)
class Run:
    """An axis of the result, with the variables of its ``place``, of a ``tap`` and of a ``phase``,
    and where it reads an axis of ``x`` and one of ``w``, if the filters have more than one tap.

    ``axis``: its number in w. ``given``, ``count`` and ``taps``: the extents of the axes of x, of
    the result and of w.
    """

    place: int
    tap: int | None
    phase: int | None
    x: Index
    w: Index
    axis: int | None
    given: Length
    count: Length
    taps: Length
    lengths: tuple[Length, ...]

    @property
    def made(self) -> tuple[int, ...]:
        """The variables along which the result runs."""
        return (self.place,) if self.phase is None else (self.place, self.phase)

    @property
    def is_turned(self) -> bool:
        """True if it fits a transposed convolution only."""
        return self.phase is not None or self._times(self.tap) < 0

    def _times(self, variable: int | None) -> int:
        return dict(self.x.terms).get(variable, 0) if variable is not None else 0

    def _length(self, variable: int | None) -> Length:
        return ONE if variable is None else self.lengths[variable]

    def forward(self) -> Geometry | None:
        """The geometry of a convolution that computes the same."""
        step, dilation, before = self._times(self.place), self._times(self.tap), -self.x.offset
        dilation = 1 if self.tap is None else dilation
        if self.is_turned or min(step, dilation) < 1 or before < 0:
            return None
        reach = whole(dilation) * (self.taps - ONE) + ONE
        whole_filter = self.w == _index({self.tap: 1}) and self.taps == self._length(self.tap)
        even = whole_filter and is_even(self.given, self.count, reach, step, before)
        return Geometry(step, dilation, before) if even else None

    def transposed(self) -> Geometry | None:
        """The geometry of a transposed convolution that computes the same."""
        step, taps = self._length(self.phase).constant, self.taps.constant
        read, dilation = self._length(self.tap).constant, -self._times(self.tap) or 1
        if None in (step, taps, read) or step is None or taps is None or read is None:
            return None
        front = -self.w.offset
        before = step * self.x.offset - front
        fits = self._times(self.place) == 1 and dilation > 0 and (step == 1 or dilation == 1)
        fits = fits and self.w == _index({self.tap: step, self.phase: 1}, -front)
        if not fits or min(front, before) < 0 or step * read - front < taps:
            return None
        least = whole(step) * (self.given - ONE) + whole(dilation * (taps - 1) + 1 - 2 * before)
        more = (self.count - least).constant
        if more is None or not 0 <= more < max(step, dilation):
            return None
        return Geometry(step, dilation, before, more)


@dataclass(frozen=True)
class Geometry:
    """Of one axis; ``more``: places behind the last that a transposed convolution has anyway."""

    step: int
    dilation: int
    before: int
    more: int = 0


def _index(times: dict[int | None, int], offset: int = 0) -> Index:
    """Of the variables that there are."""
    return Index.of({v: n for v, n in times.items() if v is not None}, offset)
