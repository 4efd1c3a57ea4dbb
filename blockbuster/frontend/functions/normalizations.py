"""Normalizations: functions that scale elements by a statistic along an axis."""

from __future__ import annotations

from blockbuster.frontend.array import apply, as_floats
from blockbuster.frontend.functions.row import Array, Row, example
from blockbuster.frontend.numerics import NUMPY


def softmax(x: Array, axis: int = -1, safe: bool = False) -> Array:
    """exp(x) over its sum along an axis; zero along a row of only -inf.

    The meaning is always the stable one. ``safe`` chooses the lowering: False uses the paper's form
    without the row maximum (the safety pass adds it after fusion), True writes the maximum out.
    """
    return apply("softmax", x, axis=axis, safe=safe)


def log_softmax(x: Array, axis: int = -1) -> Array:
    """``x - logsumexp(x)`` along an axis, hence NaN along a row of only -inf or one with inf."""
    return apply("log_softmax", x, axis=axis)


def layer_norm(
    x: Array, gamma: Array | None = None, beta: Array | None = None, *, eps: float = 1e-5
) -> Array:
    """``(x - mean) / sqrt(variance + eps) * gamma + beta`` over the last axis."""
    return apply("layer_norm", as_floats(x), gamma, beta, eps=eps)


def rms_norm(x: Array, weight: Array | None = None, *, eps: float = 1e-6) -> Array:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axis."""
    return apply("rms_norm", as_floats(x), weight, eps=eps)


_GROUP = "Normalizations"
_ALONG = (example("M N"), example("B M N", axis=1))

ROWS = (
    Row(softmax, _GROUP, torch=("softmax", "nn.functional.softmax", "Tensor.softmax"),
        examples=(*_ALONG, example("M N", safe=True)),
        reference=lambda x, axis=-1, safe=False: NUMPY["softmax"](x, axis=axis, safe=safe)),
    Row(log_softmax, _GROUP,
        torch=("log_softmax", "nn.functional.log_softmax", "Tensor.log_softmax"), examples=_ALONG,
        reference=lambda x, axis=-1: NUMPY["log_softmax"](x, axis=axis)),
    Row(layer_norm, _GROUP, examples=(example("M N"), example("M N", "N", "N", eps=0.1)),
        reference=lambda x, gamma=None, beta=None, eps=1e-5:
        NUMPY["layer_norm"](x, gamma, beta, eps=eps)),
    Row(rms_norm, _GROUP, examples=(example("M N"), example("M N", "N")),
        reference=lambda x, weight=None, eps=1e-6: NUMPY["rms_norm"](x, weight, eps=eps)),
)  # fmt: skip
