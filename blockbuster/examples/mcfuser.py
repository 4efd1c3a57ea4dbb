"""The workloads of MCFuser (tables II and III): batched GEMM chains and self-attention modules.

Dims have the source's names: queries are M x K, keys N x K, values N x H; B counts batches or
heads.
"""

from __future__ import annotations

from typing import Any

from blockbuster.examples.example import Example
from blockbuster.frontend import functions as bb

Array = Any


def gemm_chain(a: Array, b: Array, d: Array) -> Array:
    """Two products in a row, for each batch. MCFuser, figure 3."""
    return (a @ b) @ d


def self_attention(q: Array, k: Array, v: Array) -> Array:
    """Scaled dot-product attention, for each head. MCFuser, section VI-B2."""
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


def _chain(number: int, b: int, m: int, n: int, k: int, h: int) -> Example:
    inputs = {"a": "B M K", "b": "B K N", "d": "B N H"}
    return Example(f"G{number}", gemm_chain, inputs, dict(B=b, M=m, N=n, K=k, H=h))


def _module(number: int, b: int, m: int, n: int, k: int, h: int) -> Example:
    inputs = {"q": "B M K", "k": "B N K", "v": "B N H"}
    return Example(f"S{number}", self_attention, inputs, dict(B=b, M=m, N=n, K=k, H=h))


GEMM_CHAINS = (
    _chain(1, 1, 512, 256, 64, 64),
    _chain(2, 1, 512, 256, 64, 128),
    _chain(3, 1, 512, 256, 64, 256),
    _chain(4, 1, 512, 512, 256, 256),
    _chain(5, 1, 512, 512, 512, 256),
    _chain(6, 1, 512, 512, 1024, 256),
    _chain(7, 1, 512, 512, 128, 128),
    _chain(8, 1, 1024, 512, 128, 128),
    _chain(9, 1, 2048, 512, 128, 128),
    _chain(10, 1, 1024, 1024, 128, 128),
    _chain(11, 4, 1024, 1024, 128, 128),
    _chain(12, 8, 1024, 1024, 128, 128),
)
"""Table II, G1 to G12."""

SELF_ATTENTIONS = (
    _module(1, 8, 512, 512, 64, 64),
    _module(2, 12, 512, 512, 64, 64),
    _module(3, 16, 512, 512, 64, 64),
    _module(4, 12, 256, 256, 64, 64),
    _module(5, 16, 256, 256, 64, 64),
    _module(6, 16, 256, 256, 80, 80),
    _module(7, 1, 512, 256, 64, 64),
    _module(8, 1, 768, 384, 64, 64),
    _module(9, 1, 1024, 512, 64, 64),
)
"""Table III, S1 to S9: Bert (small, base, large), ViT (base, large, huge), three of MLP-Mixer."""
