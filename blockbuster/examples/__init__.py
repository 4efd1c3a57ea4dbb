"""The programs of the sources, a few lines of array code each.

``ALL`` holds the three examples of Blockbuster Part 1, under the names of its sections.
``GEMM_CHAINS`` and ``SELF_ATTENTIONS`` hold the workloads of MCFuser, under the names in its
tables.
"""

from __future__ import annotations

from typing import Any

from blockbuster.examples.example import Example
from blockbuster.examples.mcfuser import GEMM_CHAINS, SELF_ATTENTIONS
from blockbuster.frontend import functions as bb

__all__ = ["ALL", "GEMM_CHAINS", "SELF_ATTENTIONS", "Example"]

Array = Any


def attention(q: Array, k: Array, v: Array) -> Array:
    """Scaled dot-product attention, whose fused form is Flash Attention.

    Blockbuster Part 1, example 1. Softmax is written without the row maximum, as there.
    """
    s = (q @ k.T) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


def layernorm_matmul(x: Array, y: Array) -> Array:
    """LayerNorm followed by a matrix product. Blockbuster Part 1, example 2."""
    return bb.layer_norm(x) @ y


def rmsnorm_swiglu(x: Array, w: Array, v: Array, u: Array) -> Array:
    """RMSNorm followed by a feed-forward layer with SwiGLU. Blockbuster Part 1, example 3."""
    n = bb.rms_norm(x)
    return (bb.silu(n @ w) * (n @ v)) @ u


ALL = (
    Example(
        "attention",
        attention,
        {"q": "M D", "k": "N D", "v": "N L"},
        {"M": 96, "N": 128, "D": 64, "L": 72},
    ),
    Example(
        "layernorm-matmul",
        layernorm_matmul,
        {"x": "M K", "y": "K N"},
        {"M": 96, "K": 128, "N": 80},
    ),
    Example(
        "rmsnorm-swiglu",
        rmsnorm_swiglu,
        {"x": "M D", "w": "D K", "v": "D K", "u": "K N"},
        {"M": 96, "D": 64, "K": 128, "N": 72},
    ),
)
