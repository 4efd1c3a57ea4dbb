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
from blockbuster.frontend.functions.shapes import is_unit, ravel, reshape
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.sizes import fixed
from blockbuster.frontend.source import trace_error
from blockbuster.frontend.torch import is_tensor, on_host


def cov(
    x: Array, y: None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None
) -> Array:
    """The covariances of rows (of columns without ``rowvar``), over their count less ``ddof``."""
    apart = _centered(x, y, rowvar)
    count = apart.shape[-1] - (ddof if ddof is not None else int(not bias))
    return _squared(apart) / count


def torch_cov(input: Array, *, correction: int = 1) -> Array:
    """The covariances of rows, over their count less ``correction``."""
    return cov(input, ddof=correction)


def corrcoef(x: Array, y: None = None, rowvar: bool = True) -> Array:
    """The covariances of rows over the products of their standard deviations."""
    apart = _centered(x, y, rowvar)
    apart = apart / sqrt(sum(square(apart), -1, True))
    return clip(_squared(apart), -1.0, 1.0)


def _squared(rows: Array) -> Array:
    """The products of rows with each other; of one row, a number."""
    made = rows @ rows.swapaxes(0, -1)
    return made[0, 0] if len(made.shape) == 2 and is_unit(made, 0) else made


def _centered(x: Array, y: None, rowvar: bool) -> Array:
    """Rows less their means."""
    if y is not None:
        hint = "join both: np.cov(np.vstack([x, y]))"
        raise trace_error("covariances of x and y", hint=hint)
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
    """The element below which a share ``q`` of the others lies, or a point between two elements."""
    method = interpolation if method == "linear" else method
    return _at_shares(x, q, 1, axis, keepdims, method)


def percentile(
    x: Array, q: Any, axis: int | None = None, keepdims: bool = False, *, method: str = "linear"
) -> Array:
    """The quantile of the share ``q`` / 100."""
    return _at_shares(x, q, 100, axis, keepdims, method)


def _at_shares(
    x: Array, q: Any, whole: int, axis: int | None, keepdims: bool, method: str
) -> Array:
    """Quantiles for shares of ``whole``, whose axes come first in the result."""
    if method != "linear":
        raise trace_error("a quantile that is not linear between elements", hint='use "linear"')
    shares = _known(x, q)
    if not (shares.size and ((shares >= 0) & (shares <= whole)).all()):  # false for NaN
        hint = f"give numbers from 0 to {whole}"
        raise trace_error(f"a quantile at {shares} of {whole}", hint=hint)
    is_wide = type(q) not in (int, float) and (shares / whole).dtype == np.float64
    x = _in_float64(x) if is_wide else as_floats(x)
    keys = (None,) * len(x.shape) if axis is None and keepdims else ()
    if axis is None:
        x, axis, keepdims = ravel(x), 0, False
    axes = axes_of("quantile", axis, len(x.shape))
    if len(axes) != 1:
        hint = "merge them before: x.reshape(-1, n)"
        raise trace_error(f"a quantile along the axes {axes}", hint=hint)
    ordered, lost = sort(x, axes[0]), any(x != x, axes[0], keepdims)
    places = [float(share) / whole for share in shares.ravel()]
    made = [_between(ordered, lost, axes[0], place, keepdims) for place in places]
    made = [one[keys] if keys else one for one in made]
    if shares.ndim < 2:
        return stack(made) if shares.ndim else made[0]
    return reshape(stack(made), (*shares.shape, *made[0].shape))


def _known(x: Array, q: Any) -> Any:
    """The shares of a quantile as NumPy's array. Raises TraceError if a call decides them."""
    held = q.trace.captures.held(q) if isinstance(q, TracedArray) else q
    is_list = isinstance(q, list | tuple) and isinstance(x, TracedArray) and x.trace.of_tensors
    if held is None or is_list:
        hint = "give a number: 0.5, or an array that the function holds"
        raise trace_error("the share of a quantile is no number", hint=hint)
    return np.asarray(on_host(held) if is_tensor(held) else held)


def _between(ordered: Array, lost: Array, at: int, share: float, keepdims: bool) -> Array:
    """The element at a share of an axis; NaN where one was ``lost`` in the order."""
    place = share * (fixed(ordered.shape[at]) - 1)
    inside, below = (slice(None),) * at, math.floor(place)
    low = ordered[(*inside, slice(below, below + 1) if keepdims else below)]
    if place != below:
        high = ordered[(*inside, slice(below + 1, below + 2) if keepdims else below + 1)]
        part, apart = place - below, high - low  # beside infinities, libraries begin at the nearer
        low = low + apart * part if part < 0.5 else high - apart * (1 - part)
    return where(lost, np.nan, low)


_GROUP = "Along axes"
_ORDERED = "The elements are put in order first, as by ``sort``."

ROWS = (
    Row(cov, _GROUP, ("cov",), public=False, examples=(
        example("M N"), example("N"), example("M N", ddof=0))),
    Row(corrcoef, _GROUP, ("corrcoef",), torch=("corrcoef", "Tensor.corrcoef"), public=False,
        examples=(example("M N"),)),
    Row(quantile, _GROUP, ("quantile",), torch=("quantile", "Tensor.quantile"), public=False,
        examples=(example("M N", 0.3, 1), example("M N=5", 0.25, axis=-1, keepdims=True)),
        note=_ORDERED),
    Row(percentile, _GROUP, ("percentile",), public=False, note=_ORDERED,
        examples=(example("M N", 30, 0),)),
)  # fmt: skip
