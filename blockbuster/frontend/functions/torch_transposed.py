"""torch's transposed convolutions, by phases.

With a stride of s, element u * s + p of the result is the sum over t of x[u + b - t] * w[t * s + p
- f], for b and f that follow from the padding. So windows of x, whose elements are in reverse, meet
windows of w, which lie side by side. The places u and the phases p merge into an axis of the
result. All of these are views, unless that axis has to be cut to size.

A padding that the stride does not divide puts f zeros in front of the weights, which may take one
tap more. With a stride of 2 it need not: the sum is that of x[u + b + p - t] * w[t * 2 + 1 - p].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from blockbuster.frontend.functions.cuts import cut
from blockbuster.frontend.functions.images import (
    PHASES,
    PLACES,
    TAPS,
    Geometry,
    Images,
    contracted,
    geometry,
    with_bias,
)
from blockbuster.frontend.functions.pads import pad
from blockbuster.frontend.functions.row import Array, of_images
from blockbuster.frontend.functions.shapes import reshape
from blockbuster.frontend.functions.spatial import known, number, numbers
from blockbuster.frontend.source import trace_error


def transposed(
    name: str, count: int, input: Array, weight: Array, bias: Array | None = None,
    stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Array:  # fmt: skip
    """The sums of weights times elements, each ``stride`` places behind the one before."""
    of, more = geometry(name, count, stride, dilation, groups), output_padding
    return with_bias(of, input, bias, lambda x: _transposed(x, weight, padding, more, of))


@dataclass(frozen=True)
class Phases:
    """One axis: the kernel's size, its stride and its dilation, and how the result is cut."""

    size: int
    stride: int
    step: int
    padding: int
    more: int

    @property
    def dilation(self) -> int:
        """That of windows of the input; with a stride, the weights are spread instead."""
        return self.step if self.stride == 1 else 1

    @property
    def reach(self) -> int:
        """The places that a kernel covers."""
        return self.step * (self.size - 1) + 1

    @property
    def ahead(self) -> int:
        """b: element u of the result reads element u + b of the input, and those in front."""
        return (self.padding + (0 if self.crossed else self.stride - 1)) // self.stride

    @property
    def crossed(self) -> bool:
        """True if odd phases read the next element of the input and the even weights, and if that
        takes a tap less than zeros in front of the weights.
        """
        return self.stride == 2 and self.padding % 2 == 1 and self.reach % 2 == 0

    @property
    def front(self) -> int:
        """f: zeros in front of the weights."""
        return 0 if self.crossed else self.ahead * self.stride - self.padding

    @property
    def taps(self) -> int:
        """How many elements of the input each element of the result reads."""
        return self.size if self.stride == 1 else -(-(self.reach + self.front) // self.stride)

    @property
    def beyond(self) -> int:
        """The places of the result but for ``stride`` behind each element of the input but one."""
        return self.reach - 2 * self.padding + self.more

    @property
    def pads(self) -> tuple[int, int]:
        """Zeros around the input."""
        behind = self.ahead + self.crossed - 1 + -(-self.beyond // self.stride)
        return self.dilation * (self.taps - 1) - self.ahead, behind

    @property
    def spare(self) -> int:
        """Places of the last phases that lie behind the result."""
        return -self.beyond % self.stride

    def of_weights(self, w: Images, tap: str, phase: str) -> Images:
        """The weights with taps where places were, and phases behind."""
        if self.stride == 1:
            return w
        if self.step > 1 and self.size > 1:
            w = Images(_spread(w.array, w.at(tap), self.size, self.step), w.letters)
        pads = self.front, self.taps * self.stride - self.front - self.reach
        return w.windows(tap, phase, self.stride, self.stride, -1 if self.crossed else 1, pads)

    def of_images(self, x: Images, place: str, tap: str, phase: str) -> Images:
        """The input with the elements that a place reads, in reverse, along an axis of taps."""
        pads = self.pads
        if self.crossed:
            x, pads = x.windows(place, phase, self.stride, 1, 1, pads), (0, 0)
        return x.windows(place, tap, self.taps, 1, -self.dilation, pads)


def _spread(w: Array, axis: int, size: int, step: int) -> Array:
    """``w`` with ``step`` - 1 zeros between its elements along an axis."""
    apart = w[(*(slice(None),) * (axis + 1), None)]
    widths = [(0, step - 1 if at == axis + 1 else 0) for at in range(len(apart.shape))]
    shape = (*w.shape[:axis], size * step, *w.shape[axis + 1 :])
    return cut(reshape(pad(apart, widths), shape), axis, 0, 1 - step)


def _transposed(x: Array, w: Array, padding: Any, more: Any, of: Geometry) -> Array:
    of.check(x, w, inputs=0)
    places, groups = PLACES[: of.count], of.groups
    images = Images(x, f"nc{places}").grouped("c", groups)
    weights = Images(w, f"ck{TAPS[: of.count]}").grouped("c", groups)
    if groups > 1:
        weights = weights.without_unit("k")
        if known(w.shape[0]) == groups:
            images, weights = images.without("c"), weights.without("c")
    images, weights = images.channels_last(), weights.channels_last()
    phases = _phases(w, padding, more, of)
    for each, place, tap, phase in zip(phases, PLACES, TAPS, PHASES, strict=False):
        weights = each.of_weights(weights, tap, phase)
        images = each.of_images(images, place, tap, phase)
    shown = "".join(f"{place}{phase}" for place, phase in zip(places, PHASES, strict=False))
    made = contracted(images, weights, f"ngk{shown}")
    counts = (images.array.shape[images.at(place)] for place in places)
    extents = [n * each.stride for n, each in zip(counts, phases, strict=True)]
    made = reshape(made, (made.shape[0], groups * w.shape[1], *extents))
    for axis, each in enumerate(phases, start=2):
        made = cut(made, axis, 0, -each.spare) if each.spare else made
    return made


def _phases(w: Array, padding: Any, more: Any, of: Geometry) -> list[Phases]:
    """One for each axis. Raises TraceError for a padding of the result that is too large."""
    pads = numbers(of.name, "padding", padding, of.count, 0)
    extra = numbers(of.name, "output_padding", more, of.count, 0)
    sizes = [number(of.name, "the kernel's size", size) for size in w.shape[2:]]
    for at, step in enumerate(of.strides):
        if extra[at] >= max(step, of.dilations[at]):
            hint = "it is smaller than the stride or the dilation"
            raise trace_error(f"{of.name} with output_padding={more!r}", hint=hint)
    return [*map(Phases, sizes, of.strides, of.dilations, pads, extra)]


_GROUP = "torch.nn.functional: convolutions"

ROWS = (*of_images("conv_transpose{}d", transposed, _GROUP, "nn.functional.", ""),)
