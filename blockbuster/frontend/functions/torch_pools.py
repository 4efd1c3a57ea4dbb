"""torch's pools over windows that do not overlap: each is a fold of a part of an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.filled import ones_like
from blockbuster.frontend.functions.joins import pad
from blockbuster.frontend.functions.pointwise import abs, relu, sign
from blockbuster.frontend.functions.reductions import max, mean, sum
from blockbuster.frontend.functions.row import Array, Row
from blockbuster.frontend.functions.shapes import unflatten
from blockbuster.frontend.functions.torch_images import each_of, windows
from blockbuster.frontend.memory import own
from blockbuster.frontend.sizes import fixed, rest
from blockbuster.frontend.source import trace_error


def _average(name: str, space: int) -> Callable[..., Array]:
    def pooled(
        input: Array, kernel_size: Any, stride: Any = None, padding: Any = 0,
        ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Array:  # fmt: skip
        given = kernel_size, stride, padding, ceil_mode
        if divisor_override:
            return _pooled(name, sum, input, space, given, 0.0) / divisor_override
        if ceil_mode or any(each_of(padding, space)):
            if count_include_pad and ceil_mode:
                _refuse_counted(name, padding, space)
            total = _pooled(name, sum, input, space, given, 0.0)
            if count_include_pad and not ceil_mode:
                return total / int(np.prod(each_of(kernel_size, space)))
            return total / _pooled(name, sum, ones_like(input), space, given, 0.0)
        return _pooled(name, mean, input, space, given, 0.0)

    return _named(pooled, name, "means", space)


def _refuse_counted(name: str, padding: Any, space: int) -> None:
    """Raise TraceError where a window counts some of the elements that are not there."""
    if any(each_of(padding, space)):
        reason = f"{name} with ceil_mode=True and padding {padding}: windows count a part of it"
        raise trace_error(reason, hint="pass count_include_pad=False, or ceil_mode=False")


def _maximum(name: str, space: int) -> Callable[..., Array]:
    def pooled(
        input: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Array:  # fmt: skip
        if {*each_of(dilation, 1)} != {1}:
            raise trace_error(f"{name} with dilation={dilation} cannot be traced")
        _no_positions(name, return_indices)
        given = kernel_size, stride, padding, ceil_mode
        return _pooled(name, max, input, space, given, -np.inf)

    return _named(pooled, name, "maxima", space)


def _power(name: str, space: int) -> Callable[..., Array]:
    def pooled(
        input: Array, norm_type: float, kernel_size: Any, stride: Any = None,
        ceil_mode: bool = False,
    ) -> Array:  # fmt: skip
        given = kernel_size, stride, 0, ceil_mode
        total = _pooled(name, sum, input**norm_type, space, given, 0.0)
        return (sign(total) * relu(abs(total))) ** (1.0 / norm_type)

    return _named(pooled, name, "roots of sums of powers", space)


def _adaptive(name: str, fold: Callable[..., Array], space: int) -> Callable[..., Array]:
    def pooled(input: Array, output_size: Any, return_indices: bool = False) -> Array:
        _no_positions(name, return_indices)
        rank, wanted = len(input.shape), each_of(output_size, space)
        if all(size == 1 for size in wanted):
            return fold(input, tuple(range(rank - space, rank)), True)
        for axis, size in zip(range(rank - space, rank), wanted, strict=True):
            if size is not None:
                input = _shared(name, fold, input, axis, size)
        return own(input)

    return _named(pooled, name, "means" if fold is mean else "maxima", space)


def _no_positions(name: str, return_indices: bool) -> None:
    if return_indices:
        hint = "leave it out; torch.max(x, dim) gives the position along one axis"
        raise trace_error(f"{name} with return_indices=True cannot be traced", hint=hint)


def _named(pooled: Callable[..., Array], name: str, what: str, space: int) -> Callable[..., Array]:
    pooled.__name__ = pooled.__qualname__ = name
    axes = "the last axis" if space == 1 else f"the last {space} axes"
    pooled.__doc__ = f"The {what} of windows along {axes} that do not overlap."
    return pooled


def _pooled(
    name: str, fold: Callable[..., Array], x: Array, space: int, given: tuple[Any, ...], edge: float
) -> Array:
    """The folds of windows of the last axes; ``edge`` stands where an axis is padded."""
    size, stride, padding, ceil = given
    sizes, padded = each_of(size, space), each_of(padding, space)
    steps = sizes if stride in (None, [], ()) else each_of(stride, space)
    if not space + 1 <= len(x.shape) <= space + 2:
        hint = "an array has batches, channels and space, or channels and space"
        raise trace_error(f"{name} of {len(x.shape)} axes", hint=hint)
    for axis, count, step, around in zip(
        range(len(x.shape) - space, len(x.shape)), sizes, steps, padded, strict=True
    ):
        if around > count / 2:
            reason = f"{name} of windows of {count} elements, padded by {around}"
            raise trace_error(reason, hint="padding is at most half of a window")
        behind = around + (_missing(x.shape[axis], count, step, around) if ceil else 0)
        if around or behind:
            widths = [(0, 0)] * len(x.shape)
            widths[axis] = around, behind
            x = pad(x, widths, constant_values=edge)
        x = fold(windows(name, x, axis, count, step), axis + 1)
    return x


def _missing(extent: Any, size: int, step: int, padding: int) -> int:
    """How many elements the last window lacks, which begins on the axis or in front of it."""
    if not padding and step == size and rest(extent, size) == 0:
        return 0
    length = fixed(extent) + 2 * padding
    count = -(-(length - size) // step) + 1
    if (count - 1) * step >= length - padding:
        count -= 1
    return int(np.maximum((count - 1) * step + size - length, 0))


def _shared(name: str, fold: Callable[..., Array], x: Array, axis: int, size: int) -> Array:
    """``x`` with ``size`` folds along an axis: of as many elements each."""
    if size == 1:
        return fold(x, axis, True)
    if isinstance(x, TracedArray) and fixed(x.shape[axis]) == size:
        return x
    if rest(x.shape[axis], size):
        reason = f"{name} of {x.shape[axis]!r} elements to {size}: windows overlap"
        raise trace_error(reason, hint="the size of the result divides that of the axis")
    return fold(unflatten(x, axis, (size, -1)), axis + 1)


ROWS = tuple(
    Row(function, "torch.nn.functional: pools", torch=(f"nn.functional.{function.__name__}",),
        public=False)
    for space in (1, 2, 3)
    for function in (
        _average(f"avg_pool{space}d", space), _maximum(f"max_pool{space}d", space),
        _adaptive(f"adaptive_avg_pool{space}d", mean, space),
        _adaptive(f"adaptive_max_pool{space}d", max, space),
        _power(f"lp_pool{space}d", space),
    )
)  # fmt: skip
