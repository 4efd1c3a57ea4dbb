"""The array functions of the public API.

On traced arrays they record an operation; on NumPy arrays and numbers they compute at once, in the
arrays' own dtype, with the meaning that ``numerics.NUMPY`` gives to the oracle. On torch tensors
they are torch's own, on the tensors' device (``torch.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply, float_dtype, reduce_axes
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.torch import custom_on_tensors, is_tensor

Array = Any
"""A traced array, a NumPy array, a torch tensor, or a number."""


def matmul(a: Array, b: Array) -> Array:
    """``a @ b``: the product over the last axis of ``a`` and the last but one of ``b``.

    Leading axes broadcast, and a vector counts as a row on the left and a column on the right.
    """
    return apply("matmul", a, b)


def transpose(x: Array, axes: Sequence[int] | None = None) -> Array:
    """The axes of ``x`` in another order; reversed if none is given."""
    return x.transpose(axes) if isinstance(x, TracedArray) else apply("transpose", x, axes=axes)


def concat(arrays: Sequence[Array], axis: int = -1) -> Array:
    """Arrays one behind the other along an axis; their other axes are the same.

    Free where it is returned, where a pointwise function or a product reads it next to others that
    are joined alike, and in a sum over the axis; elsewhere a copy, which ``program.notes`` names.
    """
    return apply("concat", *arrays, axis=axis)


def reshape(x: Array, *shape: Any) -> Array:
    """The elements of ``x`` in order under other axes: ints, sizes, their products, one -1."""
    entries = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    return x.reshape(*entries) if isinstance(x, TracedArray) else apply("reshape", x, shape=entries)


def split_heads(x: Array, h: int) -> Array:
    """(..., S, H*E) as (..., H, S, E) with H = ``h``: a view of an input or of a product."""
    return apply("split_heads", x, heads=h)


def merge_heads(x: Array) -> Array:
    """(..., H, S, E) as (..., S, H*E), the inverse of ``split_heads``."""
    return apply("merge_heads", x)


def where(condition: Array, x: Array, y: Array) -> Array:
    """``x`` where the mask holds and ``y`` elsewhere."""
    return apply("where", condition, x, y)


def exp(x: Array) -> Array:
    """e to the power of ``x``."""
    return apply("exp", x)


def log(x: Array) -> Array:
    """The natural logarithm."""
    return apply("log", x)


def sqrt(x: Array) -> Array:
    """The square root."""
    return apply("sqrt", x)


def rsqrt(x: Array) -> Array:
    """One over the square root."""
    return apply("rsqrt", x)


def tanh(x: Array) -> Array:
    """The hyperbolic tangent."""
    return apply("tanh", x)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    return apply("sigmoid", x)


def silu(x: Array) -> Array:
    """``x * sigmoid(x)``, also called swish."""
    return apply("silu", x)


def gelu(x: Array) -> Array:
    """``x`` times the normal distribution function at ``x``: the exact form, with erf."""
    return apply("gelu", x)


def relu(x: Array) -> Array:
    """The larger of ``x`` and 0."""
    return apply("relu", x)


def erf(x: Array) -> Array:
    """The error function."""
    return apply("erf", x)


def abs(x: Array) -> Array:
    """The absolute value."""
    return apply("abs", x)


def square(x: Array) -> Array:
    """``x * x``."""
    return apply("square", x)


def reciprocal(x: Array) -> Array:
    """``1 / x``."""
    return apply("reciprocal", x)


def maximum(x: Array, y: Array) -> Array:
    """The larger element of two arrays."""
    return apply("maximum", x, y)


def minimum(x: Array, y: Array) -> Array:
    """The smaller element of two arrays."""
    return apply("minimum", x, y)


def sum(x: Array, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """The sum over one axis, several, or all (None)."""
    return reduce_axes("sum", x, axis, keepdims)


def max(x: Array, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """The maximum over one axis, several, or all (None)."""
    return reduce_axes("max", x, axis, keepdims)


def min(x: Array, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """The minimum over one axis, several, or all (None)."""
    return reduce_axes("min", x, axis, keepdims)


def mean(x: Array, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Array:
    """The mean over one axis, several, or all (None)."""
    return reduce_axes("mean", x, axis, keepdims)


def softmax(x: Array, axis: int = -1, safe: bool = False) -> Array:
    """exp(x) over its sum along an axis; zero along a row of only -inf.

    The meaning is always the stable one. ``safe`` chooses the lowering: False writes the paper's
    form without the row maximum (the safety pass adds it after fusion), True writes it out.
    """
    return apply("softmax", x, axis=axis, safe=safe)


def log_softmax(x: Array, axis: int = -1) -> Array:
    """``x - logsumexp(x)`` along an axis, hence NaN along a row of only -inf."""
    return apply("log_softmax", x, axis=axis)


def logsumexp(x: Array, axis: int = -1, keepdims: bool = False) -> Array:
    """The logarithm of the sum of exp(x) along an axis; -inf for a row of only -inf."""
    return apply("logsumexp", x, axis=axis, keepdims=keepdims)


def layer_norm(
    x: Array, gamma: Array | None = None, beta: Array | None = None, *, eps: float = 1e-5
) -> Array:
    """``(x - mean) / sqrt(variance + eps) * gamma + beta`` over the last axis."""
    return apply("layer_norm", x, gamma, beta, eps=eps)


def rms_norm(x: Array, weight: Array | None = None, *, eps: float = 1e-6) -> Array:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axis."""
    return apply("rms_norm", x, weight, eps=eps)


def arange(n: Any) -> Array:
    """The index vector 0, 1, ..., n - 1 along a dim; ``n`` is an entry of a traced shape.

    A NumPy array for a number, beside tensors too: ``where`` takes masks that are made of it.
    """
    if isinstance(n, SizeExpr):
        return n.trace.record("arange", (), {"size": n.expr})
    return np.arange(n)


def astype(x: Array, dtype: Any) -> Array:
    """Every element rounded to float16, bfloat16, float32 or float64."""
    return apply("cast", x, dtype=float_dtype(dtype))


def custom(fn: Callable[..., Any], *arrays: Array, shape: Sequence[Any]) -> Array:
    """``fn`` of whole arrays: no rule looks inside, and a kernel boundary runs around it.

    ``shape`` is that of the result: entries of the shapes of traced arrays, or 1. When the program
    runs, ``fn`` receives NumPy arrays and returns one of that shape.
    """
    for array in arrays:
        if isinstance(array, TracedArray):
            name = str(getattr(fn, "__name__", type(fn).__name__))
            return array.trace.custom(fn, arrays, array.trace.shape(shape), name)
    if any(map(is_tensor, arrays)):
        return custom_on_tensors(fn, arrays)
    return np.asarray(fn(*arrays))
