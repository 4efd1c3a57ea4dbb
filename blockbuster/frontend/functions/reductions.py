"""Reductions: functions that fold elements along axes."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, along_axis, apply, as_floats, reduce_axes
from blockbuster.frontend.functions.filled import held_in
from blockbuster.frontend.functions.pointwise import (
    astype,
    holds,
    maximum,
    minimum,
    sqrt,
    square,
)
from blockbuster.frontend.functions.pointwise import where as either
from blockbuster.frontend.functions.row import Array, Row, example, named
from blockbuster.frontend.functions.shapes import expand_dims, is_unit
from blockbuster.frontend.kinds import FLOAT, POSITION, dtype_of_kind
from blockbuster.frontend.numerics import NUMPY
from blockbuster.frontend.protocols import Product
from blockbuster.frontend.shapes import axes_of
from blockbuster.frontend.source import trace_error

Axes = int | Sequence[int] | None


def sum(
    x: Array, axis: Axes = None, keepdims: bool = False,
    *, dtype: Any = None, initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """The sum over one axis, several, or all (None)."""
    x = _in(dtype, _chosen(where, x, 0))
    return _with(operator.add, _in(dtype, reduce_axes("sum", x, axis, keepdims)), initial)


def max(
    x: Array, axis: Axes = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Array:
    """The maximum over one axis, several, or all (None)."""
    return _extreme("max", maximum, x, axis, keepdims, initial, where)


def min(
    x: Array, axis: Axes = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Array:
    """The minimum over one axis, several, or all (None)."""
    return _extreme("min", minimum, x, axis, keepdims, initial, where)


def _extreme(
    name: str, join: Callable[[Array, Array], Array], x: Array, axis: Axes, keepdims: bool,
    initial: Any, where: Any,
) -> Array:  # fmt: skip
    initial = _held(x, initial)
    if not _has_elements(name, x, axis, initial is not None):
        made = sum(x, axis, keepdims)
        return (made if x.kind == FLOAT else astype(made, dtype_of_kind(x.kind))) + initial
    return _with(join, reduce_axes(name, _chosen(where, x, initial), axis, keepdims), initial)


def _chosen(mask: Array | None, x: Array, neutral: Any) -> Array:
    """The elements that a fold reads, and a number that changes nothing for the others."""
    return x if mask is None else either(mask, x, neutral)


def _in(dtype: Any, x: Array) -> Array:
    return x if dtype is None else astype(x, dtype)


def _with(join: Callable[[Array, Array], Array], made: Array, initial: Any) -> Array:
    """What was folded, with a number that folds begin with."""
    return made if initial is None else join(made, _held(made, initial))


def _held(x: Array, initial: Any) -> Any:
    """A number that a fold of ``x`` begins with, in the dtype of ``x``."""
    return held_in(x.kind, initial) if isinstance(x, TracedArray) else initial


def _has_elements(name: str, x: Array, axis: Axes, begins: bool) -> bool:
    """False for a maximum of no elements. Raises TraceError for one that ``begins`` with no number,
    which libraries refuse; they check arrays.
    """
    if not (isinstance(x, TracedArray) and x.ndim):
        return True
    dims, axes = x.trace.dims, axes_of(name, range(x.ndim) if axis is None else axis, x.ndim)
    has_some = dims.expect_elements([x.axes[at] for at in axes])
    if not (has_some or begins):
        hint = f"bb.{name} needs one: join one to the others, or reduce another axis"
        raise trace_error(f"{name} of {dims.show(x.axes)}: there are no elements", hint=hint)
    return has_some


def ptp(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The maximum less the minimum over one axis, several, or all (None)."""
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def mean(
    x: Array, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None, where: Any = None
) -> Array:
    """The mean over one axis, several, or all (None)."""
    x = _in(dtype, x)
    if where is None:
        return _in(dtype, reduce_axes("mean", x, axis, keepdims))
    return sum(x, axis, keepdims, where=where) / _total(where, x, axis, keepdims)


def var(x: Array, axis: Axes = None, keepdims: bool = False, *, ddof: Any = 0) -> Array:
    """The mean of the squared deviations from the mean; the divisor is the count less ``ddof``."""
    squares = square(x - mean(x, axis, True))
    if isinstance(ddof, int) and ddof == 0:
        return mean(squares, axis, keepdims)
    return sum(squares, axis, keepdims) / _divisor(x, axis, ddof)


def _divisor(x: Array, axis: Axes, ddof: Any) -> Any:
    """The number of elements less ``ddof``, and 0 if there are known to be fewer."""
    count = _count(x, axis)
    if not (isinstance(x, TracedArray) and isinstance(ddof, int)):
        return count - ddof if isinstance(x, TracedArray) else builtins.max(count - ddof, 0)
    axes = axes_of("var", range(x.ndim) if axis is None else axis, x.ndim)
    few = x.trace.dims.have([x.axes[at] for at in axes], ddof) is False
    return 0.0 if few else count - ddof


def std(x: Array, axis: Axes = None, keepdims: bool = False, *, ddof: Any = 0) -> Array:
    """The square root of the variance."""
    return sqrt(var(x, axis, keepdims, ddof=ddof))


def average(
    x: Array, axis: Axes = None, weights: Array | None = None, keepdims: bool = False
) -> Array:
    """The mean, or the sum of ``x * weights`` over the sum of the weights, which broadcast."""
    if weights is None:
        return mean(x, axis, keepdims)
    x = as_floats(x)
    if len(weights.shape) == 1 and isinstance(axis, int):
        after = len(x.shape) - 1 - axis % len(x.shape)
        weights = weights[(slice(None), *(None,) * after)]
    return sum(x * weights, axis, keepdims) / _total(weights, x, axis, keepdims)


def _total(weights: Array, x: Array, axis: Axes, keepdims: bool) -> Array:
    """The sum along axes of weights that broadcast to ``x``, without reading ``x``."""
    rank = len(x.shape)
    axes = axes_of("average", range(rank) if axis is None else axis, rank)
    weights = x.trace.array(weights) if isinstance(x, TracedArray) else weights
    weights = weights[(*(None,) * (rank - len(weights.shape)), ...)]
    repeated = [x.shape[at] for at in axes if is_unit(weights, at)]
    return sum(weights, axis, keepdims) * math.prod(repeated, start=1)


def any(x: Array, axis: Axes = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """True if some element of a mask is true, or some number is not 0."""
    truth = _chosen(where, either(holds(x), 1.0, 0.0), 0.0)
    return reduce_axes("max", truth, axis, keepdims) > 0


def all(x: Array, axis: Axes = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """True if every element of a mask is true, or no number is 0."""
    truth = _chosen(where, either(holds(x), 1.0, 0.0), 1.0)
    return reduce_axes("min", truth, axis, keepdims) > 0


def count_nonzero(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """How many elements of a mask are true, or how many numbers are not 0."""
    return sum(either(holds(x), 1, 0), axis, keepdims)


def _count(x: Array, axis: Axes) -> Any:
    """The number of elements along axes: a number, or sizes of dims."""
    axes = range(len(x.shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return math.prod((x.shape[a] for a in axes), start=1)


def prod(
    x: Array, axis: Axes = None, keepdims: bool = False,
    *, dtype: Any = None, initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """The product over one axis, several, or all (None); of integers by a library's function."""
    made = _in(dtype, _product(_in(dtype, _chosen(where, x, 1)), axis, keepdims))
    return _with(operator.mul, made, initial)


def _product(x: Array, axis: Axes, keepdims: bool) -> Array:
    if isinstance(x, TracedArray) and x.kind == FLOAT:
        return reduce_axes("prod", x, axis, keepdims)
    axes = axes_of("prod", range(len(x.shape)) if axis is None else axis, len(x.shape))
    if not axes:
        return sum(x, (), keepdims)
    product = Product(axes)
    if isinstance(x, TracedArray):
        x = x.trace.integers(x, POSITION)
        shape = tuple(axis for place, axis in enumerate(x.axes) if place not in axes)
        made = x.trace.custom(product, (x,), shape, str(product), x.kind)
    else:
        made = product(x)
    return expand_dims(made, axes) if keepdims else made


def logsumexp(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    """The logarithm of the sum of exp(x) along an axis; -inf for a row of only -inf."""
    return apply("logsumexp", x, axis=axis, keepdims=keepdims)


def _scan(name: str, what: str) -> Callable[..., Array]:
    """The function that folds the elements up to each one along an axis."""

    def scan(x: Array, axis: int | None = None, *, dtype: Any = None) -> Array:
        return _in(dtype, along_axis(name, _in(dtype, x), axis))

    return named(scan, name, f"{what} along an axis; None is for arrays of one axis.")


cumsum = _scan("cumsum", "The cumulative sums")
cumprod = _scan("cumprod", "The cumulative products")
cummax = _scan("cummax", "The largest element up to each")
cummin = _scan("cummin", "The smallest element up to each")


_GROUP = "Along axes"
_AXES = (
    example("M N"), example("M N", axis=-1), example("B M N", axis=(0, 2), keepdims=True),
)  # fmt: skip
_ALONG = (example("M N", axis=0), example("M N", axis=-1), example("int: M N", axis=-1))
_VALUES = "The values alone; torch's gives their positions, too."
_WHOLE = (*_AXES, example("int: M N", axis=0))
_MASKS = (example("bool: M N", axis=0), example("bool: M N", axis=(0, 1), keepdims=True))
_SPREAD = (*_AXES, example("M N", axis=0, ddof=1), example("B M N", axis=(0, 1), ddof=1))
_UNBIASED = "torch's takes 1 off the count unless ``correction`` says otherwise; this one does not."

ROWS = (
    Row(sum, _GROUP, ("sum",), ("sum",), ("sum", "Tensor.sum"), _WHOLE),
    Row(max, _GROUP, ("max", "amax"), ("max",), ("amax", "Tensor.amax"), _WHOLE),
    Row(min, _GROUP, ("min", "amin"), ("min",), ("amin", "Tensor.amin"), _WHOLE),
    Row(ptp, _GROUP, ("ptp",), examples=_WHOLE),
    Row(mean, _GROUP, ("mean",), ("mean",), ("mean", "Tensor.mean"), _AXES),
    Row(var, _GROUP, ("var",), ("var",), (), _SPREAD, note=_UNBIASED),
    Row(std, _GROUP, ("std",), ("std",), (), _SPREAD, note=_UNBIASED),
    Row(average, _GROUP, ("average",), examples=(
        example("M N"), example("M N", 0, "positive: M N"),
        example("M N", -1, "positive: N"))),
    Row(any, _GROUP, ("any",), ("any",), ("any", "Tensor.any"), (*_WHOLE, *_MASKS)),
    Row(all, _GROUP, ("all",), ("all",), ("all", "Tensor.all"), (*_WHOLE, *_MASKS)),
    Row(count_nonzero, _GROUP, ("count_nonzero",), (), ("count_nonzero", "Tensor.count_nonzero"),
        (*_WHOLE, *_MASKS)),
    Row(prod, _GROUP, ("prod",), ("prod",), ("prod", "Tensor.prod"), _WHOLE,
        note="Of integers, a library's function runs between kernels."),
    Row(logsumexp, _GROUP, torch=("logsumexp", "Tensor.logsumexp"),
        examples=(example("M N"), example("M N", axis=0, keepdims=True)),
        reference=lambda x, axis=-1, keepdims=False:
        NUMPY["logsumexp"](x, axis=axis, keepdims=keepdims)),
    Row(cumsum, _GROUP, ("cumsum",), ("cumsum",), ("cumsum", "Tensor.cumsum"), _ALONG),
    Row(cumprod, _GROUP, ("cumprod",), ("cumprod",), ("cumprod", "Tensor.cumprod"), _ALONG),
    Row(cummax, _GROUP, examples=_ALONG, note=_VALUES,
        reference=lambda x, axis: np.maximum.accumulate(x, axis)),
    Row(cummin, _GROUP, examples=_ALONG, note=_VALUES,
        reference=lambda x, axis: np.minimum.accumulate(x, axis)),
)  # fmt: skip
