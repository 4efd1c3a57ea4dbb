"""Twelve programs, each written in NumPy and with our functions, at the same sizes and dtypes.

``ours`` is compiled by ``bb.jit``, ``plain`` runs as written. Inputs are float32, standard normal,
from a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import blockbuster as bb

Array = Any


@dataclass(frozen=True)
class Program:
    """A program in two spellings, and the shapes of its inputs in order.

    ``count``: one input of one axis holds positions below it.
    """

    name: str
    ours: Callable[..., Array]
    plain: Callable[..., Array]
    shapes: tuple[tuple[int, ...], ...]
    count: int | None = None

    def inputs(self, dtype: Any = np.float32) -> list[Array]:
        """The same arrays whenever it is called."""
        random = np.random.default_rng(0)
        return [
            random.integers(0, self.count, shape)
            if self.count and len(shape) == 1
            else random.standard_normal(shape).astype(dtype)
            for shape in self.shapes
        ]


def attention(q: Array, k: Array, v: Array) -> Array:
    return bb.softmax(q @ k.T / math.sqrt(64)) @ v


def plain_attention(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.T / math.sqrt(64)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def chain(x: Array, y: Array) -> Array:
    return bb.maximum(x * 2 + y, 0) * (x - y) + bb.sqrt(bb.abs(x * y))


def plain_chain(x: Array, y: Array) -> Array:
    return np.maximum(x * 2 + y, 0) * (x - y) + np.sqrt(np.abs(x * y))


def softmax(x: Array) -> Array:
    return bb.softmax(x)


def plain_softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    return bb.layer_norm(x, weight, bias)


def plain_layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * weight + bias


def residual_norm(x: Array, r: Array, weight: Array) -> Array:
    return bb.rms_norm(x + r, weight)


def plain_residual_norm(x: Array, r: Array, weight: Array) -> Array:
    h = x + r
    return h / np.sqrt(np.mean(h**2, axis=-1, keepdims=True) + 1e-6) * weight


def logsumexp(x: Array) -> Array:
    return bb.logsumexp(x)


def plain_logsumexp(x: Array) -> Array:
    top = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=-1)) + top[..., 0]


def pairwise(x: Array, y: Array) -> Array:
    squares = bb.sum(x * x, axis=-1, keepdims=True) + bb.sum(y * y, axis=-1)
    return bb.sqrt(bb.maximum(squares - 2 * (x @ y.T), 0))


def plain_pairwise(x: Array, y: Array) -> Array:
    squares = (x * x).sum(axis=-1, keepdims=True) + (y * y).sum(axis=-1)
    return np.sqrt(np.maximum(squares - 2 * (x @ y.T), 0))


def manhattan(x: Array, y: Array) -> Array:
    return bb.sum(bb.abs(x[:, None, :] - y[None, :, :]), axis=-1)


def plain_manhattan(x: Array, y: Array) -> Array:
    return np.abs(x[:, None, :] - y[None, :, :]).sum(axis=-1)


def gelu_of_product(x: Array, w: Array) -> Array:
    h = x @ w
    return 0.5 * h * (1 + bb.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))


def plain_gelu_of_product(x: Array, w: Array) -> Array:
    h = x @ w
    return 0.5 * h * (1 + np.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))


def gram(x: Array) -> Array:
    return x @ x.T


SQUARE, ROWS, ROW = (2048, 2048), (4096, 1024), (1024,)
PROGRAMS = (
    Program("attention 512", attention, plain_attention, ((512, 64),) * 3),
    Program("attention 2048", attention, plain_attention, ((2048, 64),) * 3),
    Program("attention 8", attention, plain_attention, ((8, 8),) * 3),
    Program("pointwise chain", chain, plain_chain, (SQUARE, SQUARE)),
    Program("softmax", softmax, plain_softmax, (ROWS,)),
    Program("LayerNorm", layer_norm, plain_layer_norm, (ROWS, ROW, ROW)),
    Program("residual RMSNorm", residual_norm, plain_residual_norm, (ROWS, ROWS, ROW)),
    Program("logsumexp", logsumexp, plain_logsumexp, (ROWS,)),
    Program("pairwise distances", pairwise, plain_pairwise, ((1024, 64), (1024, 64))),
    Program("L1 distances", manhattan, plain_manhattan, ((256, 64), (256, 64))),
    Program("gelu of a product", gelu_of_product, plain_gelu_of_product, ((512, 256), (256, 1024))),
    Program("Gram", gram, gram, ((512, 512),)),
)
