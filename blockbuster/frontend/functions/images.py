"""Images with a letter for each axis, and the products of windows of images with weights.

n are batches, g groups, c the channels of an input, k those of a result, and below stand the
letters of places. The channels are the last letter that is summed, so they are the inner axis of a
dot, and the elements of a kernel, its *taps*, are loops around it, but for patches of few channels
(torch_convolutions.py). A group of one channel has no c: then there is no dot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from blockbuster.frontend.functions.einsum import Lettered, einsum_traced
from blockbuster.frontend.functions.row import Array
from blockbuster.frontend.functions.shapes import is_unit, unflatten
from blockbuster.frontend.functions.spatial import in_batches, known, number, numbers
from blockbuster.frontend.functions.windows import windowed
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import trace_error

PLACES, TAPS, PHASES = "xyz", "rst", "uvw"
"""Of the result, of the kernel, and of the phases of a transposed convolution."""


@dataclass(frozen=True)
class Images:
    """An array, and the letters of its axes."""

    array: Array
    letters: str

    def at(self, letter: str) -> int:
        """The number of an axis."""
        return self.letters.index(letter)

    def windows(
        self, place: str, tap: str, size: Any, step: int, dilation: int, pads: Sequence[int]
    ) -> Images:
        """With windows of an axis, the elements of each along a new last axis ``tap``."""
        made = windowed(self.array, self.at(place), size, step, dilation, pads)
        return Images(made, self.letters + tap)

    def patches(self, place: str, tap: str, size: int) -> Images:
        """With windows side by side, the elements of each along a new last axis ``tap``: a reshape
        of the part of the axis that they fill.
        """
        at, count = self.at(place), self.array.shape[self.at(place)] // size
        filled = self.array[(*(slice(None),) * at, slice(None, count * size))]
        letters = self.letters.replace(place, f"{place}{tap}")
        return Images(unflatten(filled, at, (count, size)), letters).ordered(self.letters + tap)

    def channels_last(self) -> Images:
        """With the channels behind all other axes, where there are any.

        Windows are taken of that: a plan may store it once, and read the windows side by side.
        """
        others = self.letters.replace("c", "")
        return self if others == self.letters else self.ordered(f"{others}c")

    def every(self, step: int, place: str) -> Images:
        """With every ``step``-th element of an axis."""
        if step == 1:
            return self
        key = (*(slice(None),) * self.at(place), slice(None, None, step))
        return Images(self.array[key], self.letters)

    def grouped(self, channels: str, groups: int) -> Images:
        """With an axis of groups in front of that of the channels."""
        if groups == 1:
            return self
        at = self.at(channels)
        array = unflatten(self.array, at, (groups, self.array.shape[at] // groups))
        return Images(array, self.letters.replace(channels, f"g{channels}"))

    def without(self, letter: str) -> Images:
        """Without an axis of one element."""
        key = (*(slice(None),) * self.at(letter), 0)
        return Images(self.array[key], self.letters.replace(letter, ""))

    def without_unit(self, letter: str) -> Images:
        """Without an axis if it is known to have one element."""
        return self.without(letter) if is_unit(self.array, self.at(letter)) else self

    def ordered(self, letters: str) -> Images:
        """With its axes in the order of ``letters``, among which they all stand."""
        own = "".join(letter for letter in letters if letter in self.letters)
        return Images(self.array.transpose(tuple(map(self.at, own))), own)


def contracted(x: Images, w: Images, result: str, order: str = f"{TAPS}c") -> Array:
    """The products of two images, summed over all their letters that ``result`` lacks.

    ``order``: of these letters; the last that there is becomes the inner axis of a dot. Phases are
    outer loops: rows of tiles run over the places alone.
    """
    both = x.letters + w.letters
    folded, wanted, rows, places = (
        "".join(letter for letter in letters if letter in both)
        for letters in (order, result, f"g{PHASES}n{PLACES}k", f"{PHASES}ngk{PLACES}")
    )
    if "c" in folded:
        x, w = x.ordered(f"ng{PHASES}{PLACES}{folded}"), w.ordered(f"g{PHASES}k{folded}")
        made = einsum_traced(f"{x.letters},{w.letters}->{rows}", (x.array, w.array))
        return Lettered(made, rows).arranged(wanted)
    left, right = (Lettered(one.array, one.letters).arranged(folded + places) for one in (x, w))
    return Lettered(left * right, folded + places).summed(places).arranged(wanted)


@dataclass(frozen=True)
class Geometry:
    """The strides and dilations of a convolution, one for each axis; the number of its groups."""

    name: str
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int

    @property
    def count(self) -> int:
        """The number of axes."""
        return len(self.strides)

    def check(self, x: Array, w: Array, *, inputs: int) -> None:
        """Raise TraceError for weights of other ranks, and channels that groups do not divide.

        ``inputs``: the axis of the weights that holds the channels of the input.
        """
        if len(w.shape) != self.count + 2:
            reason = f"{self.name} with weights of {len(w.shape)} axes"
            raise trace_error(reason, hint=f"weights have {self.count + 2}: channels, then places")
        if self.groups > 1:
            taken, rows = (number(self.name, "channels", n) for n in (x.shape[1], w.shape[0]))
            if taken % self.groups or rows % self.groups:
                given = f"{taken} channels, and {rows} rows of weights, in {self.groups} groups"
                raise trace_error(f"{self.name} of {given}", hint="groups divide both")
        own, of_weights = known(x.shape[1]), known(w.shape[inputs])
        if not any(isinstance(size, SizeExpr) for size in (own, of_weights)):
            wanted = of_weights * (self.groups if inputs == 1 else 1)
            if own != wanted:
                reason = f"{self.name} of {own} channels with weights for {wanted}"
                raise trace_error(reason, hint="axis 1 of x holds the channels")


def geometry(name: str, count: int, stride: Any, dilation: Any, groups: Any) -> Geometry:
    """Strides, dilations and groups, as they are given. Raises TraceError for others."""
    (parts,) = numbers(name, "groups", groups, 1, 1)
    steps = numbers(name, "stride", stride, count, 1)
    return Geometry(name, steps, numbers(name, "dilation", dilation, count, 1), parts)


def with_bias(of: Geometry, x: Array, bias: Array | None, work: Callable[[Array], Array]) -> Array:
    """``work`` of images, whose batch axis may be absent, with a number added to each channel."""

    def biased(images: Array) -> Array:
        made = work(images)
        return made if bias is None else made + bias[(slice(None), *(None,) * of.count)]

    return in_batches(of.name, x, of.count, biased)
