"""Array functions of workloads that no other benchmark has: norms, pools, experts, attention."""

from __future__ import annotations

from typing import Any

from blockbuster.frontend import functions as bb

Array = Any
INF = float("inf")


def soft_capped_attention(q: Array, k: Array, v: Array) -> Array:
    s = 20 * bb.tanh((q @ k.swapaxes(-1, -2)) * 0.05)
    return bb.softmax(s, axis=-1) @ v


def group_norm(x: Array) -> Array:
    centered = x - bb.mean(x, axis=-1, keepdims=True)
    return centered * bb.rsqrt(bb.mean(bb.square(centered), axis=-1, keepdims=True) + 1e-5)


def scaled_group_norm(x: Array, w: Array) -> Array:
    return group_norm(x) * w


def average_of_pieces(x: Array) -> Array:
    return bb.mean(x, axis=-1)


def middle_softmax(x: Array) -> Array:
    return bb.softmax(x, axis=1)


def middle_max(x: Array) -> Array:
    return bb.max(x, axis=1)


def row_sums(x: Array) -> Array:
    return bb.sum(bb.abs(x), axis=-1)


def gated_experts(x: Array, w: Array, v: Array) -> Array:
    return bb.silu(x @ w) * (x @ v)


def largest_of_pieces(x: Array) -> Array:
    return bb.max(x, axis=-1)


def middle_sum(x: Array) -> Array:
    return bb.sum(x, axis=1)


def middle_mean_of_squares(x: Array) -> Array:
    return bb.sqrt(bb.mean(bb.square(x), axis=1))


def first_axis_max(x: Array) -> Array:
    return bb.max(x, axis=0)


def swish_of_linear(x: Array, w: Array, b: Array) -> Array:
    y = x @ w + b
    return y * bb.sigmoid(y)


def mish_of_linear(x: Array, w: Array, b: Array) -> Array:
    y = x @ w + b
    return y * bb.tanh(bb.log(1 + bb.exp(y)))


def norm_of_channels(x: Array) -> Array:
    """A group norm over the last two axes: the channels of a group, and positions."""
    centered = x - bb.mean(x, axis=(-2, -1), keepdims=True)
    return centered * bb.rsqrt(bb.mean(bb.square(centered), axis=(-2, -1), keepdims=True) + 1e-5)


def pool_of_squares(x: Array) -> Array:
    """The means of squares, two rows by two columns: axes 2 and 4 of five."""
    return bb.mean(x, axis=(2, 4))


def max_of_rows(x: Array) -> Array:
    """A pool of neighbouring rows."""
    return bb.max(x, axis=-2)


def middle_min(x: Array) -> Array:
    return bb.min(x, axis=2)


def gelu_experts(x: Array, w: Array, v: Array, b: Array) -> Array:
    return bb.gelu(x @ w + b) * (x @ v)


def scaled_rms_norm(x: Array, g: Array) -> Array:
    return x * bb.rsqrt(bb.mean(bb.square(x), axis=-1, keepdims=True) + 1e-6) * g


def first_axis_log_softmax(x: Array) -> Array:
    return bb.log_softmax(x, axis=0)


def logsumexp_of_rows(x: Array) -> Array:
    return bb.logsumexp(x, axis=-1)


def unit_columns(x: Array) -> Array:
    return x * bb.rsqrt(bb.sum(bb.square(x), axis=0, keepdims=True) + 1e-6)


def cross_entropy_of_rows(x: Array, target: Array) -> Array:
    return -bb.sum(target * bb.log_softmax(x, axis=-1), axis=-1)


def short_window_attention(q: Array, k: Array, v: Array) -> Array:
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    distance = bb.arange(q.shape[-2])[:, None] - bb.arange(k.shape[-2])
    return bb.softmax(bb.where((distance >= 0) & (distance < 300), s, -INF), axis=-1) @ v


def normed_attention(q: Array, k: Array, v: Array) -> Array:
    """Attention of queries and keys that are divided by their root mean squares."""
    s = (bb.rms_norm(q) @ bb.rms_norm(k).swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


def outer_product_norm(x: Array, r: Array, g: Array) -> Array:
    """A row's update of rank one, normalized."""
    return bb.layer_norm(r + x[:, None] * g)


def linear(x: Array, w: Array, b: Array) -> Array:
    return x @ w + b


def group_norm_of_linear(x: Array, w: Array, b: Array) -> Array:
    """Groups of 512 columns: a product's columns that are folded in pieces."""
    y = (x @ w + b).reshape(x.shape[0], w.shape[1] // 512, 512)
    centered = y - bb.mean(y, axis=-1, keepdims=True)
    return centered * bb.rsqrt(bb.mean(bb.square(centered), axis=-1, keepdims=True) + 1e-5)


def max_of_pairs_of_product(x: Array, w: Array) -> Array:
    return bb.max((x @ w).reshape(x.shape[0], w.shape[1] // 2, 2), axis=-1)


def norm_of_heads_of_product(x: Array, w: Array) -> Array:
    y = (x @ w).reshape(x.shape[0], w.shape[1] // 128, 128)
    return y * bb.rsqrt(bb.mean(bb.square(y), axis=-1, keepdims=True) + 1e-6)


def norm_of_heads(x: Array) -> Array:
    return x * bb.rsqrt(bb.mean(bb.square(x), axis=-1, keepdims=True) + 1e-6)
