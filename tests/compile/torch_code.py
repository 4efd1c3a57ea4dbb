"""Everyday code as people write it for torch: layers, blocks and losses."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PreNormBlock(nn.Module):
    """A decoder's block with causal attention, as in nanoGPT."""

    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.size()
        parts = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in parts
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(batch, length, width)
        x = x + self.dropout(self.out(y))
        return x + self.mlp(self.norm2(x))


class SwiGLU(nn.Module):
    """The feed-forward part of a Llama, with its RMSNorm in float32."""

    def __init__(self, width: int = 16, inner: int = 24) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def normed(self, x: Tensor) -> Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return wide.type_as(x) * self.weight

    def forward(self, x: Tensor) -> Tensor:
        y = self.normed(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class VitBlock(nn.Module):
    """An encoder's block whose attention is written out."""

    def __init__(self, width: int = 12, heads: int = 3) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def attention(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        y = scores.softmax(dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, n, c))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def grouped_attention(
    x: Tensor, wq: Tensor, wk: Tensor, wv: Tensor, cos: Tensor, sin: Tensor
) -> Tensor:
    """Attention of four heads of queries on two of keys, with rotary positions."""
    b, t, _ = x.shape
    q, k, v = (F.linear(x, w).view(b, t, -1, 8).transpose(1, 2) for w in (wq, wk, wv))
    q, k = (y * cos + rotated(y) * sin for y in (q, k))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return y.transpose(1, 2).flatten(2)


def rotated(x: Tensor) -> Tensor:
    """Each pair of halves of the last axis, turned by a right angle."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def masked_loss(logits: Tensor, labels: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """A language model's loss of the next token where a mask holds, and how often it is right."""
    losses = F.cross_entropy(logits, labels, reduction="none", label_smoothing=0.1)
    right = (logits.argmax(dim=-1) == labels).float()
    count = mask.sum()
    return {
        "loss": losses.masked_fill(~mask, 0.0).sum() / count,
        "right": torch.where(mask, right, 0.0).sum() / count,
        "mean": F.cross_entropy(logits, labels, ignore_index=2),
    }
