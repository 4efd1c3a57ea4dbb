"""Functions that fold elements along axes."""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.frontend.array import along_axis, apply, reduce_axes
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.numerics import NUMPY

Axes = int | Sequence[int] | None


def sum(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The sum over one axis, several, or all (None)."""
    return reduce_axes("sum", x, axis, keepdims)


def max(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The maximum over one axis, several, or all (None)."""
    return reduce_axes("max", x, axis, keepdims)


def min(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The minimum over one axis, several, or all (None)."""
    return reduce_axes("min", x, axis, keepdims)


def mean(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The mean over one axis, several, or all (None)."""
    return reduce_axes("mean", x, axis, keepdims)


def logsumexp(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    """The logarithm of the sum of exp(x) along an axis; -inf for a row of only -inf."""
    return apply("logsumexp", x, axis=axis, keepdims=keepdims)


def cumsum(x: Array, axis: int | None = None) -> Array:
    """The sums of the first elements along an axis; None is for arrays of one axis."""
    return along_axis("cumsum", x, axis)


def cumprod(x: Array, axis: int | None = None) -> Array:
    """The products of the first elements along an axis; None is for arrays of one axis."""
    return along_axis("cumprod", x, axis)


_GROUP = "Along axes"
_AXES = (
    example("M N"), example("M N", axis=-1), example("B M N", axis=(0, 2), keepdims=True),
)  # fmt: skip
_ALONG = (example("M N", axis=0), example("M N", axis=-1))
_CALLED = "A library's function runs between kernels."

ROWS = (
    Row(sum, _GROUP, ("sum",), ("sum",), ("sum", "Tensor.sum"), _AXES),
    Row(max, _GROUP, ("max", "amax"), ("max",), ("amax", "Tensor.amax"), _AXES),
    Row(min, _GROUP, ("min", "amin"), ("min",), ("amin", "Tensor.amin"), _AXES),
    Row(mean, _GROUP, ("mean",), ("mean",), ("mean", "Tensor.mean"), _AXES),
    Row(logsumexp, _GROUP, torch=("logsumexp", "Tensor.logsumexp"),
        examples=(example("M N"), example("M N", axis=0, keepdims=True)),
        reference=lambda x, axis=-1, keepdims=False:
        NUMPY["logsumexp"](x, axis=axis, keepdims=keepdims)),
    Row(cumsum, _GROUP, ("cumsum",), ("cumsum",), ("cumsum", "Tensor.cumsum"), _ALONG,
        note=_CALLED),
    Row(cumprod, _GROUP, ("cumprod",), ("cumprod",), ("cumprod", "Tensor.cumprod"), _ALONG,
        note=_CALLED),
)  # fmt: skip
