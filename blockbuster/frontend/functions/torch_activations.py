"""Pointwise functions that torch has and NumPy lacks."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.by_hand import LINEAR, tanh_of_softplus
from blockbuster.frontend.dtype_names import dtype_name
from blockbuster.frontend.functions.joins import chunk
from blockbuster.frontend.functions.normalizations import log_softmax, softmax
from blockbuster.frontend.functions.pointwise import (
    abs,
    clip,
    exp,
    expm1,
    gelu,
    log1p,
    maximum,
    minimum,
    sigmoid,
    tanh,
    where,
)
from blockbuster.frontend.functions.row import Array, named, torch_row, torch_rows
from blockbuster.frontend.functions.shapes import is_unit
from blockbuster.frontend.functions.torch_dtypes import to
from blockbuster.frontend.source import trace_error

_NARROW = ("float16", "bfloat16", "float32")
_CUBED = 0.044715  # of Hendrycks and Gimpel's approximation


def torch_gelu(input: Array, approximate: str = "none") -> Array:
    """``x`` times the normal distribution function at ``x``, or its approximation by tanh."""
    if approximate == "none":
        return gelu(input)
    if approximate != "tanh":
        raise trace_error(f"gelu has no approximation {approximate!r}", hint='"none" or "tanh"')
    inner = math.sqrt(2 / math.pi) * (input + _CUBED * input * input * input)
    return input * sigmoid(2.0 * inner)  # (1 + tanh(y)) / 2 is sigmoid(2 y)


def softplus(input: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + exp(beta x)) / beta, and x itself where beta x is above ``threshold``.

    From ``LINEAR`` on, what is added to x is less than half of the last place of float32.
    """
    x = input if beta == 1 else input * beta
    soft = maximum(x, 0.0) + log1p(exp(-abs(x)))
    is_narrow = isinstance(input, TracedArray) and dtype_name(input) in _NARROW
    if is_narrow and beta == 1 and threshold >= LINEAR:
        return soft
    return where(x > _in_float32(input, threshold), input, soft if beta == 1 else soft / beta)


def log_sigmoid(input: Array) -> Array:
    """The logarithm of the sigmoid, without overflow."""
    return minimum(input, 0.0) - log1p(exp(-abs(input)))


def leaky_relu(input: Array, negative_slope: float = 0.01) -> Array:
    """``x`` above 0, and ``x`` times a slope below."""
    return where(input > 0, input, input * negative_slope)


def elu(input: Array, alpha: float = 1.0) -> Array:
    """``x`` above 0, and alpha (exp(x) - 1) below."""
    return where(input > 0, input, alpha * expm1(minimum(input, 0.0)))


def celu(input: Array, alpha: float = 1.0) -> Array:
    """``x`` above 0, and alpha (exp(x / alpha) - 1) below."""
    return where(input > 0, input, alpha * expm1(minimum(input, 0.0) / alpha))


def selu(input: Array) -> Array:
    """The scaled elu that keeps mean 0 and variance 1 (Klambauer and others, 2017)."""
    return 1.0507009873554805 * elu(input, 1.6732632423543772)


def hardtanh(input: Array, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """``x`` between two bounds."""
    return clip(input, min_val, max_val)


def relu6(input: Array) -> Array:
    """``x`` between 0 and 6."""
    return clip(input, 0.0, 6.0)


def hardsigmoid(input: Array) -> Array:
    """x / 6 + 1 / 2 between 0 and 1."""
    return clip(input + 3.0, 0.0, 6.0) / 6.0


def hardswish(input: Array) -> Array:
    """``x`` times its hardsigmoid."""
    return input * clip(input + 3.0, 0.0, 6.0) / 6.0


def mish(input: Array) -> Array:
    """``x`` times the tanh of its softplus."""
    return input * tanh_of_softplus(input)


def softsign(input: Array) -> Array:
    """x / (1 + abs(x))."""
    return input / (1.0 + abs(input))


def tanhshrink(input: Array) -> Array:
    """x - tanh(x)."""
    return input - tanh(input)


def hardshrink(input: Array, lambd: float = 0.5) -> Array:
    """``x``, and 0 where it is between -lambd and lambd."""
    return where((input >= -lambd) & (input <= lambd), 0.0, input)


def softshrink(input: Array, lambd: float = 0.5) -> Array:
    """``x`` moved towards 0 by ``lambd``, and 0 where it is nearer."""
    if lambd < 0:
        raise trace_error(f"softshrink by {lambd}", hint="lambd is 0 or more")
    moved = where(input > _in_float32(input, lambd), input - lambd, input * 0.0)
    return where(input < _in_float32(input, -lambd), input + lambd, moved)


def threshold(input: Array, threshold: float, value: float) -> Array:
    """``x`` above a threshold, and a value elsewhere."""
    return where(input <= _in_float32(input, threshold), value, input)


def _in_float32(x: Array, number: float) -> Any:
    """A number that torch compares with 16-bit elements as it is, in a function of its own."""
    is_narrow = isinstance(x, TracedArray) and dtype_name(x) in _NARROW
    return np.float32(number) if is_narrow else number


def prelu(input: Array, weight: Array) -> Array:
    """``x`` above 0, and ``x`` times a slope below: one slope, or one for each channel, axis 1."""
    many, rank = not is_unit(weight, 0) if len(weight.shape) else False, len(input.shape)
    if len(weight.shape) > 1 or (many and rank < 2):
        reason = f"prelu of {rank} axes with a weight of {len(weight.shape)}"
        raise trace_error(reason, hint="a weight has one element, or one for each channel")
    slope = weight[(slice(None), *(None,) * (rank - 2))] if many else weight
    return where(input > 0, input, slope * input)


def rrelu(
    input: Array, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Array:
    """``x`` above 0, and ``x`` times the mean of two slopes below."""
    if training:
        raise trace_error("rrelu with training=True draws random numbers", hint=_INFERENCE)
    return leaky_relu(input, (lower + upper) / 2)


_INFERENCE = "Blockbuster compiles inference: pass training=False (model.eval()) or p=0"


def expect_no_dropout(p: float, training: bool) -> None:
    """Raise TraceError if elements would be dropped at random."""
    if training and p > 0:
        reason = f"dropout of p = {p} with training=True cannot be traced: it draws random numbers"
        raise trace_error(reason, hint=_INFERENCE)


def dropout(input: Array, p: float = 0.5, training: bool = True) -> Array:
    """``x``: Blockbuster compiles inference, where dropout leaves everything as it is."""
    expect_no_dropout(p, training)
    return input


def alpha_dropout(input: Array, p: float = 0.5, training: bool = False) -> Array:
    """``x``, as ``dropout``; torch's default is inference here."""
    return dropout(input, p, training)


def _functional(
    function: Callable[[Array, int, Any], Array], name: str, meaning: str
) -> Callable[..., Array]:
    """``function`` as F has it; ``_stacklevel`` is for a warning of torch's."""

    def along(
        input: Array, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
    ) -> Array:
        return function(input, _usual_axis(input, dim), dtype)

    return named(along, name, meaning)


def _usual_axis(x: Array, dim: int | None) -> int:
    """The axis that torch takes if none is named."""
    return dim if dim is not None else 0 if len(x.shape) in (0, 1, 3) else 1


def torch_softmax(input: Array, dim: int, dtype: Any = None) -> Array:
    """exp(x) over its sum along an axis, in another dtype if one is given."""
    return softmax(input if dtype is None else to(input, dtype), dim)


def torch_log_softmax(input: Array, dim: int, dtype: Any = None) -> Array:
    """x - logsumexp(x) along an axis, in another dtype if one is given."""
    return log_softmax(input if dtype is None else to(input, dtype), dim)


functional_softmax = _functional(
    torch_softmax, "functional_softmax", "exp(x) over its sum along an axis."
)
functional_log_softmax = _functional(
    torch_log_softmax, "functional_log_softmax", "x - logsumexp(x) along an axis."
)
softmin = _functional(
    lambda x, dim, dtype: torch_softmax(-x, dim, dtype), "softmin", "The softmax of -x."
)


def glu(input: Array, dim: int = -1) -> Array:
    """The first half along an axis, times the sigmoid of the second."""
    first, second = chunk(input, 2, dim)
    return first * sigmoid(second)


_GROUP = "torch.nn.functional: activations"
_of = functools.partial(torch_row, group=_GROUP)

ROWS = (
    *torch_rows(
        _GROUP, softplus, leaky_relu, elu, celu, selu, hardtanh, relu6, hardsigmoid, hardswish,
        mish, softsign, tanhshrink, glu, softmin,
    ),
    *torch_rows(
        _GROUP, softshrink, threshold, rrelu, alpha_dropout, modules=("nn.functional.", ""),
    ),
    *torch_rows(_GROUP, hardshrink, prelu, modules=("nn.functional.", "", "Tensor.")),
    _of(torch_gelu, "nn.functional.gelu"),
    _of(log_sigmoid, "nn.functional.logsigmoid", "log_sigmoid"),
    _of(dropout, "nn.functional.dropout", "dropout", *(
        f"nn.functional.dropout{space}d" for space in (1, 2, 3))),
    _of(alpha_dropout, "nn.functional.feature_alpha_dropout", "feature_alpha_dropout"),
    _of(functional_softmax, "nn.functional.softmax"),
    _of(functional_log_softmax, "nn.functional.log_softmax"),
    _of(torch_softmax, "softmax", "Tensor.softmax"),
    _of(torch_log_softmax, "log_softmax", "Tensor.log_softmax"),
)  # fmt: skip
