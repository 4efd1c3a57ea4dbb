"""torch's losses: of classes, of numbers, of distributions."""

from __future__ import annotations

import math
from typing import Any

from blockbuster.frontend.at_positions import expect_on_axis
from blockbuster.frontend.functions.creation import arange
from blockbuster.frontend.functions.normalizations import log_softmax
from blockbuster.frontend.functions.pointwise import abs, exp, log, log1p, maximum, square, where
from blockbuster.frontend.functions.reductions import mean, sum
from blockbuster.frontend.functions.row import Array, torch_rows
from blockbuster.frontend.source import trace_error

_IGNORED = -100


def reduced(loss: Array, reduction: str, weight: Array | None = None) -> Array:
    """The losses of all elements, times a weight if one is given, their mean or their sum."""
    if reduction not in ("none", "mean", "sum"):
        raise trace_error(f"a loss has no reduction {reduction!r}", hint='"none", "mean" or "sum"')
    loss = loss if weight is None else loss * weight
    return loss if reduction == "none" else mean(loss) if reduction == "mean" else sum(loss)


def _rank(x: Array) -> int:
    return len(x.shape)


def of_class(target: Array, values: Array, axis: int) -> Array:
    """The mask of the class that ``target`` names, along ``axis`` of ``values``."""
    after = _rank(values) - 1 - axis
    classes = arange(values.shape[axis])
    places = (slice(None),) * axis
    return target[(*places, None)] == classes[(slice(None), *(None,) * after)]


def nll_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int = _IGNORED,
    reduction: str = "mean",
) -> Array:
    """The negative logarithm that stands at the class ``target``; 0 where that is ignored."""
    return _labelled(input, target, weight, ignore_index, reduction, 0.0)


def cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int = _IGNORED,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """The cross entropy of the softmax of ``input``, for labels or for probabilities."""
    axis = 0 if _rank(input) == 1 else 1
    logs = log_softmax(input, axis)
    if _rank(target) < _rank(input):
        return _labelled(logs, target, weight, ignore_index, reduction, label_smoothing)
    if label_smoothing:
        target = target * (1.0 - label_smoothing) + label_smoothing / input.shape[axis]
    each = -sum(logs * _along(weight, target, axis), axis)
    if reduction == "mean":
        return sum(each) / math.prod(each.shape, start=1)
    return reduced(each, reduction)


def _along(weight: Array | None, values: Array, axis: int) -> Array:
    """``values`` times a weight for each class, which are along ``axis``."""
    if weight is None:
        return values
    return values * weight[(slice(None), *(None,) * (_rank(values) - 1 - axis))]


def _labelled(
    logs: Array,
    target: Array,
    weight: Array | None,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> Array:
    axis = 0 if _rank(logs) == 1 else 1
    expect_on_axis(logs, axis, target, "labels", from_end=False, ignored=ignore_index)
    chosen, weighted = of_class(target, logs, axis), _along(weight, logs, axis)
    counts = target != ignore_index
    each = where(counts, -sum(where(chosen, weighted, 0.0), axis), 0.0)
    if smoothing:
        spread = where(counts, -sum(weighted, axis), 0.0) / logs.shape[axis]
        each = (1.0 - smoothing) * each + smoothing * spread
    if reduction != "mean":
        return reduced(each, reduction)
    if weight is None:
        return sum(each) / sum(where(counts, 1.0, 0.0))
    of_label = sum(where(chosen, _along(weight, 0.0 * logs + 1.0, axis), 0.0), axis)
    return sum(each) / sum(where(counts, of_label, 0.0))


def mse_loss(
    input: Array, target: Array, *, reduction: str = "mean", weight: Array | None = None
) -> Array:
    """The squared difference."""
    return reduced(square(input - target), reduction, weight)


def l1_loss(
    input: Array, target: Array, *, reduction: str = "mean", weight: Array | None = None
) -> Array:
    """The absolute difference."""
    return reduced(abs(input - target), reduction, weight)


def huber_loss(
    input: Array,
    target: Array,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Array | None = None,
) -> Array:
    """Half the squared difference up to ``delta``, and a straight line from there on."""
    far = abs(input - target)
    loss = where(far < delta, 0.5 * far * far, delta * (far - 0.5 * delta))
    return reduced(loss, reduction, weight)


def smooth_l1_loss(
    input: Array, target: Array, *, reduction: str = "mean", beta: float = 1.0
) -> Array:
    """The Huber loss over ``beta``; the absolute difference where ``beta`` is 0."""
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    far = abs(input - target)
    return reduced(where(far < beta, 0.5 * far * far / beta, far - 0.5 * beta), reduction)


def kl_div(
    input: Array, target: Array, *, reduction: str = "mean", log_target: bool = False
) -> Array:
    """The Kullback-Leibler divergence of logarithms ``input`` from ``target``."""
    if log_target:
        loss = exp(target) * (target - input)
    else:
        own = where(target > 0, target * log(where(target > 0, target, 1.0)), 0.0)
        loss = own - target * input
    if reduction == "batchmean":
        return sum(loss) / input.shape[0]
    return reduced(loss, reduction)


def binary_cross_entropy(
    input: Array, target: Array, weight: Array | None = None, *, reduction: str = "mean"
) -> Array:
    """The cross entropy of probabilities of yes; logarithms are at least -100, as torch's."""
    yes, no = maximum(log(input), -100.0), maximum(log(1.0 - input), -100.0)
    return reduced(-(target * yes + (1.0 - target) * no), reduction, weight)


def binary_cross_entropy_with_logits(
    input: Array,
    target: Array,
    weight: Array | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Array | None = None,
) -> Array:
    """The same of the sigmoid of ``input``, without overflow."""
    soft = log1p(exp(-abs(input))) + maximum(-input, 0.0)
    more: Any = 1.0 if pos_weight is None else (pos_weight - 1.0) * target + 1.0
    loss = (1.0 - target) * input + (soft if pos_weight is None else more * soft)
    return reduced(loss, reduction, weight)


ROWS = torch_rows(
    "torch.nn.functional: losses", nll_loss, cross_entropy, mse_loss, l1_loss, huber_loss,
    smooth_l1_loss, kl_div, binary_cross_entropy, binary_cross_entropy_with_logits,
)  # fmt: skip
