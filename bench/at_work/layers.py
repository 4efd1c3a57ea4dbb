"""Layers: norms, gates, experts, cells, weights in few bits, and layers of vision."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F

from bench.outside.attention import gated_network
from bench.outside.making import case
from bench.peers.case import Array

layer = partial(case, "layers")
vision = partial(case, "vision")
cell = partial(case, "cells")
ROWS = dict(M=4096, E=1024)


def adaptive_norm(x: Array, c: Array, w: Array, b: Array) -> Array:
    """DiT: scale, shift and gate of a norm come from the condition."""
    shift, scale, gate = F.linear(F.silu(c), w, b).chunk(3, dim=-1)
    y = F.layer_norm(x, (x.shape[-1],), eps=1e-6)
    return x + gate[:, None] * (y * (1 + scale[:, None]) + shift[:, None])


def low_rank_adapter(x: Array, w: Array, w_a: Array, w_b: Array) -> Array:
    return x @ w.T + (x @ w_a.T) @ w_b.T * (16 / w_a.shape[0])


def dense_experts(x: Array, w_gate: Array, u_in: Array, u_out: Array) -> Array:
    """Every expert computes, and the gate weighs what each gives."""
    p = torch.softmax(F.linear(x, w_gate), -1)
    y = F.silu(torch.einsum("me,xef->xmf", x, u_in))
    return torch.einsum("xmf,xfe,mx->me", y, u_out, p)


def top_two_gates(x: Array, w: Array) -> tuple[Array, Array]:
    value, index = torch.topk(torch.softmax(F.linear(x, w), -1), 2, dim=-1)
    return value / value.sum(-1, keepdim=True), index


def four_bits(x: Array, packed: Array, scale: Array) -> Array:
    """Two weights in a byte, a scale for each 32 of them."""
    low, high = (packed & 15) - 8, (packed >> 4) - 8
    w = torch.stack((low, high), dim=-1).flatten(-2).to(x.dtype)
    w = (w.unflatten(-1, (-1, 32)) * scale[..., None]).flatten(-2)
    return x @ w.T


def eight_bits(x: Array, codes: Array, scale: Array) -> Array:
    return F.linear(x, codes.to(x.dtype)) * scale


def eight_bits_with_zero(x: Array, codes: Array, scale: Array, zero: Array) -> Array:
    return x @ ((codes.to(x.dtype) - zero[:, None]) * scale[:, None]).T


def group_norm(x: Array, g: Array, h: Array) -> Array:
    """Four groups of channels, by hand."""
    n, c, height, width = x.shape
    y = x.reshape(n, 4, -1)
    mean, var = y.mean(-1, keepdim=True), y.var(-1, unbiased=False, keepdim=True)
    y = ((y - mean) / torch.sqrt(var + 1e-5)).view(n, c, height, width)
    return y * g[None, :, None, None] + h[None, :, None, None]


def squeeze_excite(x: Array, w1: Array, w2: Array) -> Array:
    s = F.adaptive_avg_pool2d(x, 1).flatten(1)
    s = torch.sigmoid(F.linear(F.relu(F.linear(s, w1)), w2))
    return x * s.view(*s.shape, 1, 1)


def vlad(x: Array, w: Array, centers: Array) -> Array:
    """NetVLAD: differences to centers, weighed by how near each is, summed and normed."""
    a = torch.softmax(F.linear(x, w), -1)
    y = torch.einsum("bnk,bnd->bkd", a, x) - a.sum(1)[..., None] * centers
    return F.normalize(F.normalize(y, dim=-1).flatten(1), dim=-1)


def gru(x: Array, s: Array, w_x: Array, w_h: Array, b: Array, c: Array) -> Array:
    xr, xz, xn = F.linear(x, w_x, b).chunk(3, -1)
    hr, hz, hn = F.linear(s, w_h, c).chunk(3, -1)
    r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
    n = torch.tanh(xn + r * hn)
    return (1 - z) * n + z * s


def lstm(x: Array, s: Array, c: Array, w_x: Array, w_h: Array, b: Array) -> tuple[Array, Array]:
    i, f, g, o = (F.linear(x, w_x, b) + F.linear(s, w_h)).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def pixel_shuffle(x: Array, w: Array, b: Array) -> Array:
    return F.pixel_shuffle(F.conv2d(x, w, b, padding=1), 2)


def patches(x: Array, w: Array, b: Array, places: Array) -> Array:
    """ViT: patches of 16 x 16 pixels, a product, places."""
    B, C, H, W = x.shape
    x = x.reshape(B, C, H // 16, 16, W // 16, 16).permute(0, 2, 4, 1, 3, 5)
    return F.linear(x.reshape(B, -1, C * 256), w, b) + places


def sliding_means(x: Array) -> Array:
    return x.unfold(-1, 8, 4).mean(-1)


def dropped_tokens(x: Array, kept: Array) -> Array:
    """The mean of the tokens that a mask keeps."""
    kept = kept[..., None] > 0
    return torch.where(kept, x, 0.0).sum(1) / kept.sum(1).clamp(min=1)


def soft_argmax(z: Array) -> Array:
    """Where a heat map is hot: the mean place, by its softmax."""
    B, K, H, W = z.shape
    p = torch.softmax(z.flatten(2), -1).view(B, K, H, W)
    y, x = torch.arange(H, device=z.device), torch.arange(W, device=z.device)
    return torch.stack(((p.sum(2) * x).sum(-1), (p.sum(3) * y).sum(-1)), dim=-1)


def spectral_step(w: Array, u: Array) -> tuple[Array, Array]:
    """A power iteration of spectral norm, and the weight over its norm."""
    v = F.normalize(w.mT @ u, dim=0)
    u = F.normalize(w @ v, dim=0)
    return w / (u @ (w @ v)), u


BYTE = dict(packed="uint8")
CASES = (
    layer(adaptive_norm, "B S E, B E, 3E E, 3E", {"B": 8, "S": 1024, "E": 1152, "3E": 3456},
          few={"S": 9, "E": 16, "3E": 48}),
    layer(low_rank_adapter, "M E, E E, R E, E R", ROWS | dict(R=16), few=dict(M=9, E=16, R=4)),
    layer(gated_network, "M E, E, F E, F E, E F", ROWS | dict(F=2816), few=dict(E=16, F=24)),
    layer(dense_experts, "M E, X E, X E F, X F E", dict(M=1024, E=512, X=8, F=1024),
          few=dict(M=9, E=16, X=4, F=24)),
    layer(top_two_gates, "M E, X E", ROWS | dict(X=64), few=dict(X=8)),
    layer(four_bits, "M K, N J, N G", dict(M=16, K=4096, N=4096, J=2048, G=128),
          few=dict(M=4, K=64, N=24, J=32, G=2), own=BYTE,
          special=dict(packed=lambda random, shape: torch.randint(256, shape, generator=random))),
    layer(eight_bits, "M K, N K, N", dict(M=16, K=4096, N=4096), own=dict(codes="int8"),
          special=dict(codes=lambda random, shape: torch.randint(-127, 128, shape,
                                                                 generator=random))),
    layer(eight_bits_with_zero, "M K, N K, N, N", dict(M=16, K=4096, N=4096),
          own=dict(codes="uint8"),
          special=dict(codes=lambda random, shape: torch.randint(256, shape, generator=random))),
    layer(vlad, "B N D, K D, K D", dict(B=16, N=1024, D=256, K=64), few=dict(N=20, D=8, K=4)),
    layer(dropped_tokens, "B S E, B S", dict(B=16, S=577, E=768), few=dict(S=9, E=16)),
    layer(spectral_step, "M N, M", dict(M=1024, N=1024)),
    vision(group_norm, "B C H W, C, C", dict(B=8, C=128, H=64, W=64),
           few=dict(C=8, H=6, W=5)),
    vision(squeeze_excite, "B C H W, R C, C R", dict(B=16, C=256, H=28, W=28, R=16),
           few=dict(C=16, R=16, H=5, W=5)),
    vision(pixel_shuffle, "B C H W, N C 3 3, N", dict(B=4, C=64, N=256, H=64, W=64),
           few=dict(C=4, N=8, H=6, W=5)),
    vision(patches, "B 3 H W, E 768, E, P E", dict(B=32, E=768, H=224, W=224, P=196),
           few=dict(E=16, H=32, W=48, P=6)),
    vision(soft_argmax, "B K H W", dict(B=32, K=17, H=64, W=48), few=dict(K=3, H=6, W=5)),
    vision(sliding_means, "B C L", dict(B=32, C=64, L=4096), few=dict(C=3)),
    cell(gru, "B E, B H, 3H E, 3H H, 3H, 3H", {"B": 64, "E": 512, "H": 512, "3H": 1536},
         few={"E": 12, "H": 8, "3H": 24}),
    cell(lstm, "B E, B H, B H, 4H E, 4H H, 4H", {"B": 64, "E": 512, "H": 512, "4H": 2048},
         few={"E": 12, "H": 8, "4H": 32}),
)  # fmt: skip
