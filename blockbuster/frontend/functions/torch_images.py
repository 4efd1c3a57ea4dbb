"""torch's functions of images that only move elements, and products with windows side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from blockbuster.frontend.functions.cuts import cut
from blockbuster.frontend.functions.joins import pad, repeat
from blockbuster.frontend.functions.products import einsum
from blockbuster.frontend.functions.row import Array, Row
from blockbuster.frontend.functions.shapes import (
    expand_dims,
    flatten,
    moveaxis,
    transpose,
    unflatten,
)
from blockbuster.frontend.memory import own
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.sizes import fixed, rest
from blockbuster.frontend.source import trace_error


def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """Channels (..., C r r, H, W) as pixels (..., C, H r, W r)."""
    _expect_image("pixel_shuffle", input)
    r, rank = upscale_factor, len(input.shape)
    apart = unflatten(input, -3, (-1, r, r))
    channels, down, right, rows, columns = range(rank - 3, rank + 2)
    moved = transpose(apart, (*range(rank - 3), channels, rows, down, columns, right))
    return own(flatten(flatten(moved, rank - 2, rank - 1), rank - 1, rank))


def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """Pixels (..., C, H r, W r) as channels (..., C r r, H, W)."""
    _expect_image("pixel_unshuffle", input)
    r, rank = downscale_factor, len(input.shape)
    apart = unflatten(unflatten(input, -1, (-1, r)), -3, (-1, r))
    channels, rows, down, columns, right = range(rank - 3, rank + 2)
    moved = transpose(apart, (*range(rank - 3), channels, down, right, rows, columns))
    return own(flatten(moved, rank - 3, rank - 1))


def _expect_image(name: str, x: Array) -> None:
    if len(x.shape) < 3:
        reason = f"{name} of {len(x.shape)} axes"
        raise trace_error(reason, hint="an image is (..., channels, rows, columns)")


def channel_shuffle(input: Array, groups: int) -> Array:
    """Channels, along axis 1, in another order: the first of each group, then the second."""
    if len(input.shape) < 3:
        reason = f"channel_shuffle of {len(input.shape)} axes"
        raise trace_error(reason, hint="channels are along axis 1 of three axes and more")
    apart = unflatten(input, 1, (groups, -1))
    return own(flatten(moveaxis(apart, 1, 2), 1, 2))


def interpolate(
    input: Array,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,  # noqa: ARG001 - whole factors stay what they are
    antialias: bool = False,
) -> Array:
    """Each pixel repeated a whole number of times along each axis of space."""
    space = len(input.shape) - 2
    if not 1 <= space <= 3:
        hint = "batches, channels and space: x[None, None] adds two axes"
        raise trace_error(f"interpolate of {len(input.shape)} axes", hint=hint)
    if mode not in ("nearest", "nearest-exact") or size is not None or scale_factor is None:
        what = f"mode={mode!r}" if mode not in ("nearest", "nearest-exact") else f"size={size!r}"
        _refuse_interpolation(what)
    if align_corners is not None or antialias:
        _refuse_interpolation("align_corners or antialias")
    factors = tuple(scale_factor) if isinstance(scale_factor, Sequence) else (scale_factor,) * space
    if len(factors) != space or any(factor != int(factor) or factor < 1 for factor in factors):
        _refuse_interpolation(f"scale_factor={scale_factor!r}")
    for axis, factor in enumerate(factors, start=2):
        input = repeat(input, int(factor), axis) if factor != 1 else input
    return own(input)


def _refuse_interpolation(what: str) -> NoReturn:
    hint = "scale_factor=2 with mode='nearest' repeats pixels, and avg_pool2d takes their means"
    raise trace_error(f"interpolate with {what} cannot be traced", hint=hint)


def unfold(input: Array, dimension: int, size: int, step: int) -> Array:
    """Windows side by side along an axis, whose elements are along a new last axis."""
    (at,) = axes_of("unfold", dimension, len(input.shape))
    return moveaxis(windows("unfold", input, at, size, step), at + 1, -1)


def torch_unfold(
    input: Array, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Array:
    """Patches side by side as columns: (batch, elements of a patch, patches)."""
    if {*each_of(dilation, 2)} != {1} or {*each_of(padding, 2)} != {0} or len(input.shape) != 4:
        hint = "an image has four axes; pad before, F.pad(x, (1, 1, 1, 1))"
        raise trace_error("unfold with padding or dilation, or of other axes", hint=hint)
    sizes, steps = each_of(kernel_size, 2), each_of(stride, 2)
    apart = windows("unfold", input, 2, sizes[0], steps[0])
    apart = transpose(windows("unfold", apart, 4, sizes[1], steps[1]), (0, 1, 3, 5, 2, 4))
    return own(flatten(flatten(apart, 1, 3), 2, 3))


def windows(name: str, x: Array, axis: int, size: int, step: int) -> Array:
    """``x`` with an axis split into windows, and a new axis behind it for their elements.

    What is left behind the last whole window is left out. Raises TraceError for windows that
    overlap, and if there is no whole one.
    """
    if step < size:
        reason = f"{name} of windows of {size} elements in steps of {step}: windows overlap"
        raise trace_error(reason, hint=OVERLAPPING)
    if step == size and not rest(x.shape[axis], size):
        return unflatten(x, axis, (-1, size))
    extent = fixed(x.shape[axis])
    if extent < size:
        raise trace_error(f"{name} of windows of {size} elements along an axis of {extent}")
    if size == 1:
        strided = x[(*(slice(None),) * axis, slice(None, None, step))]
        return expand_dims(strided, axis + 1)
    count = (extent - size) // step + 1
    if count * step > extent:  # the last window has no whole gap behind it
        widths = [(0, 0)] * len(x.shape)
        widths[axis] = 0, count * step - extent
        x = pad(x, widths)
    apart = unflatten(cut(x, axis, 0, count * step), axis, (count, step))
    return apart if step == size else cut(apart, axis + 1, 0, size)


OVERLAPPING = (
    "windows side by side, in steps of their size or more, are taken; for others fold slices:"
    " bb.maximum(x[..., :-1], x[..., 1:]) for windows of 2 in steps of 1"
)


def conv1d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """The product of the channels of windows side by side with a weight."""
    return _product("conv1d", input, weight, bias, (stride, padding, dilation, groups))


def conv2d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """The product of the channels of windows side by side with a weight: of patches."""
    return _product("conv2d", input, weight, bias, (stride, padding, dilation, groups))


def conv3d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """The product of the channels of windows side by side with a weight."""
    return _product("conv3d", input, weight, bias, (stride, padding, dilation, groups))


def _product(
    name: str, x: Array, weight: Array, bias: Array | None, how: tuple[Any, Any, Any, int]
) -> Array:
    stride, padding, dilation, groups = how
    space = len(weight.shape) - 2
    if len(x.shape) == space + 1:
        return _product(name, x[None], weight, bias, how)[0]
    if groups != 1:
        hint = "split the channels: torch.cat([F.conv2d(x, w) for x, w in zip(xs, ws)], 1)"
        raise trace_error(f"{name} with groups={groups} cannot be traced", hint=hint)
    sizes = [fixed(extent) for extent in weight.shape[2:]]
    steps, padded = each_of(stride, space), padding == "valid" or each_of(padding, space)
    one = {*sizes} == {1}
    if not (padded is True or padded == (0,) * space or (one and padding == "same")):
        hint = "pad before, F.pad(x, (1, 1, 1, 1)), where windows do not overlap"
        raise trace_error(f"{name} with padding={padding!r} cannot be traced", hint=hint)
    if {*each_of(dilation, space)} != {1} and not one:
        raise trace_error(f"{name} with dilation={dilation!r} cannot be traced")
    for at, (size, step) in enumerate(zip(sizes, steps, strict=True)):
        x = windows(name, x, 2 + 2 * at, size, step)
    places, inside = "pqr"[:space], "uvw"[:space]
    spread = "".join(f"{place}{own}" for place, own in zip(places, inside, strict=True))
    found = einsum(f"bc{spread},oc{inside}->bo{places}", x, weight)
    return found if bias is None else found + bias[(slice(None), *(None,) * space)]


def each_of(value: Any, count: int) -> tuple[Any, ...]:
    """A number for each of ``count`` axes, given as one, or one by one."""
    given = tuple(value) if isinstance(value, tuple | list) else (value,)
    return given * count if len(given) == 1 else given


def _of(function: Any, *names: str) -> Row:
    return Row(function, "torch: images and windows", torch=names, public=False)


ROWS = (
    _of(pixel_shuffle, "nn.functional.pixel_shuffle", "pixel_shuffle"),
    _of(pixel_unshuffle, "nn.functional.pixel_unshuffle", "pixel_unshuffle"),
    _of(channel_shuffle, "nn.functional.channel_shuffle", "channel_shuffle"),
    _of(interpolate, "nn.functional.interpolate"),
    _of(unfold, "Tensor.unfold"),
    _of(torch_unfold, "nn.functional.unfold"),
    _of(conv1d, "nn.functional.conv1d", "conv1d"),
    _of(conv2d, "nn.functional.conv2d", "conv2d"),
    _of(conv3d, "nn.functional.conv3d", "conv3d"),
)
