"""Attention, recurrences and layers of models of language, as people write them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from bench.outside.making import below, case
from bench.peers.case import Array

attn = partial(case, "attention")
lin = partial(case, "in place of attention")
layer = partial(case, "layers")
S = dict(B=2, H=16, S=2048, D=64)
FEW = dict(H=2, S=9, D=8)
QKV = "B H S D, B H S D, B H S D"
ROWS = dict(M=4096, E=1024)
ones = below(2)


def positive(random: Any, shape: tuple[int, ...]) -> Array:
    """Numbers between 1/2 and 3/2."""
    return torch.rand(shape, generator=random) + 0.5


def t5_bias(q: Array, k: Array, v: Array, table: Array) -> Any:
    s = q.shape[2]
    rel = torch.arange(s, device=q.device)[None, :] - torch.arange(s, device=q.device)[:, None]
    n = (-rel).clamp(min=0)
    big = 16 + (torch.log(n.float().clamp(min=1) / 16) / math.log(128 / 16) * 16).long()
    bucket = torch.where(n < 16, n, big.clamp(max=31))
    bias = table[bucket].permute(2, 0, 1)
    return torch.softmax(q @ k.mT + bias, -1) @ v


def cosine_attention(q: Array, k: Array, v: Array, log_scale: Array, bias: Array) -> Any:
    """Swin v2: cosines of queries and keys, and a scale for each head."""
    s = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
    s = s * torch.clamp(log_scale, max=math.log(100.0)).exp() + bias
    return s.softmax(-1) @ v


def swin_bias(q: Array, k: Array, v: Array, table: Array, index: Array) -> Any:
    n = q.shape[-2]
    bias = table[index.view(-1)].view(n, n, -1).permute(2, 0, 1)
    return (q @ k.mT * q.shape[-1] ** -0.5 + bias).softmax(-1) @ v


def document_attention(q: Array, k: Array, v: Array, doc: Array) -> Any:
    """Several documents in a row, each of which sees itself alone."""
    s = q.shape[-2]
    same = doc[:, None, :, None] == doc[:, None, None, :]
    causal = torch.arange(s, device=q.device)[:, None] >= torch.arange(s, device=q.device)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=same & causal)


def key_padding(q: Array, k: Array, v: Array, lengths: Array) -> Any:
    valid = torch.arange(k.shape[2], device=q.device)[None] < lengths[:, None]
    w = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~valid[:, None, None], float("-inf"))
    return torch.softmax(w, -1) @ v


def sink_logits(q: Array, k: Array, v: Array, sinks: Array) -> Any:
    """A learned logit of each head joins the softmax, and is dropped."""
    s = q.shape[-2]
    w = q @ k.mT * q.shape[-1] ** -0.5
    w = w + torch.full((s, s), float("-inf"), dtype=q.dtype, device=q.device).triu(1)
    w = torch.cat([w, sinks[None, :, None, None].expand(w.shape[0], -1, s, 1)], -1)
    return torch.softmax(w, -1)[..., :-1] @ v


def talking_heads(q: Array, k: Array, v: Array, w1: Array, w2: Array) -> Any:
    s = torch.einsum("bhid,bhjd,gh->bgij", q, k, w1)
    return torch.einsum("bgij,hg,bhjd->bhid", s.softmax(-1), w2, v)


def sigmoid_attention(q: Array, k: Array, v: Array) -> Any:
    n = k.shape[-2]
    return torch.sigmoid(q @ k.mT * q.shape[-1] ** -0.5 - math.log(n)) @ v


def dilated_window(q: Array, k: Array, v: Array) -> Any:
    i = torch.arange(q.shape[-2], device=q.device)
    d = i[:, None] - i
    keep = (d >= 0) & (d < 64) & (d % 2 == 0)
    return torch.softmax((q @ k.mT * 0.125).masked_fill(~keep, -1e9), -1) @ v


def rope_ntk(x: Array) -> Any:
    """Rotation of halves, with angles that the function computes."""
    s, d = x.shape[-2:]
    inv = 1.0 / (10000.0 * 4 ** (d / (d - 2))) ** (
        torch.arange(0, d, 2, device=x.device).float() / d
    )
    a = torch.arange(s, device=x.device).float()[:, None] * inv
    a = torch.cat((a, a), -1)
    x1, x2 = x.chunk(2, -1)
    return x * a.cos() + torch.cat((-x2, x1), -1) * a.sin()


def rope_2d(x: Array, cos_h: Array, sin_h: Array, cos_w: Array, sin_w: Array) -> Any:
    """Half of the features are rotated by rows of an image, half by columns."""

    def rot(x: Array, c: Array, s: Array) -> Any:
        x1, x2 = x.chunk(2, -1)
        return torch.cat((x1 * c - x2 * s, x2 * c + x1 * s), -1)

    a, b = x.chunk(2, -1)
    return torch.cat((rot(a, cos_h[:, None], sin_h[:, None]), rot(b, cos_w, sin_w)), -1)


def cross_attention_dropout(q: Array, k: Array, v: Array, keep: Array) -> Any:
    p = torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1)
    return (p * keep / 0.9) @ v


def pooled_attention(x: Array, query: Array, key_mask: Array) -> Any:
    """One learned query attends to all positions."""
    s = x @ query
    s = s.masked_fill(key_mask == 0, -1e4)
    return (torch.softmax(s, 1)[..., None] * x).sum(1)


def gated_linear(q: Array, k: Array, v: Array, g: Array) -> Any:
    """Gated linear attention: one chunk, with sums of the gates' logarithms."""
    b = torch.cumsum(F.logsigmoid(g) / 16, dim=-2)
    a = (q * b.exp()) @ (k * (-b).exp()).mT
    return a.tril() @ v


def delta_step(state: Array, k: Array, v: Array, beta: Array) -> Any:
    pred = torch.einsum("bhd,bhde->bhe", k, state)
    return state + beta[..., None, None] * k[..., None] * (v - pred)[..., None, :]


def rwkv_step(k: Array, v: Array, aa: Array, low: Array, pp: Array, u: Array, w: Array) -> Any:
    ww = u + k
    p = torch.maximum(pp, ww)
    e1, e2 = torch.exp(pp - p), torch.exp(ww - p)
    y = (e1 * aa + e2 * v) / (e1 * low + e2)
    ww = pp + w
    p = torch.maximum(ww, k)
    e1, e2 = torch.exp(ww - p), torch.exp(k - p)
    return y, e1 * aa + e2 * v, e1 * low + e2, p


def conv_step(state: Array, x: Array, w: Array, b: Array) -> Any:
    """Mamba: a causal depthwise convolution of one new token."""
    state = torch.cat((state[..., 1:], x[..., None]), -1)
    return F.silu((state * w).sum(-1) + b), state


def causal_conv(x: Array, w: Array, b: Array) -> Any:
    """The same of a whole sequence."""
    y = F.conv1d(F.pad(x, (w.shape[-1] - 1, 0)), w, b, groups=x.shape[1])
    return F.silu(y)


def token_shift(x: Array, mix: Array, w: Array) -> Any:
    """RWKV: each token is mixed with the one before it."""
    last = F.pad(x, (0, 0, 1, -1))
    return (x * mix + last * (1 - mix)) @ w.T


def min_gru(z: Array, h: Array) -> Any:
    """minGRU of all tokens at once, by sums of logarithms."""
    log_a = -F.softplus(z)
    log_b = -F.softplus(-z) + torch.where(h >= 0, torch.log(F.relu(h) + 0.5), -F.softplus(-h))
    a = torch.cumsum(log_a, dim=1)
    return torch.exp(a + torch.logcumsumexp(log_b - a, dim=1))


def swiglu_packed(x: Array, w: Array, w_out: Array) -> Any:
    a, b = (x @ w.T).chunk(2, -1)
    return (F.silu(a) * b) @ w_out.T


def geglu(x: Array, w: Array, b: Array) -> Any:
    a, g = F.linear(x, w, b).chunk(2, dim=-1)
    return a * F.gelu(g)


def rms_gemma(x: Array, w: Array) -> Any:
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (y * (1.0 + w.float())).to(x.dtype)


def rms_gated(x: Array, z: Array, w: Array) -> Any:
    """Mamba 2: a gate, then a norm of each group."""
    x = x * F.silu(z)
    y = x.unflatten(-1, (4, -1))
    y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5)
    return y.flatten(-2) * w


def residual_norm(x: Array, r: Array, w: Array) -> Any:
    r = x + r
    return r * torch.rsqrt(r.pow(2).mean(-1, keepdim=True) + 1e-5) * w, r


def layer_scale(x: Array, y: Array, gamma: Array, keep: Array) -> Any:
    """LayerScale, with layers dropped by a given mask."""
    return x + keep[:, None, None] / 0.9 * gamma * y


def dropout_given(x: Array, mask: Array, b: Array, r: Array) -> Any:
    return F.layer_norm(r + (x + b) * mask / 0.8, x.shape[-1:])


def weight_norm(x: Array, v: Array, g: Array) -> Any:
    return x @ (g[:, None] * v / v.norm(dim=1, keepdim=True)).T


def grouped_int4(x: Array, codes: Array, scales: Array, zeros: Array) -> Any:
    """GPTQ: eight weights of four bits in a word, a scale and a zero for each group."""
    shift = torch.arange(0, 32, 4, dtype=torch.int32, device=x.device)
    q = (codes[:, None, :] >> shift[None, :, None]) & 15
    q = q.reshape(-1, codes.shape[1])
    g = q.unflatten(0, (scales.shape[0], -1))
    w = ((g - zeros[:, None]) * scales[:, None]).flatten(0, 1)
    return x @ w.to(x.dtype)


def dynamic_quant(x: Array, codes: Array, scale: Array) -> Any:
    """Activations in eight bits, with a scale for each row."""
    s = x.abs().amax(-1, keepdim=True) / 127
    q = torch.clamp(torch.round(x / s), -128, 127)
    return (q @ codes.to(x.dtype).T) * s * scale


def embed_positions(ids: Array, table: Array, pos: Array, g: Array, h: Array) -> Any:
    x = table[ids] + pos[: ids.shape[1]]
    return F.layer_norm(x, x.shape[-1:], g, h)


def position_table(x: Array) -> Any:
    """Sines of positions, written into a new array."""
    s, e = x.shape[-2:]
    pos = torch.arange(s, device=x.device).unsqueeze(1)
    div = torch.exp(torch.arange(0, e, 2, device=x.device) * (-math.log(10000.0) / e))
    pe = torch.zeros(s, e, device=x.device)
    pe[:, 0::2] = torch.sin(pos * div)
    pe[:, 1::2] = torch.cos(pos * div)
    return x + pe


def film(x: Array, gb: Array) -> Any:
    g, b = gb.chunk(2, dim=1)
    return F.relu(F.instance_norm(x) * (1 + g[..., None, None]) + b[..., None, None])


def group_norm_silu(x: Array, w: Array, b: Array) -> Any:
    return F.silu(F.group_norm(x, 8, w, b))


def top2_dense(x: Array, w_gate: Array, u_in: Array, u_out: Array) -> Any:
    """All experts compute; a mask keeps the two with the best gates."""
    p = (x @ w_gate.T).softmax(-1)
    best = p.topk(2, -1).values[:, -1:]
    p = torch.where(p >= best, p, 0.0)
    p = p / p.sum(-1, keepdim=True)
    y = torch.relu(torch.einsum("me,xef->mxf", x, u_in))
    return torch.einsum("mxf,xfe,mx->me", y, u_out, p)


CASES = (
    attn(t5_bias, QKV + ", 32 H", S, few=FEW),
    attn(
        cosine_attention,
        "W H T D, W H T D, W H T D, H 1 1, H T T",
        dict(W=512, H=6, T=64, D=32),
        few=dict(W=3, H=2, T=9, D=8),
    ),
    attn(
        swin_bias,
        "W H T D, W H T D, W H T D, R H, T T",
        dict(W=512, H=6, T=49, D=32, R=169),
        few=dict(W=3, H=2, T=9, D=8, R=25),
        own=dict(index="int64"),
        special=dict(index=below(25)),
    ),
    attn(
        document_attention,
        QKV + ", B S",
        S,
        few=FEW,
        own=dict(doc="int64"),
        special=dict(doc=lambda r, s: torch.cumsum(torch.randint(2, s, generator=r), -1)),
    ),
    attn(
        key_padding,
        QKV + ", B",
        S,
        few=FEW,
        own=dict(lengths="int64"),
        special=dict(lengths=lambda r, s: torch.randint(1, 9, s, generator=r)),
    ),
    attn(sink_logits, QKV + ", H", S, few=FEW),
    attn(talking_heads, QKV + ", H H, H H", S, few=FEW),
    attn(sigmoid_attention, QKV, S, few=FEW),
    attn(dilated_window, QKV, S, few=FEW),
    attn(rope_ntk, "B H S D", S, few=FEW),
    attn(
        rope_2d,
        "B R C D, R Q, R Q, C Q, C Q",
        dict(B=16, R=64, C=64, D=128, Q=32),
        few=dict(R=3, C=4, D=16, Q=4),
    ),
    attn(
        cross_attention_dropout,
        "B H S D, B H T D, B H T D, B H S T",
        dict(B=2, H=16, S=2048, D=64, T=77),
        few=dict(H=2, S=9, D=8, T=5),
        special=dict(keep=ones),
    ),
    attn(
        pooled_attention,
        "B S E, E, B S",
        dict(B=64, S=512, E=768),
        few=dict(S=7, E=16),
        special=dict(key_mask=ones),
    ),
    lin(
        gated_linear,
        "N S D, N S D, N S E, N S D",
        dict(N=512, S=64, D=64, E=64),
        few=dict(N=2, S=9, D=8, E=8),
    ),
    lin(
        delta_step,
        "B H D E, B H D, B H E, B H",
        dict(B=64, H=16, D=64, E=64),
        few=dict(H=2, D=8, E=8),
    ),
    lin(
        rwkv_step,
        "B E, B E, B E, B E, B E, E, E",
        dict(B=64, E=2048),
        special=dict(aa=positive, low=positive),
    ),
    lin(conv_step, "B E K, B E, E K, E", dict(B=64, E=4096, K=4), few=dict(K=4)),
    lin(causal_conv, "B E L, E 1 4, E", dict(B=4, E=2048, L=2048)),
    lin(token_shift, "B S E, E, N E", dict(B=4, S=1024, E=1024, N=1024)),
    lin(min_gru, "B S E, B S E", dict(B=4, S=512, E=1024)),
    layer(
        swiglu_packed, "M E, F E, E G", dict(M=4096, E=1024, F=5632, G=2816), few=dict(F=24, G=12)
    ),
    layer(geglu, "M E, F E, F", dict(M=4096, E=1024, F=8192), few=dict(F=24)),
    layer(rms_gemma, "M E, E", ROWS),
    layer(rms_gated, "M E, M E, E", ROWS, few=dict(E=32)),
    layer(residual_norm, "M E, M E, E", ROWS),
    layer(layer_scale, "B S E, B S E, E, B", dict(B=64, S=197, E=768), special=dict(keep=ones)),
    layer(dropout_given, "M E, M E, E, M E", ROWS, special=dict(mask=ones)),
    layer(weight_norm, "M E, N E, N", dict(M=4096, E=1024, N=1024)),
    layer(
        grouped_int4,
        "M E, P N, G N, G N",
        dict(M=16, E=4096, P=512, N=4096, G=32),
        few=dict(M=3, E=64, P=8, N=12, G=4),
        own=dict(codes="int32"),
        special=dict(codes=below(2**31 - 1), zeros=below(16), scales=positive),
    ),
    layer(
        dynamic_quant,
        "M E, N E, N",
        dict(M=512, E=4096, N=4096),
        own=dict(codes="int8"),
        special=dict(codes=lambda r, s: torch.randint(-127, 127, s, generator=r)),
        quantizes=True,
    ),
    layer(
        embed_positions,
        "B S, V E, P E, E, E",
        dict(B=16, S=512, V=32000, P=1024, E=768),
        few=dict(V=30, P=32),
        own=dict(ids="int64"),
        special=dict(ids=below(20)),
    ),
    layer(position_table, "B S E", dict(B=16, S=512, E=768), few=dict(E=24)),
    layer(film, "B C H W, B G", dict(B=8, C=128, H=64, W=64, G=256), few=dict(C=6, G=12, H=5, W=4)),
    layer(group_norm_silu, "B C H W, C, C", dict(B=8, C=128, H=64, W=64), few=dict(C=16, H=5, W=4)),
    layer(top2_dense, "M E, X E, X E F, X F E", dict(M=1024, E=512, X=8, F=1024), few=dict(X=8)),
)
