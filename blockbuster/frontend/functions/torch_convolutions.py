"""torch's convolutions: contractions of windows with weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blockbuster.frontend.functions.images import (
    PLACES,
    TAPS,
    Geometry,
    Images,
    contracted,
    geometry,
    with_bias,
)
from blockbuster.frontend.functions.row import Array, of_images
from blockbuster.frontend.functions.shapes import reshape
from blockbuster.frontend.functions.spatial import is_at_least, known, number, numbers
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import trace_error


def convolution(
    name: str, count: int, input: Array, weight: Array, bias: Array | None = None,
    stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """The products of windows with weights, summed over taps and channels."""
    of = geometry(name, count, stride, dilation, groups)
    return with_bias(of, input, bias, lambda images: _convolved(images, weight, padding, of))


def _convolved(x: Array, w: Array, padding: Any, of: Geometry) -> Array:
    of.check(x, w, inputs=1)
    places, groups = PLACES[: of.count], of.groups
    pads = _pads(padding, w, of)
    images = Images(x, f"nc{places}").grouped("c", groups)
    weights = Images(w, f"kc{TAPS[: of.count]}").grouped("k", groups)
    if groups > 1 and known(w.shape[1]) == 1:
        images, weights = images.without("c"), weights.without("c").without_unit("k")
    patches = _are_patches(x, w, pads, of)
    images = images if patches else images.channels_last()
    for at, (place, tap) in enumerate(zip(places, TAPS, strict=False)):
        size, step, dilation = known(w.shape[at + 2]), of.strides[at], of.dilations[at]
        if isinstance(size, int) and size == 1 and pads[at] == (0, 0):
            images, weights = images.every(step, place), weights.without(tap)
        elif patches:
            images = images.patches(place, tap, size)
        else:
            images = images.windows(place, tap, size, step, dilation, pads[at])
    order = f"c{TAPS}" if patches else f"{TAPS}c"
    made = contracted(images, weights, f"ngk{places}", order)
    if len(made.shape) == of.count + 2:
        return made
    return reshape(made, (made.shape[0], w.shape[0], *made.shape[3:]))


def _are_patches(x: Array, w: Array, pads: Sequence[tuple[int, int]], of: Geometry) -> bool:
    """True for windows side by side, of sizes that are known, whose rows are longer than there are
    channels.

    A row of such a window lies in memory as it stands, so it is the inner axis of the dot: patches
    of 3 x 16 x 16 are predicted to take an H100 16 microseconds of 32 images, and with the channels
    inside, which are stored once in front of the library's call, 50.
    """
    channels, *sizes = (known(size) for size in w.shape[1:])
    if any(isinstance(size, SizeExpr) for size in (channels, *sizes)) or channels >= sizes[-1]:
        return False
    beside = tuple(sizes) == of.strides and {*of.dilations} == {1} and {*pads} == {(0, 0)}
    return beside and all(map(is_at_least, x.shape[2:], sizes))


def _pads(padding: Any, w: Array, of: Geometry) -> list[tuple[int, int]]:
    """Zeros in front of and behind each axis; "same" gives as many places as there were."""
    if not isinstance(padding, str):
        return [(n, n) for n in numbers(of.name, "padding", padding, of.count, 0)]
    if padding == "valid":
        return [(0, 0)] * of.count
    if padding != "same" or {*of.strides} != {1}:
        hint = 'it is numbers, "valid", or "same" where the stride is 1'
        raise trace_error(f"{of.name} with padding={padding!r}, stride={of.strides}", hint=hint)
    sizes = [number(of.name, "the kernel's size", size) for size in w.shape[2:]]
    spare = [(size - 1) * step for size, step in zip(sizes, of.dilations, strict=True)]
    return [(n // 2, n - n // 2) for n in spare]


_GROUP = "torch.nn.functional: convolutions"

ROWS = (*of_images("conv{}d", convolution, _GROUP, "nn.functional.", ""),)
