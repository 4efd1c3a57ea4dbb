"""The meaning of every array operation as a NumPy function: one table for oracle and eager use.

The functions keep the dtype of their arrays. Softmax has one meaning, the stable one: zero on a row
of only -inf, and NaN throughout a row with NaN or +inf, as of exp(inf - inf).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from blockbuster.ir.expr import Arg, Call, Const, Expr, Size

Array = Any
"""A NumPy array or scalar: the functions below work for any floating dtype."""

_quiet = np.errstate(all="ignore")
_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    """The error function."""
    array = np.asarray(x)
    dtype = array.dtype if array.dtype.kind == "f" else np.dtype(np.float64)
    return np.asarray(_erf(array), dtype=dtype)[()]


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x - 0.0))  # integers become floats: bytes would wrap
    return np.where(np.less(x, 0), small, 1) / (1 + small)


def gelu(x: Array) -> Array:
    """x times the normal distribution function at x (the exact form, not the tanh one)."""
    return x * (1 + erf(x * math.sqrt(0.5))) * 0.5


@_quiet
def sub0(x: Array, z: Array) -> Array:
    """x - z, and x where it is infinite, whatever z is."""
    return np.where(np.isinf(x), x, np.subtract(x, z))


@_quiet
def recip0(x: Array) -> Array:
    """1 / x, 0 where x is 0, and NaN where it is infinite."""
    made = np.where(np.equal(x, 0), np.zeros_like(x), np.reciprocal(x))
    return np.where(np.isinf(x), np.full_like(x, math.nan), made)


@_quiet
def softmax(x: Array, *, axis: int, safe: bool = False) -> Array:  # noqa: ARG001
    """exp(x) over its sum along an axis; ``safe`` only chooses how it is lowered."""
    x = x - 0.0  # integers become floats: bytes would wrap
    e = np.exp(sub0(x, np.max(x, axis=axis, keepdims=True)))
    return e * recip0(np.sum(e, axis=axis, keepdims=True))


@_quiet
def logsumexp(x: Array, *, axis: int, keepdims: bool = False) -> Array:
    """log of the sum of exp(x) along an axis; -inf for a row of only -inf."""
    x = x - 0.0
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, np.zeros_like(top))
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis)


@_quiet
def log_softmax(x: Array, *, axis: int) -> Array:
    """x minus its logsumexp, hence NaN on a row of only -inf, and on one with +inf.

    The maximum is subtracted first: x - top is exact near it, and the logarithm is small.
    """
    x = x - np.max(x - 0.0, axis=axis, keepdims=True)
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


def rms_norm(x: Array, weight: Array | None, *, eps: float) -> Array:
    """x over the root of its mean square along the last axis, times ``weight``."""
    y = x / np.sqrt(np.mean(np.square(x - 0.0), axis=-1, keepdims=True) + eps)
    return y if weight is None else y * weight


def layer_norm(x: Array, gamma: Array | None, beta: Array | None, *, eps: float) -> Array:
    """x centered and scaled to variance one along the last axis, times ``gamma`` plus ``beta``."""
    centered = x - np.mean(x, axis=-1, keepdims=True)
    y = centered / np.sqrt(np.mean(np.square(centered), axis=-1, keepdims=True) + eps)
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def cast(x: Array, *, dtype: str) -> Array:
    """x rounded to ``dtype``; NumPy has no bfloat16, so its values come back as float32."""
    if dtype != "bfloat16":
        return np.asarray(x).astype(dtype)
    single = np.asarray(x, dtype=np.float32)
    bits = single.view(np.uint32)
    even = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(
        0xFFFF0000
    )
    return np.where(np.isnan(single), single, even.view(np.float32))


def nearest(number: float, dtype: str) -> float:
    """A number rounded to a dtype of floats; one that is too large for it stays as it is."""
    with np.errstate(over="ignore"):
        found = float(cast(number, dtype=dtype))
    return found if math.isfinite(found) else number


def expand(x: Array, *, axes: tuple[int | None, ...]) -> Array:
    """x with an axis of extent 1 wherever ``axes`` has None; its other entries count up.

    Axes of x that are not among them have extent 1 and go.
    """
    kept = np.squeeze(x, tuple(axis for axis in range(np.ndim(x)) if axis not in axes))
    return np.expand_dims(kept, tuple(i for i, axis in enumerate(axes) if axis is None))


def _slice(x: Array, *, axis: int, start: int, length: int) -> Array:
    """``length`` elements of an axis from ``start`` on."""
    return np.asarray(x)[(slice(None),) * axis + (slice(start, start + length),)]


def _strided(x: Array, *, axis: int, start: int, length: int, step: int) -> Array:
    """``length`` elements of an axis from ``start`` on, each ``step`` behind the last one."""
    stop = start + length * step  # in front of which there are as many, if any
    return np.asarray(x)[(slice(None),) * axis + (slice(start, stop, step),)]


def windows(
    x: Array, *, axis: int, count: int, length: int, step: int, dilation: int, before: int,
    padded: bool = True,  # noqa: ARG001
) -> Array:  # fmt: skip
    """``count`` windows of an axis where it stood, their ``length`` elements along a last axis.

    Element r of window h is the one at h * step + r * dilation - before, or 0 outside of the axis.
    """
    x = np.asarray(x)
    places = np.arange(count)[:, None] * step + np.arange(length) * dilation - before
    inside = (places >= 0) & (places < x.shape[axis])
    rows = np.moveaxis(x, axis, -1)
    found = np.zeros((*rows.shape[:-1], count, length), x.dtype)
    found[..., inside] = rows[..., places[inside]]
    return np.moveaxis(found, -2, axis)


def reshape(x: Array, *, shape: tuple[int, ...]) -> Array:
    """The elements of x in order under other axes."""
    return np.reshape(x, shape)


def concat(*arrays: Array, axis: int) -> Array:
    """Arrays one behind the other along an axis."""
    return np.concatenate(arrays, axis)


def cumsum(x: Array, *, axis: int) -> Array:
    """The sums along an axis up to each element."""
    return np.add.accumulate(x, axis)


def cumprod(x: Array, *, axis: int) -> Array:
    """The products along an axis up to each element."""
    return np.multiply.accumulate(x, axis)


def cummax(x: Array, *, axis: int) -> Array:
    """The maxima along an axis up to each element."""
    return np.maximum.accumulate(x, axis)


def cummin(x: Array, *, axis: int) -> Array:
    """The minima along an axis up to each element."""
    return np.minimum.accumulate(x, axis)


def custom(*arrays: Array, fn: Callable[..., Any], name: str = "") -> Array:  # noqa: ARG001
    """Any function of whole arrays."""
    return np.asarray(fn(*arrays))


def _arange(*, size: int) -> Array:
    return np.arange(size)


NUMPY: Mapping[str, Callable[..., Any]] = {
    # scalar functions, under the names of ir.expr.FUNCTIONS
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
    "pow": np.power, "neg": np.negative,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh, "sigmoid": sigmoid, "silu": lambda x: x * sigmoid(x), "gelu": gelu,
    "relu": lambda x: np.maximum(x, 0), "erf": erf, "abs": np.abs, "square": np.square,
    "reciprocal": lambda x: 1 / np.asarray(x), "maximum": np.maximum, "minimum": np.minimum,
    "sub0": sub0, "recip0": recip0,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not, "where": np.where,
    "floordiv": np.floor_divide, "mod": np.mod, "whole": lambda x: np.asarray(x, np.int64),
    "bitand": np.bitwise_and, "shl": np.left_shift, "shr": np.right_shift,
    "floor": np.floor, "round": np.round, "sin": np.sin, "cos": np.cos, "log1p": np.log1p,
    "expm1": np.expm1, "atan": np.arctan,
    # array functions
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean,
    "cumsum": cumsum, "cumprod": cumprod, "cummax": cummax, "cummin": cummin,
    "matmul": np.matmul, "transpose": np.transpose, "expand": expand, "cast": cast,
    "softmax": softmax, "log_softmax": log_softmax, "logsumexp": logsumexp,
    "rms_norm": rms_norm, "layer_norm": layer_norm, "arange": _arange, "custom": custom,
    "slice": _slice, "strided": _strided, "windows": windows,
    "concat": concat, "reshape": reshape,
}  # fmt: skip


def number(expr: Expr, sizes: Mapping[str, int]) -> float:
    """The value of a scalar expression without arguments."""
    match expr:
        case Const(value):
            return value
        case Size(dim):
            return float(sizes[dim])
        case Call(fn, args):
            return float(NUMPY[fn](*(number(a, sizes) for a in args)))
        case Arg():
            raise AssertionError("a scalar has no arguments")
