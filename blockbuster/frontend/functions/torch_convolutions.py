"""torch's convolutions: contractions of windows with weights.

The channels stand last among the axes that are summed, so they are the inner axis of a dot, and
the taps are loops around it. Where each group has one channel there is no dot.

A transposed convolution with stride s computes s *phases*: element u * s + p of the result is the
sum over t of x[u + b - t] * w[t * s + p - f], where b and f follow from the padding. So windows of
x, in reverse, meet windows of w side by side, and the phases merge into the axis of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from blockbuster.frontend.functions.cuts import cut
from blockbuster.frontend.functions.einsum import Lettered, einsum_traced
from blockbuster.frontend.functions.joins import pad
from blockbuster.frontend.functions.row import Array, Row
from blockbuster.frontend.functions.shapes import is_unit, reshape, unflatten
from blockbuster.frontend.functions.spatial import in_batches, known, number, numbers
from blockbuster.frontend.functions.windows import windowed
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import trace_error

PLACES, TAPS, PHASES = "xyz", "rst", "uvw"
"""Letters of axes: of the result's places, of the kernel's elements, and of phases."""


@dataclass(frozen=True)
class Images:
    """An array with a letter for each axis: n batches, g groups, c and k channels."""

    array: Array
    letters: str

    def windows(self, place: str, tap: str, size: Any, *more: Any) -> Images:
        """With windows of an axis, their elements along a new last axis ``tap``."""
        axis = self.letters.index(place)
        return Images(windowed(self.array, axis, size, *more), self.letters + tap)

    def grouped(self, channels: str, groups: int, *, alone: bool) -> Images:
        """With an axis of groups in front of the channels; the latter is left out if ``alone``."""
        if groups == 1:
            return self
        letters, at = self.letters.replace(channels, f"g{channels}"), self.letters.index(channels)
        array = self.array
        if not alone:
            array = unflatten(array, at, (groups, -1))
        return Images(array, letters.replace(channels, "") if alone else letters)

    def without(self, gone: str) -> Images:
        """Without axes of one element."""
        key = tuple(0 if letter in gone else slice(None) for letter in self.letters)
        kept = "".join(letter for letter in self.letters if letter not in gone)
        return replace(self, array=self.array[key], letters=kept) if gone else self

    def ordered(self, letters: str) -> Images:
        """With those of its axes that stand among ``letters``, in their order."""
        own = "".join(letter for letter in letters if letter in self.letters)
        return Images(self.array.transpose([self.letters.index(c) for c in own]), own)


def _contracted(x: Images, w: Images, result: str) -> Array:
    """The sum of products over all letters that ``result`` lacks."""
    folded = "".join(letter for letter in TAPS + "c" if letter in x.letters + w.letters)
    wanted = "".join(letter for letter in result if letter in x.letters + w.letters)
    if "c" in folded:
        x, w = x.ordered(f"ng{PLACES}{folded}"), w.ordered(f"g{PHASES}k{folded}")
        return einsum_traced(f"{x.letters},{w.letters}->{wanted}", (x.array, w.array))
    every = wanted + folded
    pair = (Lettered(one.array, one.letters).arranged(every) for one in (x, w))
    product = next(pair) * next(pair)
    return Lettered(product, every).summed(wanted).arranged(wanted)


def _channels(name: str, x: Array, w: Array, groups: Any, *, axis: int) -> int:
    """The number of groups. Raises TraceError if it does not divide the channels."""
    (count,) = numbers(name, "groups", groups, 1, 1)
    if count > 1:
        taken, made = (number(name, "channels", size) for size in (x.shape[1], w.shape[0]))
        if taken % count or made % count:
            reason = f"{name} of {taken} channels, and {made} rows of weights, in {count} groups"
            raise trace_error(reason, hint="groups divide both")
    pair = known(x.shape[1]), known(w.shape[axis])
    if not any(isinstance(size, SizeExpr) for size in pair):
        wanted = pair[1] * (count if axis else 1)
        if pair[0] != wanted:
            reason = f"{name} of {pair[0]} channels with weights for {wanted}"
            raise trace_error(reason, hint="axis 1 of x holds the channels")
    return count


def _check_weights(name: str, w: Array, count: int) -> None:
    if len(w.shape) != count + 2:
        reason = f"{name} with weights of {len(w.shape)} axes"
        raise trace_error(reason, hint=f"weights have {count + 2}: two of channels, then places")


def _pads(name: str, padding: Any, taps: tuple[Any, ...], geometry: Geometry) -> list[Any]:
    """Zeros in front of and behind each axis; "same" gives as many places as there were."""
    count = len(taps)
    if padding == "valid":
        return [(0, 0)] * count
    if padding == "same":
        if {*geometry.stride} != {1}:
            reason = f'{name} with padding="same" and stride={geometry.stride}'
            raise trace_error(reason, hint="the stride is 1 there")
        sizes = [number(name, "the kernel's size", size) for size in taps]
        spare = [(n - 1) * d for n, d in zip(sizes, geometry.dilation, strict=True)]
        return [(n // 2, n - n // 2) for n in spare]
    if isinstance(padding, str):
        hint = 'padding is numbers, "same" or "valid"'
        raise trace_error(f"{name} with padding={padding!r}", hint=hint)
    return [(n, n) for n in numbers(name, "padding", padding, count, 0)]


@dataclass(frozen=True)
class Geometry:
    """Strides and dilations, one for each axis."""

    stride: tuple[int, ...]
    dilation: tuple[int, ...]


def _geometry(name: str, stride: Any, dilation: Any, count: int) -> Geometry:
    steps = numbers(name, "stride", stride, count, 1)
    return Geometry(steps, numbers(name, "dilation", dilation, count, 1))


def _with_bias(made: Array, bias: Array | None, count: int) -> Array:
    return made if bias is None else made + bias[(slice(None), *(None,) * count)]


def _convolved(
    name: str, count: int, x: Array, w: Array, padding: Any, geometry: Geometry, groups: Any
) -> Array:
    _check_weights(name, w, count)
    groups = _channels(name, x, w, groups, axis=1)
    alone = groups > 1 and is_unit(w, 1)
    taps = tuple(map(known, w.shape[2:]))
    pads = _pads(name, padding, taps, geometry)
    places = PLACES[:count]
    of_x = Images(x, f"nc{places}").grouped("c", groups, alone=alone)
    of_w = Images(w, f"kc{TAPS[:count]}").grouped("k", groups, alone=False)
    of_w = of_w.without("c") if alone else of_w
    for at, (place, tap) in enumerate(zip(places, TAPS, strict=False)):
        step, dilation = geometry.stride[at], geometry.dilation[at]
        if is_unit(w, at + 2) and pads[at] == (0, 0):
            of_w = of_w.without(tap)
            if step > 1:
                axis = of_x.letters.index(place)
                of_x = replace(of_x, array=of_x.array[(*(slice(None),) * axis, slice(None, None, step))])
        else:
            of_x = of_x.windows(place, tap, taps[at], step, dilation, pads[at])
    if groups > 1 and is_unit_channel(of_w):
        of_w = of_w.without("k")
    made = _contracted(of_x, of_w, f"ngk{places}")
    return _merged_groups(made, w.shape[0]) if len(made.shape) > count + 2 else made


def is_unit_channel(w: Images) -> bool:
    return is_unit(w.array, w.letters.index("k"))


def _merged_groups(made: Array, channels: Any) -> Array:
    batch, _, _, *places = made.shape
    return reshape(made, (batch, channels, *places))


def _transposed(
    name: str, count: int, x: Array, w: Array, padding: Any, more: Any, geometry: Geometry,
    groups: Any,
) -> Array:  # fmt: skip
    _check_weights(name, w, count)
    groups = _channels(name, x, w, groups, axis=0)
    pads = numbers(name, "padding", padding, count, 0)
    extra = numbers(name, "output_padding", more, count, 0)
    channels = groups * w.shape[1]
    alone = groups > 1 and number(name, "channels", w.shape[0]) == groups
    places = PLACES[:count]
    of_x = Images(x, f"nc{places}").grouped("c", groups, alone=alone)
    of_w = Images(w, f"ck{TAPS[:count]}").grouped("c", groups, alone=alone)
    if groups > 1 and is_unit_channel(of_w):
        of_w = of_w.without("k")
    gone = []
    for at, (place, tap, phase) in enumerate(zip(places, TAPS, PHASES, strict=False)):
        stride, dilation = geometry.stride[at], geometry.dilation[at]
        if extra[at] >= max(stride, dilation):
            reason = f"{name} with output_padding={more!r}"
            raise trace_error(reason, hint="it is smaller than the stride or the dilation")
        size = number(name, "the kernel's size", w.shape[at + 2])
        phased = Phases(size, stride, dilation, pads[at], extra[at])
        of_w = phased.of_weights(of_w, tap, phase)
        of_x = of_x.windows(place, tap, phased.taps, 1, -phased.dilation, phased.pads)
        gone.append(phased.spare)
    shown = "".join(a + b for a, b in zip(places, PHASES, strict=False))
    made = _contracted(of_x, of_w, f"ngk{shown}")
    return _merged_phases(made, of_x, geometry, gone, channels)


def _merged_phases(
    made: Array, of_x: Images, geometry: Geometry, gone: list[int], channels: Any
) -> Array:
    """The phases merged into their axes, which are cut to size, and the groups into channels."""
    count = len(gone)
    own = [of_x.array.shape[of_x.letters.index(place)] for place in PLACES[:count]]
    extents = [n * step for n, step in zip(own, geometry.stride, strict=True)]
    made = reshape(made, (made.shape[0], channels, *extents))
    for axis, spare in enumerate(gone, start=2):
        made = cut(made, axis, 0, -spare) if spare else made
    return made


@dataclass(frozen=True)
class Phases:
    """One axis of a transposed convolution."""

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
        """How many places the kernel covers."""
        return self.step * (self.size - 1) + 1

    @property
    def ahead(self) -> int:
        """The element of the input, by the element of the result, that the first tap reads."""
        return -(-self.padding // self.stride)

    @property
    def front(self) -> int:
        """Zeros in front of the weights."""
        return self.ahead * self.stride - self.padding

    @property
    def taps(self) -> int:
        """How many elements of the input each element of the result reads."""
        return self.size if self.stride == 1 else -(-(self.reach + self.front) // self.stride)

    @property
    def beyond(self) -> int:
        """How many places the result has, less ``stride`` for each but one of the input."""
        return self.reach - 2 * self.padding + self.more

    @property
    def pads(self) -> tuple[int, int]:
        """Zeros around the input."""
        behind = self.ahead - 1 - (-self.beyond // self.stride)
        return self.dilation * (self.taps - 1) - self.ahead, behind

    @property
    def spare(self) -> int:
        """Elements of the last phases that lie behind the result."""
        return -self.beyond % self.stride

    def of_weights(self, w: Images, tap: str, phase: str) -> Images:
        """The weights as windows side by side: taps where places were, and phases behind."""
        if self.stride == 1:
            return w
        axis, array = w.letters.index(tap), w.array
        if self.step > 1 and self.size > 1:
            array = _spread(array, axis, self.size, self.step)
        behind = self.taps * self.stride - self.front - self.reach
        pads = self.front, behind
        return replace(w, array=array).windows(tap, phase, self.stride, self.stride, 1, pads)


def _spread(w: Array, axis: int, size: int, step: int) -> Array:
    """``w`` with ``step`` - 1 zeros between its elements along an axis."""
    apart = w[(*(slice(None),) * (axis + 1), None)]
    widths = [(0, step - 1) if at == axis + 1 else (0, 0) for at in range(len(apart.shape))]
    shape = (*w.shape[:axis], size * step, *w.shape[axis + 1 :])
    return cut(reshape(pad(apart, widths), shape), axis, 0, 1 - step)


def _conv(
    count: int, args: tuple[Any, ...], padding: Any, stride: Any, dilation: Any, groups: Any
) -> Array:
    input, weight, bias = args
    name = f"conv{count}d"
    geometry = _geometry(name, stride, dilation, count)

    def work(x: Array) -> Array:
        made = _convolved(name, count, x, weight, padding, geometry, groups)
        return _with_bias(made, bias, count)

    return in_batches(name, input, count, work)


def conv1d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """The products of windows of the last axis with weights, summed over taps and channels."""
    return _conv(1, (input, weight, bias), padding, stride, dilation, groups)


def conv2d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """The products of windows of the last two axes with weights, summed."""
    return _conv(2, (input, weight, bias), padding, stride, dilation, groups)


def conv3d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """The products of windows of the last three axes with weights, summed."""
    return _conv(3, (input, weight, bias), padding, stride, dilation, groups)


def _conv_transpose(
    count: int, args: tuple[Any, ...], padding: Any, more: Any, stride: Any, dilation: Any,
    groups: Any,
) -> Array:  # fmt: skip
    input, weight, bias = args
    name = f"conv_transpose{count}d"
    geometry = _geometry(name, stride, dilation, count)

    def work(x: Array) -> Array:
        made = _transposed(name, count, x, weight, padding, more, geometry, groups)
        return _with_bias(made, bias, count)

    return in_batches(name, input, count, work)


def conv_transpose1d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Array:  # fmt: skip
    """The gradient of ``conv1d`` for its input, as a layer that gives more elements."""
    args = input, weight, bias
    return _conv_transpose(1, args, padding, output_padding, stride, dilation, groups)


def conv_transpose2d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Array:  # fmt: skip
    """The gradient of ``conv2d`` for its input, as a layer that gives more elements."""
    args = input, weight, bias
    return _conv_transpose(2, args, padding, output_padding, stride, dilation, groups)


def conv_transpose3d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Array:  # fmt: skip
    """The gradient of ``conv3d`` for its input, as a layer that gives more elements."""
    args = input, weight, bias
    return _conv_transpose(3, args, padding, output_padding, stride, dilation, groups)


_FUNCTIONS: tuple[Callable[..., Array], ...] = (
    conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d,
)  # fmt: skip

ROWS = tuple(
    Row(function, "torch.nn.functional: convolutions", public=False,
        torch=(f"nn.functional.{function.__name__}", function.__name__))
    for function in _FUNCTIONS
)  # fmt: skip
