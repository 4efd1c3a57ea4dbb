"""Derivatives and integrals of what is known at points of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, as_floats
from blockbuster.frontend.functions.cuts import cut
from blockbuster.frontend.functions.joins import concat, diff
from blockbuster.frontend.functions.reductions import sum
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.source import trace_error


def gradient(x: Array, *spacing: float, axis: Any = None, edge_order: int = 1) -> Any:
    """Half the differences of both neighbours; at the ends, those of one neighbour."""
    axes = axes_of("gradient", range(len(x.shape)) if axis is None else axis, len(x.shape))
    made = _slopes(x, axes, spacing or (1,), edge_order)
    return made[0] if len(made) == 1 else made


def torch_gradient(
    input: Array, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Array, ...]:
    """Half the differences of both neighbours along each axis; at the ends, those of one."""
    axes = axes_of("gradient", range(len(input.shape)) if dim is None else dim, len(input.shape))
    steps = spacing if isinstance(spacing, list | tuple) else (spacing,)
    return _slopes(input, axes, steps, edge_order)


def _slopes(
    x: Array, axes: Sequence[int], spacing: Sequence[Any], edge_order: int
) -> tuple[Array, ...]:
    if edge_order != 1:
        raise trace_error(f"gradient with edge_order={edge_order!r}", hint="leave it out")
    steps = list(spacing) * (len(axes) if len(spacing) == 1 else 1)
    if len(steps) != len(axes) or not all(map(_is_number, steps)):
        hint = "give one number, or one for each axis"
        raise trace_error("gradient of points that are not known by a step", hint=hint)
    x = as_floats(x)
    return tuple(_slope(x, at, float(step)) for at, step in zip(axes, steps, strict=True))


def _is_number(step: Any) -> bool:
    return isinstance(step, int | float | np.integer | np.floating)


def _slope(x: Array, at: int, step: float) -> Array:
    if isinstance(x, TracedArray) and x.trace.dims.have([x.axes[at]], 2) is False:
        raise trace_error("gradient along an axis of less than two elements")
    first = (cut(x, at, 1, 2) - cut(x, at, 0, 1)) / step
    inside = (cut(x, at, 2, None) - cut(x, at, 0, -2)) / (2.0 * step)
    last = (cut(x, at, -1, None) - cut(x, at, -2, -1)) / step
    return concat([first, inside, last], at)


def trapezoid(y: Array, x: Array | None = None, dx: float = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by straight lines between points, ``dx`` apart or at ``x``."""
    (at,) = axes_of("trapezoid", axis, len(y.shape))
    y, widths = as_floats(y), dx
    if x is not None:
        traced = [one.trace for one in (x, y) if isinstance(one, TracedArray)]
        places = traced[0].array(x) if traced else np.asarray(x)
        widths = diff(places, axis=at - len(y.shape) if places.ndim > 1 else 0)
        after = len(y.shape) - 1 - at if places.ndim == 1 else 0
        widths = widths[(..., *(None,) * after)]
    return sum(widths * (cut(y, at, 1, None) + cut(y, at, 0, -1)) / 2.0, at - len(y.shape))


_GROUP = "Windows"

ROWS = (
    Row(gradient, _GROUP, ("gradient",), public=False, examples=(
        example("M=5", 0.5), example("M=4 N=5"), example("M N=5", axis=-1))),
    Row(trapezoid, _GROUP, ("trapezoid",), torch=("trapezoid", "trapz"), public=False, examples=(
        example("M N"), example("M N", None, 0.1, 0), example("M N", "N"))),
)  # fmt: skip
