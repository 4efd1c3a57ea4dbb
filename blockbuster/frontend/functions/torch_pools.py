"""torch's pooling over windows that do not overlap: each is a fold of a part of an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from blockbuster.frontend.functions.reductions import max, mean
from blockbuster.frontend.functions.row import Array, Row
from blockbuster.frontend.functions.shapes import unflatten
from blockbuster.frontend.source import trace_error


def avg_pool1d(input: Array, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Array:
    """The means of windows side by side along the last axis."""
    return _pooled("avg_pool1d", mean, input, 1, (kernel_size, stride, padding))


def avg_pool2d(input: Array, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Array:
    """The means of windows side by side along the last two axes."""
    return _pooled("avg_pool2d", mean, input, 2, (kernel_size, stride, padding))


def max_pool1d(
    input: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Array:  # fmt: skip
    """The maxima of windows side by side along the last axis."""
    _only_plain("max_pool1d", dilation, ceil_mode, return_indices)
    return _pooled("max_pool1d", max, input, 1, (kernel_size, stride, padding))


def max_pool2d(
    input: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Array:  # fmt: skip
    """The maxima of windows side by side along the last two axes."""
    _only_plain("max_pool2d", dilation, ceil_mode, return_indices)
    return _pooled("max_pool2d", max, input, 2, (kernel_size, stride, padding))


def adaptive_avg_pool1d(input: Array, output_size: Any) -> Array:
    """The means along the last axis."""
    return _of_all("adaptive_avg_pool1d", input, 1, output_size)


def adaptive_avg_pool2d(input: Array, output_size: Any) -> Array:
    """The means over the last two axes."""
    return _of_all("adaptive_avg_pool2d", input, 2, output_size)


def _only_plain(name: str, dilation: Any, ceil_mode: bool, return_indices: bool) -> None:
    if {*_each(dilation, 1)} != {1} or ceil_mode or return_indices:
        reason = f"{name} with dilation, ceil_mode or return_indices cannot be traced"
        raise trace_error(reason, hint="leave them out")


def _each(value: Any, count: int) -> tuple[Any, ...]:
    """A number for each of ``count`` axes, given as one, or one by one."""
    given = tuple(value) if isinstance(value, tuple | list) else (value,)
    return given * count if len(given) == 1 else given


def _pooled(
    name: str, fold: Callable[..., Array], x: Array, count: int, windows: tuple[Any, Any, Any]
) -> Array:
    size, stride, padding = windows
    sizes, steps = _each(size, count), _each(size if stride in (None, []) else stride, count)
    if steps != sizes or any(_each(padding, count)):
        reason = f"{name} of windows of {sizes} in steps of {steps}, padded by {padding}"
        hint = "windows lie side by side: fold slices, bb.maximum(x[..., :-1:2], x[..., 1::2])"
        raise trace_error(reason, hint=hint)
    rank = len(x.shape)
    for axis, each in zip(range(rank - count, rank), sizes, strict=True):
        x = fold(unflatten(x, axis, (-1, each)), axis + 1)
    return x


def _of_all(name: str, x: Array, count: int, size: Any) -> Array:
    if set(_each(size, count)) != {1}:
        reason = f"{name} to {size} elements cannot be traced"
        raise trace_error(reason, hint="to 1 it is a mean; avg_pool takes windows side by side")
    return mean(x, tuple(range(len(x.shape) - count, len(x.shape))), True)


ROWS = tuple(
    Row(function, "torch.nn.functional: pools", torch=(f"nn.functional.{function.__name__}",),
        public=False)
    for function in (
        avg_pool1d, avg_pool2d, max_pool1d, max_pool2d, adaptive_avg_pool1d, adaptive_avg_pool2d,
    )
)  # fmt: skip
