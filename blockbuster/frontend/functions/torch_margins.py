"""torch's losses that compare with a margin, and likelihoods of counts and of normal numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

from blockbuster.frontend.functions.pointwise import (
    exp,
    log,
    log1p,
    maximum,
    minimum,
    sqrt,
    square,
    where,
)
from blockbuster.frontend.functions.reductions import mean, sum
from blockbuster.frontend.functions.row import Array, torch_rows
from blockbuster.frontend.functions.torch_activations import log_sigmoid
from blockbuster.frontend.functions.torch_layers import pairwise_distance
from blockbuster.frontend.functions.torch_losses import of_class, reduced
from blockbuster.frontend.source import trace_error

_LEAST = 1e-12
"""What torch adds to a squared length before it takes the root."""


def cosine_embedding_loss(
    input1: Array, input2: Array, target: Array, margin: float = 0.0, *, reduction: str = "mean"
) -> Array:
    """How far the cosine of two vectors is from 1 where the target is 1, and above ``margin`` where
    it is -1.
    """
    ranks = len(input1.shape), len(input2.shape), len(target.shape)
    if ranks not in ((1, 1, 0), (2, 2, 1)):
        reason = f"cosine_embedding_loss of arrays of {ranks[0]} and {ranks[1]} axes, a target of"
        hint = "two matrices have a target for each row, two vectors a target of no axes"
        raise trace_error(f"{reason} {ranks[2]}", hint=hint)
    first, second = (sum(square(x), -1) + _LEAST for x in (input1, input2))
    cosine = sum(input1 * input2, -1) / sqrt(first * second)
    apart = where(target == -1, maximum(cosine - margin, 0.0), 0.0)
    return reduced(where(target == 1, 1.0 - cosine, 0.0) + apart, reduction)


def hinge_embedding_loss(
    input: Array, target: Array, margin: float = 1.0, *, reduction: str = "mean"
) -> Array:
    """The distance where the target is 1, and how far it is below ``margin`` where it is -1."""
    below = where(target == 1, 0.0, maximum(margin - input, 0.0))
    return reduced(below + where(target == -1, 0.0, input), reduction)


def margin_ranking_loss(
    input1: Array, input2: Array, target: Array, margin: float = 0.0, *, reduction: str = "mean"
) -> Array:
    """How far the input that the target, 1 or -1, wants larger is from being so by ``margin``."""
    return reduced(maximum(margin - target * (input1 - input2), 0.0), reduction)


def soft_margin_loss(input: Array, target: Array, *, reduction: str = "mean") -> Array:
    """log(1 + exp(-target x)) for targets of 1 and -1."""
    return reduced(log1p(exp(-(target * input))), reduction)


def multilabel_soft_margin_loss(
    input: Array, target: Array, weight: Array | None = None, *, reduction: str = "mean"
) -> Array:
    """The mean over classes, along the last axis, of the cross entropy of each."""
    each = -(target * log_sigmoid(input) + (1.0 - target) * log_sigmoid(-input))
    return reduced(mean(each if weight is None else each * weight, -1), reduction)


def multi_margin_loss(
    input: Array,
    target: Array,
    p: int = 1,
    margin: float = 1.0,
    weight: Array | None = None,
    *,
    reduction: str = "mean",
) -> Array:
    """How far the other classes are from being ``margin`` below the class that is named."""
    if p not in (1, 2):
        raise trace_error(f"multi_margin_loss of power {p!r}", hint="p is 1 or 2")
    chosen = of_class(target, input, len(input.shape) - 1)
    named = sum(where(chosen, input, 0.0), -1, True)
    each = maximum(margin - named + input, 0.0)
    each = where(chosen, 0.0, each if p == 1 else square(each))
    if weight is not None:
        each = each * sum(where(chosen, weight, 0.0), -1, True)
    return reduced(mean(each, -1), reduction)


def poisson_nll_loss(
    input: Array,
    target: Array,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Array:
    """The negative log likelihood of counts; ``full`` adds Stirling's formula for their logarithm.

    ``input`` is the mean of the counts, or its logarithm.
    """
    each = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        above = where(target > 1, target, 1.0)
        stirling = above * log(above) - above + 0.5 * log(2.0 * math.pi * above)
        each = each + where(target > 1, stirling, 0.0)
    return reduced(each, reduction)


def gaussian_nll_loss(
    input: Array,
    target: Array,
    var: Array,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Array:
    """The negative log likelihood of numbers with this mean and variance, which is at least eps."""
    rank = len(input.shape)
    if hasattr(var, "shape") and len(var.shape) == rank - 1:
        var = var[..., None]
    least = maximum(var, eps)
    each = 0.5 * (log(least) + square(input - target) / least)
    return reduced(each + 0.5 * math.log(2 * math.pi) if full else each, reduction)


def triplet_margin_with_distance_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    *,
    distance_function: Callable[[Array, Array], Array] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Array:
    """How much farther than ``margin`` the negative should be than the positive, at least 0.

    ``swap``: the negative's distance is that from the anchor or the positive, whichever is smaller.
    """
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    far = minimum(far, distance(positive, negative)) if swap else far
    return reduced(maximum(near - far + margin, 0.0), reduction)


def triplet_margin_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Array:
    """The same, of the norms of differences along the last axis."""
    return triplet_margin_with_distance_loss(
        anchor, positive, negative, margin=margin, swap=swap, reduction=reduction,
        distance_function=lambda x, y: pairwise_distance(x, y, p, eps),
    )  # fmt: skip


ROWS = torch_rows(
    "torch.nn.functional: losses", cosine_embedding_loss, hinge_embedding_loss,
    margin_ranking_loss, soft_margin_loss, multilabel_soft_margin_loss, multi_margin_loss,
    poisson_nll_loss, gaussian_nll_loss, triplet_margin_loss, triplet_margin_with_distance_loss,
)  # fmt: skip
