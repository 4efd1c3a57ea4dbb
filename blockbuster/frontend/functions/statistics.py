"""Covariances of rows, and quantiles of elements in order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, as_floats
from blockbuster.frontend.functions.joins import stack
from blockbuster.frontend.functions.orders import sort
from blockbuster.frontend.functions.pointwise import astype, clip, sqrt, square, where
from blockbuster.frontend.functions.reductions import any, mean, sum
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.functions.shapes import ravel
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.sizes import fixed
from blockbuster.frontend.source import trace_error


def cov(x: Array, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Array:
    """The covariances of rows (of columns without ``rowvar``), over their count less ``ddof``."""
    apart = _centered(x, rowvar)
    count = apart.shape[-1] - (ddof if ddof is not None else int(not bias))
    return apart @ apart.swapaxes(0, -1) / count


def corrcoef(x: Array, rowvar: bool = True) -> Array:
    """The covariances of rows over the products of their standard deviations."""
    apart = _centered(x, rowvar)
    apart = apart / sqrt(sum(square(apart), -1, True))
    return clip(apart @ apart.swapaxes(0, -1), -1.0, 1.0)


def _centered(x: Array, rowvar: bool) -> Array:
    """Rows less their means."""
    x = _in_float64(x)
    x = x if rowvar or len(x.shape) < 2 else x.swapaxes(0, 1)
    return x - mean(x, -1, True)


def _in_float64(x: Array) -> Array:
    """A traced array of NumPy's in float64, in which NumPy computes; tensors keep their floats."""
    of_numpy = isinstance(x, TracedArray) and x.trace.of_arrays and not x.trace.of_tensors
    return astype(x, "float64") if of_numpy else as_floats(x)


def quantile(
    x: Array, q: Any, axis: int | None = None, keepdims: bool = False,
    *, method: str = "linear", interpolation: str = "linear",
) -> Array:  # fmt: skip
    """The element below which a share ``q`` of the others lies, between two of them."""
    if (method, interpolation) != ("linear", "linear"):
        raise trace_error("a quantile that is not linear between elements", hint='use "linear"')
    if isinstance(q, TracedArray):
        raise trace_error("the share of a quantile is no number", hint="give a number: 0.5")
    shares = np.asarray(q)
    x = _in_float64(x) if shares.ndim else as_floats(x)
    keys = (None,) * len(x.shape) if axis is None and keepdims else ()
    if axis is None:
        x, axis, keepdims = ravel(x), 0, False
    (at,) = axes_of("quantile", axis, len(x.shape))
    ordered, lost = sort(x, at), any(x != x, at, keepdims)
    made = [_between(ordered, lost, at, float(share), keepdims) for share in shares.ravel()]
    made = [one[keys] if keys else one for one in made]
    return stack(made) if shares.ndim else made[0]


def _between(ordered: Array, lost: Array, at: int, share: float, keepdims: bool) -> Array:
    """The element at a share of an axis; NaN where one was ``lost`` in the order."""
    place = share * (fixed(ordered.shape[at]) - 1)
    inside, below = (slice(None),) * at, math.floor(place)
    low = ordered[(*inside, slice(below, below + 1) if keepdims else below)]
    if place != below:
        high = ordered[(*inside, slice(below + 1, below + 2) if keepdims else below + 1)]
        low = low + (high - low) * (place - below)
    return where(lost, np.nan, low)


def percentile(
    x: Array, q: Any, axis: int | None = None, keepdims: bool = False, *, method: str = "linear"
) -> Array:
    """The element below which ``q`` of a hundred of the others lie, between two of them."""
    return quantile(x, np.asarray(q) / 100.0, axis, keepdims, method=method)


_GROUP = "Along axes"
_ORDERED = "The elements are put in order first, as by ``sort``."

ROWS = (
    Row(cov, _GROUP, ("cov",), torch=("cov", "Tensor.cov"), public=False, examples=(
        example("M N"), example("N"), example("M N", ddof=0))),
    Row(corrcoef, _GROUP, ("corrcoef",), torch=("corrcoef", "Tensor.corrcoef"), public=False,
        examples=(example("M N"),)),
    Row(quantile, _GROUP, ("quantile",), torch=("quantile", "Tensor.quantile"), public=False,
        examples=(example("M N", 0.3, 1), example("M N=5", 0.25, axis=-1, keepdims=True)),
        note=_ORDERED),
    Row(percentile, _GROUP, ("percentile",), public=False, note=_ORDERED,
        examples=(example("M N", 30, 0),)),
)  # fmt: skip
