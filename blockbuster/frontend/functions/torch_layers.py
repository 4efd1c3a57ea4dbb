"""torch's layers: products with weights, normalizations, attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.dtype_names import least_step
from blockbuster.frontend.functions.creation import arange
from blockbuster.frontend.functions.joins import embedding
from blockbuster.frontend.functions.normalizations import layer_norm, rms_norm, softmax
from blockbuster.frontend.functions.pointwise import maximum, rsqrt, sqrt, square, where
from blockbuster.frontend.functions.products import matmul, norm
from blockbuster.frontend.functions.reductions import max, mean, sum
from blockbuster.frontend.functions.row import Array, torch_row, torch_rows
from blockbuster.frontend.functions.shapes import (
    expand_dims,
    flatten,
    is_unit,
    reshape,
    swapaxes,
    unflatten,
)
from blockbuster.frontend.source import trace_error


def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """``x @ weight.T + bias``."""
    product = matmul(input, swapaxes(weight, 0, 1) if len(weight.shape) == 2 else weight)
    return product if bias is None else product + bias


def torch_embedding(
    input: Array,
    weight: Array,
    padding_idx: int | None = None,  # noqa: ARG001 - it counts in training only
    max_norm: float | None = None,
) -> Array:
    """The rows of ``weight`` at the positions ``input``."""
    if max_norm is not None:
        reason = f"embedding with max_norm={max_norm} changes its weights"
        raise trace_error(reason, hint="leave max_norm out")
    return embedding(input, weight)


def embedding_bag(
    input: Array, weight: Array, offsets: Array | None = None, max_norm: float | None = None,
    norm_type: float = 2.0,  # noqa: ARG001 - of max_norm
    scale_grad_by_freq: bool = False,  # noqa: ARG001 - it counts in training only
    mode: str = "mean", sparse: bool = False,  # noqa: ARG001 - of gradients
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,  # noqa: ARG001 - of offsets
    padding_idx: int | None = None,
) -> Array:  # fmt: skip
    """The sum, mean or maximum of the rows of ``weight`` at each row of positions."""
    if offsets is not None or padding_idx is not None or len(input.shape) != 2:
        reason = "embedding_bag of bags of several lengths"
        hint = "rows of as many positions; F.embedding(input, weight) times a mask leaves some out"
        raise trace_error(reason, hint=hint)
    folds: dict[str, Callable[..., Array]] = {"sum": sum, "mean": mean, "max": max}
    if mode not in folds:
        raise trace_error(f"embedding_bag has no mode {mode!r}", hint=f"modes: {', '.join(folds)}")
    rows = torch_embedding(input, weight, max_norm=max_norm)
    if per_sample_weights is not None:
        rows = rows * expand_dims(per_sample_weights, -1)
    return folds[mode](rows, 1)


def torch_layer_norm(
    input: Array,
    normalized_shape: Any,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axes."""
    axes = _last_axes(input, normalized_shape)
    if len(axes) == 1:
        return layer_norm(input, weight, bias, eps=eps)
    scaled = centred_and_scaled(input, axes, eps)
    scaled = scaled if weight is None else scaled * weight
    return scaled if bias is None else scaled + bias


def torch_rms_norm(
    input: Array,
    normalized_shape: Any,
    weight: Array | None = None,
    eps: float | None = None,
) -> Array:
    """``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axes."""
    least = least_step(input) if eps is None else eps
    axes = _last_axes(input, normalized_shape)
    if len(axes) == 1:
        return rms_norm(input, weight, eps=least)
    scaled = input * rsqrt(mean(square(input), axes, True) + least)
    return scaled if weight is None else scaled * weight


def _last_axes(x: Array, normalized_shape: Any) -> tuple[int, ...]:
    """The axes that are normalized. Raises TraceError if extents are known to differ."""
    extents = normalized_shape if isinstance(normalized_shape, Sequence) else (normalized_shape,)
    axes = tuple(range(len(x.shape) - len(extents), len(x.shape)))
    for axis, extent in zip(axes, extents, strict=True):
        own = x.trace.dims.extent(x.axes[axis])
        if isinstance(extent, int) and own is not None and own != extent:
            reason = f"normalized_shape is {tuple(extents)}, and axis {axis} has {own} elements"
            raise trace_error(reason, hint="pass x.shape[-1:]")
    return axes


def batch_norm(
    input: Array,
    running_mean: Array | None,
    running_var: Array | None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,  # noqa: ARG001
    eps: float = 1e-5,
) -> Array:
    """The channels, along axis 1, moved and scaled by what was found in training.

    Where nothing was kept of training, it is done by the statistics of the channels themselves.
    """
    if training:
        _expect_no_statistics("batch_norm with training=True", running_mean, running_var)
        over = (0, *range(2, len(input.shape)))
        return _in_channels(centred_and_scaled(input, over, eps), weight, bias)

    if running_mean is None or running_var is None:
        hint = "pass running_mean and running_var, or training=True"
        raise trace_error("batch_norm with training=False and no statistics", hint=hint)

    def channels(x: Array) -> Array:
        return x[(slice(None), *(None,) * (len(input.shape) - 2))]

    scaled = (input - channels(running_mean)) * channels(rsqrt(running_var + eps))
    return _in_channels(scaled, weight, bias)


def _expect_no_statistics(what: str, *statistics: Array | None) -> None:
    if any(one is not None for one in statistics):
        reason = f"{what} changes its running statistics, which no program does"
        raise trace_error(reason, hint="Blockbuster compiles inference: call model.eval()")


def centred_and_scaled(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    """``(x - mean) / sqrt(variance + eps)`` over axes."""
    centred = x - mean(x, axes, True)
    return centred * rsqrt(mean(square(centred), axes, True) + eps)


def _in_channels(x: Array, weight: Array | None, bias: Array | None) -> Array:
    """``x * weight + bias``, with a weight and a bias for each channel, along axis 1."""
    behind = (slice(None), *(None,) * (len(x.shape) - 2))
    x = x if weight is None else x * weight[behind]
    return x if bias is None else x + bias[behind]


def instance_norm(
    input: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """The channels, along axis 1, of each instance by itself, centred and scaled to variance one.

    With ``use_input_stats=False`` they are moved and scaled by what was found in training.
    """
    rank = len(input.shape)
    if rank < 3:
        hint = "instances, channels and space: x.unsqueeze(1) has one channel for each row"
        raise trace_error(f"instance_norm of {rank} axes", hint=hint)
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    _expect_no_statistics("instance_norm with use_input_stats=True", running_mean, running_var)
    over = tuple(range(2, rank))
    if all(is_unit(input, axis) for axis in over):
        hint = "leave the norm out, or pass use_input_stats=False"
        raise trace_error("instance_norm of one element in each channel", hint=hint)
    return _in_channels(centred_and_scaled(input, over, eps), weight, bias)


def group_norm(
    input: Array,
    num_groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """Each group of channels, along axis 1, centred and scaled to variance one."""
    apart = unflatten(input, 1, (num_groups, -1))
    over = tuple(range(2, len(apart.shape)))
    return _in_channels(flatten(centred_and_scaled(apart, over, eps), 1, 2), weight, bias)


def normalize(input: Array, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Array:
    """``x`` over its norm along an axis, or over ``eps`` where that is larger."""
    return input / maximum(norm(input, p, dim, True), eps)


def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    """The cosine of the angle between vectors along an axis."""
    long, other = (maximum(sqrt(sum(square(x), dim)), eps) for x in (x1, x2))
    return sum(x1 * x2, dim) / (long * other)


def pairwise_distance(
    x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Array:
    """The norm of the difference along the last axis."""
    return norm(x1 - x2 + eps, p, -1, keepdim)


def cdist(x1: Array, x2: Array, p: float = 2.0, compute_mode: str = "") -> Array:  # noqa: ARG001
    """The distances of all rows of one matrix from all rows of another."""
    return norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    """softmax(query key' scale + mask) value; zero where a mask leaves out all keys.

    A mask of truth values says which keys count, one of numbers is added. ``enable_gqa`` lets
    several heads of queries share one of keys and values.
    """
    if dropout_p > 0:
        raise trace_error("attention with dropout draws random numbers", hint="pass dropout_p=0.0")
    if attn_mask is not None and is_causal:
        raise trace_error("attention takes attn_mask or is_causal=True, not both")
    if enable_gqa:
        return _grouped(query, key, value, attn_mask, is_causal, scale)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = matmul(query, swapaxes(key, -1, -2)) * factor
    if is_causal:
        rows, columns = arange(query.shape[-2]), arange(key.shape[-2])
        scores = where(columns[None, :] <= rows[:, None], scores, -np.inf)
    elif attn_mask is not None:
        scores = _masked(scores, attn_mask)
    return matmul(softmax(scores), value)


def _masked(scores: Array, mask: Array) -> Array:
    truth = getattr(mask, "kind", "") == "mask" or "bool" in str(getattr(mask, "dtype", ""))
    return where(mask, scores, -np.inf) if truth else scores + mask


def _grouped(
    query: Array, key: Array, value: Array, mask: Any, is_causal: bool, scale: float | None
) -> Array:
    """Attention where each head of keys serves as many heads of queries as there are more."""
    batch, heads, rows, width = query.shape[-4:]
    shared = key.shape[-3]
    if mask is not None and len(mask.shape) > 2:
        raise trace_error("a mask for each head with enable_gqa", hint="pass a mask of two axes")
    apart = reshape(query, (batch, shared, heads // shared, rows, width))
    taken = scaled_dot_product_attention(
        apart, key[..., None, :, :], value[..., None, :, :], mask, 0.0, is_causal, scale=scale
    )
    return reshape(taken, (batch, heads, rows, value.shape[-1]))


_GROUP = "torch.nn.functional: layers"

ROWS = (
    *torch_rows(
        _GROUP, linear, batch_norm, instance_norm, group_norm, normalize,
        scaled_dot_product_attention,
    ),
    *torch_rows(_GROUP, cosine_similarity, pairwise_distance, modules=("nn.functional.", "")),
    torch_row(torch_embedding, "nn.functional.embedding", group=_GROUP),
    torch_row(embedding_bag, "nn.functional.embedding_bag", group=_GROUP),
    torch_row(torch_layer_norm, "nn.functional.layer_norm", "layer_norm", group=_GROUP),
    torch_row(torch_rms_norm, "nn.functional.rms_norm", "rms_norm", group=_GROUP),
    torch_row(cdist, "cdist", group=_GROUP),
)  # fmt: skip
