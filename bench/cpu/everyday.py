"""Programs of reshapes and of everyday NumPy: ``bb.jit`` runs the very function that NumPy runs.

NumPy's loops over blocks would be slow for most of them: a reshape leaves pieces of few elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.cpu.programs import Program

Array = Any


def spatial_softmax(x: Array) -> Array:
    flat = x.reshape(x.shape[0], -1)
    e = np.exp(flat - flat.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).reshape(x.shape)


def patch_embedding(image: Array, w: Array, bias: Array) -> Array:
    n, c, h, v = image.shape
    patches = image.reshape(n, c, h // 16, 16, v // 16, 16).transpose(0, 2, 4, 1, 3, 5)
    return patches.reshape(n, (h // 16) * (v // 16), c * 256) @ w + bias


def interleaved_rotation(x: Array, cos: Array, sin: Array) -> Array:
    a, b = x[..., ::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)


def rotation_of_halves(x: Array, cos: Array, sin: Array) -> Array:
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def space_to_depth(x: Array) -> Array:
    n, c, h, w = x.shape
    cells = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 3, 5, 1, 2, 4)
    return cells.reshape(n, c * 4, h // 2, w // 2)


def pixel_shuffle(x: Array) -> Array:
    n, c, h, w = x.shape
    cells = x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3)
    return cells.reshape(n, c // 4, h * 2, w * 2)


def group_norm(x: Array, w: Array, b: Array) -> Array:
    n, c, h, v = x.shape
    g = x.reshape(n, 8, c // 8, h, v)
    g = (g - g.mean((2, 3, 4), keepdims=True)) / np.sqrt(g.var((2, 3, 4), keepdims=True) + 1e-5)
    return g.reshape(x.shape) * w[:, None, None] + b[:, None, None]


def batch_norm(x: Array, w: Array, b: Array) -> Array:
    m, v = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5) * w[:, None, None] + b[:, None, None]


def head_norm(x: Array, w: Array) -> Array:
    b, s, d = x.shape
    h = x.reshape(b, s, 8, d // 8)
    return (h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-6) * w).reshape(x.shape)


def window_mean(x: Array) -> Array:
    return x.reshape(x.shape[0], -1, 8).mean(-1)


def windows_centered(x: Array) -> Array:
    w = x.reshape(x.shape[0], -1, 16)
    return (w - w.mean(-1, keepdims=True)).reshape(x.shape)


def average_pool(x: Array) -> Array:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).mean((3, 5))


def max_pool(x: Array) -> Array:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


def one_hot_product(i: Array, w: Array) -> Array:
    return (i[:, None] == np.arange(128)).astype(np.float32) @ w


def distances(x: Array, y: Array) -> Array:
    return np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(-1))


def running_mean(x: Array) -> Array:
    return np.cumsum(x, axis=-1) / np.arange(1, x.shape[-1] + 1, dtype=np.float32)


def largest_sorted(x: Array) -> Array:
    return np.sort(x, axis=-1)[:, -8:] * 2


def cross_entropy(x: Array, labels: Array) -> Array:
    z = x - x.max(-1, keepdims=True)
    logs = z - np.log(np.exp(z).sum(-1, keepdims=True))
    return -logs[np.arange(x.shape[0]), labels].mean()


def standardized(x: Array) -> Array:
    return (x - x.mean(0)) / (x.std(0) + 1e-6)


def chain_of_three(a: Array, b: Array, c: Array) -> Array:
    return np.einsum("ij,jk,kl->il", a, b, c, optimize=True)


def attention_pool(x: Array, q: Array) -> Array:
    s = np.einsum("bsd,d->bs", x, q)
    a = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bs,bsd->bd", a / a.sum(-1, keepdims=True), x)


def attention_by_heads(x: Array, wq: Array, wk: Array, wv: Array) -> Array:
    b, s, d = x.shape
    q, k, v = ((x @ w / 16).reshape(b, s, 8, d // 8).transpose(0, 2, 1, 3) for w in (wq, wk, wv))
    a = q @ k.transpose(0, 1, 3, 2) / math.sqrt(d // 8)
    a = np.exp(a - a.max(-1, keepdims=True))
    return (a / a.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(x.shape)


def moving_mean(x: Array) -> Array:
    return (x[:, :-4] + x[:, 1:-3] + x[:, 2:-2] + x[:, 3:-1] + x[:, 4:]) / 5


def covariance(x: Array) -> Array:
    c = x - x.mean(0)
    return c.T @ c / (x.shape[0] - 1)


def softmax_of_channels(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def batched_products(x: Array, y: Array) -> Array:
    return x @ y


def _program(
    function: Callable[..., Array], *shapes: tuple[int, ...], count: int | None = None
) -> Program:
    name = function.__name__.replace("_", " ")
    return Program(name, function, function, shapes, count)


IMAGES, VECTOR, LONG = (8, 16, 64, 64), (32,), (256, 4096)
EVERYDAY = (
    _program(spatial_softmax, (64, 64, 64)),
    _program(patch_embedding, (4, 3, 224, 224), (768, 768), (768,)),
    _program(interleaved_rotation, (4, 8, 512, 64), (512, 32), (512, 32)),
    _program(rotation_of_halves, (4, 8, 512, 64), (512, 32), (512, 32)),
    _program(space_to_depth, IMAGES),
    _program(pixel_shuffle, (4, 32, 64, 64)),
    _program(group_norm, (4, 32, 64, 64), VECTOR, VECTOR),
    _program(batch_norm, (8, 32, 32, 32), VECTOR, VECTOR),
    _program(head_norm, (4, 256, 512), (64,)),
    _program(window_mean, (512, 2048)),
    _program(windows_centered, LONG),
    _program(average_pool, IMAGES),
    _program(max_pool, IMAGES),
    _program(one_hot_product, (2048,), (128, 256), count=128),
    _program(distances, (256, 64), (256, 64)),
    _program(running_mean, (512, 1024)),
    _program(largest_sorted, (512, 1024)),
    _program(cross_entropy, (1024, 512), (1024,), count=512),
    _program(standardized, (4096, 128)),
    _program(chain_of_three, (256, 256), (256, 256), (256, 256)),
    _program(attention_pool, (32, 256, 64), (64,)),
    _program(attention_by_heads, (2, 128, 256), (256, 256), (256, 256), (256, 256)),
    _program(moving_mean, LONG),
    _program(covariance, (4096, 64)),
    _program(softmax_of_channels, (8, 21, 64, 64)),
    _program(batched_products, (32, 64, 64), (32, 64, 64)),
)
