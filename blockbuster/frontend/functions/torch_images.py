"""torch's functions of images beside convolutions and pools: patches, pixels, norms of channels."""

from __future__ import annotations

import math
from typing import Any

from blockbuster.frontend.functions.pointwise import square
from blockbuster.frontend.functions.reductions import mean
from blockbuster.frontend.functions.row import Array, torch_row, torch_rows
from blockbuster.frontend.functions.shapes import reshape, unflatten
from blockbuster.frontend.functions.spatial import in_batches, known, numbers
from blockbuster.frontend.functions.windows import viewed, windowed
from blockbuster.frontend.memory import own
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.sizes import rest
from blockbuster.frontend.source import trace_error

# windows as axes ------------------------------------------------------------------


def torch_unfold(input: Array, dimension: int, size: int, step: int) -> Array:
    """Windows of an axis, the elements of each along a new last axis."""
    (axis,) = axes_of("unfold", dimension, len(input.shape))
    (size,), (step,) = numbers("unfold", "size", size, 1, 1), numbers("unfold", "step", step, 1, 1)
    return viewed(input, axis, size, step)


def unfold(
    input: Array, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Array:
    """Each window of an image as a column of channels and places."""
    sizes = numbers("unfold", "kernel_size", kernel_size, 2, 1)
    steps, dilations = (
        numbers("unfold", what, given, 2, 1)
        for what, given in (("stride", stride), ("dilation", dilation))
    )
    pads = numbers("unfold", "padding", padding, 2, 0)

    def columns(x: Array) -> Array:
        batch, channels = x.shape[:2]
        for at in range(2):
            x = windowed(x, at + 2, sizes[at], steps[at], dilations[at], (pads[at],) * 2)
        rows, width = x.shape[2:4]
        return reshape(
            x.transpose((0, 1, 4, 5, 2, 3)), (batch, channels * math.prod(sizes), rows * width)
        )

    return own(in_batches("unfold", input, 2, columns))


def fold(
    input: Array, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
    stride: Any = 1,
) -> Array:  # fmt: skip
    """The image of which ``input`` holds all windows, which lie side by side, as columns."""
    sizes = numbers("fold", "kernel_size", kernel_size, 2, 1)
    places = numbers("fold", "output_size", output_size, 2, 1)
    plain = numbers("fold", "stride", stride, 2, 1) == sizes
    plain = plain and not any(numbers("fold", "padding", padding, 2, 0))
    plain = plain and {*numbers("fold", "dilation", dilation, 2, 1)} == {1}
    counts = [n // size for n, size in zip(places, sizes, strict=True)]
    if not plain or any(n % size for n, size in zip(places, sizes, strict=True)):
        reason = f"fold of windows of {sizes} in steps of {stride}, padded by {padding}"
        hint = "windows lie side by side, and fill the image; conv_transpose2d sums what overlaps"
        raise trace_error(reason, hint=hint)

    def image(x: Array) -> Array:
        channels = x.shape[1] // math.prod(sizes)
        apart = reshape(x, (x.shape[0], channels, *sizes, *counts))
        ordered = apart.transpose((0, 1, 4, 2, 5, 3))
        return reshape(ordered, (x.shape[0], apart.shape[1], *places))

    return own(in_batches("fold", input, 1, image))


# pixels ---------------------------------------------------------------------------


def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """Every r * r channels as r rows and r columns of pixels."""
    (r,) = numbers("pixel_shuffle", "upscale_factor", upscale_factor, 1, 1)
    channels = rest(input.shape[-3], r * r)
    if channels:
        reason = f"pixel_shuffle of {known(input.shape[-3])} channels by {r}"
        raise trace_error(reason, hint=f"channels are a multiple of {r * r}")
    leading = len(input.shape) - 3
    *batch, _, rows, width = input.shape
    apart = unflatten(input, leading, (input.shape[-3] // (r * r), r, r))
    order = (*range(leading + 1), *(leading + at for at in (3, 1, 4, 2)))
    shape = (*batch, apart.shape[leading], rows * r, width * r)
    return own(reshape(apart.transpose(order), shape))


def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """Every r rows and r columns of pixels as r * r channels."""
    (r,) = numbers("pixel_unshuffle", "downscale_factor", downscale_factor, 1, 1)
    if any(rest(size, r) for size in input.shape[-2:]):
        shown = " x ".join(str(known(size)) for size in input.shape[-2:])
        reason = f"pixel_unshuffle of {shown} pixels by {r}"
        raise trace_error(reason, hint=f"rows and columns are multiples of {r}")
    leading = len(input.shape) - 3
    *batch, channels, _, _ = input.shape
    apart = unflatten(input, -1, (input.shape[-1] // r, r))
    apart = unflatten(apart, -3, (input.shape[-2] // r, r))
    order = (*range(leading + 1), *(leading + at for at in (2, 4, 1, 3)))
    shape = (*batch, channels * r * r, apart.shape[leading + 1], apart.shape[leading + 3])
    return own(reshape(apart.transpose(order), shape))


def channel_shuffle(input: Array, groups: int) -> Array:
    """The channels, along axis 1, one of each group after the other."""
    (groups,) = numbers("channel_shuffle", "groups", groups, 1, 1)
    if rest(input.shape[1], groups):
        reason = f"channel_shuffle of {known(input.shape[1])} channels in {groups} groups"
        raise trace_error(reason, hint="groups divide the channels")
    apart = unflatten(input, 1, (groups, input.shape[1] // groups))
    return own(reshape(apart.swapaxes(1, 2), input.shape))


# norms ----------------------------------------------------------------------------


def local_response_norm(
    input: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Array:
    """``x`` over a power of the mean of squares of ``size`` channels around, plus ``k``."""
    (size,) = numbers("local_response_norm", "size", size, 1, 1)
    around = windowed(square(input), 1, size, 1, 1, (size // 2, (size - 1) // 2))
    return input / (mean(around, -1) * alpha + k) ** beta


_GROUP = "torch.nn.functional: images"

ROWS = (
    *torch_rows(_GROUP, unfold, fold, local_response_norm),
    *torch_rows(
        _GROUP, pixel_shuffle, pixel_unshuffle, channel_shuffle, modules=("", "nn.functional.")
    ),
    torch_row(torch_unfold, "Tensor.unfold", group=_GROUP),
)
