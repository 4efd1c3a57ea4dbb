"""Pointwise functions that torch has and NumPy lacks."""

from __future__ import annotations

import math

from blockbuster.frontend.functions.pointwise import (
    abs,
    clip,
    exp,
    expm1,
    gelu,
    log1p,
    maximum,
    minimum,
    tanh,
    where,
)
from blockbuster.frontend.functions.row import Array, Row
from blockbuster.frontend.source import trace_error

_CUBED = 0.044715  # of Hendrycks and Gimpel's approximation


def torch_gelu(input: Array, approximate: str = "none") -> Array:
    """``x`` times the normal distribution function at ``x``, or its approximation by tanh."""
    if approximate == "none":
        return gelu(input)
    if approximate != "tanh":
        raise trace_error(f"gelu has no approximation {approximate!r}", hint='"none" or "tanh"')
    inner = math.sqrt(2 / math.pi) * (input + _CUBED * input * input * input)
    return 0.5 * input * (1.0 + tanh(inner))


def softplus(input: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + exp(beta x)) / beta, and x itself where beta x is above ``threshold``."""
    x = input if beta == 1 else input * beta
    soft = maximum(x, 0.0) + log1p(exp(-abs(x)))
    return where(x > threshold, input, soft if beta == 1 else soft / beta)


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
    """``x`` times the tanh of its softplus, by one exponential t of -abs(x), which loses no digits:

    the tanh of log(1 + exp(x)) is a / (a + 2 b), with 1 + 2t and t^2 for a and b where x is
    positive, and t (t + 2) and 1 where it is negative.
    """
    t = exp(-abs(input))
    positive = input > 0
    a = where(positive, 1.0 + 2.0 * t, t * (t + 2.0))
    return input * (a / (a + where(positive, 2.0 * t * t, 2.0)))


def softsign(input: Array) -> Array:
    """x / (1 + abs(x))."""
    return input / (1.0 + abs(input))


def tanhshrink(input: Array) -> Array:
    """x - tanh(x)."""
    return input - tanh(input)


def dropout(input: Array, p: float = 0.5, training: bool = True) -> Array:
    """``x``: Blockbuster compiles inference, where dropout leaves everything as it is."""
    if training and p > 0:
        raise trace_error(
            f"dropout of p = {p} with training=True cannot be traced: it draws random numbers",
            hint="Blockbuster compiles inference: pass training=False (model.eval()) or p=0",
        )
    return input


_GROUP = "torch.nn.functional: activations"


def _of(function: object, *names: str) -> Row:
    return Row(function, _GROUP, torch=names, public=False)  # type: ignore[arg-type]


ROWS = (
    _of(torch_gelu, "nn.functional.gelu"),
    _of(softplus, "nn.functional.softplus"),
    _of(log_sigmoid, "nn.functional.logsigmoid", "log_sigmoid"),
    _of(leaky_relu, "nn.functional.leaky_relu"),
    _of(elu, "nn.functional.elu"),
    _of(celu, "nn.functional.celu"),
    _of(selu, "nn.functional.selu"),
    _of(hardtanh, "nn.functional.hardtanh"),
    _of(relu6, "nn.functional.relu6"),
    _of(hardsigmoid, "nn.functional.hardsigmoid"),
    _of(hardswish, "nn.functional.hardswish"),
    _of(mish, "nn.functional.mish"),
    _of(softsign, "nn.functional.softsign"),
    _of(tanhshrink, "nn.functional.tanhshrink"),
    _of(dropout, "nn.functional.dropout", "dropout"),
)
