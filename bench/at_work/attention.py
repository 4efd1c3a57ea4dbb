"""Attention of many kinds, positions, caches and layers that replace attention."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F

from bench.outside.attention import causal, merged, rotated, rotated_pairs
from bench.outside.making import case
from bench.peers.case import Array

work = partial(case, "attention")
other = partial(case, "in place of attention")
QKV = "B H S D, B H S D, B H S D"
LONG = dict(B=2, H=16, S=2048, D=64)
FEW = dict(H=2, S=24, D=8)


def differential(q1: Array, k1: Array, q2: Array, k2: Array, v: Array, lam: Array) -> Array:
    """Differential attention: a second softmax is taken from the first."""
    scale = q1.shape[-1] ** -0.5
    first = torch.softmax(causal(q1 @ k1.mT * scale), -1)
    second = torch.softmax(causal(q2 @ k2.mT * scale), -1)
    y = (first - lam * second) @ v
    return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)


def query_key_norm(q: Array, k: Array, v: Array, g: Array, h: Array) -> Array:
    q, k = F.rms_norm(q, (q.shape[-1],), g), F.rms_norm(k, (k.shape[-1],), h)
    return torch.softmax(causal(q @ k.mT / math.sqrt(q.shape[-1])), -1) @ v


def alibi_window_sinks(q: Array, k: Array, v: Array, slopes: Array, sinks: Array) -> Array:
    """Distances lower the scores, a window of 256 and the first 4 are seen, sinks join the sum."""
    i = torch.arange(q.shape[2], device=q.device)
    apart = i[:, None] - i[None, :]
    s = q @ k.mT * q.shape[-1] ** -0.5 - slopes[:, None, None] * apart
    seen = (apart >= 0) & ((apart < 256) | (i[None, :] < 4))
    s = s.masked_fill(~seen, float("-inf"))
    top = torch.maximum(s.amax(-1, keepdim=True), sinks[:, None, None])
    e = torch.exp(s - top)
    return e @ v / (e.sum(-1, keepdim=True) + torch.exp(sinks[:, None, None] - top))


def absorbed_latent(q: Array, w_k: Array, q_pe: Array, c: Array, pe: Array, w_v: Array) -> Array:
    """A step of DeepSeek's latent attention: the weights of keys are part of the queries."""
    q = torch.einsum("bhd,hdc->bhc", q, w_k)
    s = torch.einsum("bhc,btc->bht", q, c) + torch.einsum("bhr,btr->bht", q_pe, pe)
    p = torch.softmax(s.float() * 0.0722, dim=-1).type_as(s)
    return torch.einsum("bhc,hcd->bhd", torch.einsum("bht,btc->bhc", p, c), w_v)


def soft_cap(q: Array, k: Array, v: Array) -> Array:
    s = 50.0 * torch.tanh(q @ k.mT * q.shape[-1] ** -0.5 / 50.0)
    return F.softmax(causal(s), dim=-1) @ v


def gated(q: Array, k: Array, v: Array, x: Array, w: Array) -> Array:
    """A sigmoid of the layer's input gates what attention gives."""
    y = merged(F.scaled_dot_product_attention(q, k, v, is_causal=True))
    return y * torch.sigmoid(F.linear(x, w))


def windows(x: Array, w: Array, bias: Array) -> Array:
    """Swin: attention inside of windows of 8 x 8 pixels, with a bias for each pair of places."""
    B, H, W, C = x.shape
    x = x.view(B, H // 8, 8, W // 8, 8, C).permute(0, 1, 3, 2, 4, 5).reshape(-1, 64, C)
    qkv = F.linear(x, w).reshape(-1, 64, 3, bias.shape[0], C // bias.shape[0])
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    p = torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5 + bias, dim=-1)
    y = (p @ v).transpose(1, 2).reshape(-1, 64, C)
    y = y.view(B, H // 8, W // 8, 8, 8, C).permute(0, 1, 3, 2, 4, 5)
    return y.reshape(B, H, W, C)


def cache_by_cat(q: Array, keys: Array, values: Array, k: Array, v: Array) -> Array:
    keys, values = torch.cat((keys, k), dim=2), torch.cat((values, v), dim=2)
    return F.scaled_dot_product_attention(q, keys, values)


def cache_by_where(
    q: Array, keys: Array, values: Array, k: Array, v: Array, place: Array
) -> tuple[Array, Array, Array]:
    at = torch.arange(keys.shape[2], device=q.device)
    keys = torch.where((at == place)[:, None], k, keys)
    values = torch.where((at == place)[:, None], v, values)
    s = q @ keys.mT * q.shape[-1] ** -0.5
    p = torch.softmax(s.masked_fill(at > place, float("-inf")), -1)
    return p @ values, keys, values


def cache_by_index(q: Array, keys: Array, values: Array, table: Array) -> Array:
    """A cache in pages: the table names those of each sequence."""
    B, H, D = q.shape
    k = keys[table].reshape(B, -1, H, D).transpose(1, 2)
    v = values[table].reshape(B, -1, H, D).transpose(1, 2)
    s = (q[:, :, None] @ k.mT) * D**-0.5
    return (torch.softmax(s, -1) @ v)[:, :, 0]


def cache_in_place(q: Array, keys: Array, values: Array, k: Array, v: Array) -> Array:
    """The last place of a copy of the cache is written, then all is read."""
    keys, values = keys.clone(), values.clone()
    keys[:, :, -1:] = k
    values[:, :, -1:] = v
    return torch.softmax(q @ keys.mT * q.shape[-1] ** -0.5, -1) @ values


def rotated_complex_by_hand(x: Array, angles: Array) -> Array:
    """Llama's: pairs of neighbours as complex numbers, written with real ones."""
    pairs = x.float().reshape(*x.shape[:-1], -1, 2)
    re, im = pairs[..., 0], pairs[..., 1]
    cos, sin = torch.cos(angles), torch.sin(angles)
    y = torch.stack((re * cos - im * sin, re * sin + im * cos), dim=-1)
    return y.flatten(-2).type_as(x)


def partly_rotated(x: Array, cos: Array, sin: Array) -> Array:
    """GPT-NeoX's: only the first features turn."""
    n = cos.shape[-1]
    turned, left = x[..., :n], x[..., n:]
    return torch.cat((rotated(turned, cos, sin), left), dim=-1)


def top_scores(q: Array, k: Array, v: Array) -> Array:
    """Only the 8 largest scores of each query count."""
    s = q @ k.mT * q.shape[-1] ** -0.5
    least = torch.topk(s, 8, dim=-1).values[..., -1:]
    return torch.softmax(s.masked_fill(s < least, float("-inf")), -1) @ v


def retention_chunk(
    q: Array, k: Array, v: Array, state: Array, decay: Array
) -> tuple[Array, Array]:
    """RetNet, a chunk: inside of it by scores, from before it by the state."""
    i = torch.arange(q.shape[2], device=q.device)
    log = torch.log(decay)[:, None, None]
    apart = i[:, None] - i[None, :]
    inside = torch.where(apart >= 0, torch.exp(log * apart), 0.0)
    y = (q @ k.mT * inside) @ v + (q @ state) * torch.exp(log * (i[:, None] + 1))
    left = torch.exp(log * (q.shape[2] - 1 - i[:, None]))
    return y, state * torch.exp(log * q.shape[2]) + (k * left).mT @ v


def state_space_step(
    x: Array, state: Array, a_log: Array, b: Array, c: Array, dt: Array, d: Array
) -> tuple[Array, Array]:
    """A step of Mamba: x (B, E), a state of N numbers for each feature."""
    dt = F.softplus(dt)
    state = state * torch.exp(dt[..., None] * -torch.exp(a_log)) + (dt * x)[..., None] * b[:, None]
    return (state * c[:, None]).sum(-1) + d * x, state


def linear_attention(q: Array, k: Array, v: Array) -> Array:
    q, k = F.elu(q) + 1, F.elu(k) + 1
    y = torch.einsum("bhnd,bhde->bhne", q, torch.einsum("bhnd,bhne->bhde", k, v))
    return y / torch.einsum("bhnd,bhd->bhn", q, k.sum(dim=2))[..., None]


def performer(q: Array, k: Array, v: Array, proj: Array) -> Array:
    """Positive random features."""

    def features(x: Array) -> Array:
        x = x * x.shape[-1] ** -0.25
        return torch.exp(x @ proj - (x * x).sum(-1, keepdim=True) / 2) * proj.shape[-1] ** -0.5

    q, k = features(q), features(k)
    return (q @ (k.mT @ v)) / (q @ k.sum(2)[..., None])


CASES = (
    work(differential, f"{QKV}, B H S D, B H S D, H 1 1", LONG, few=FEW),
    work(query_key_norm, f"{QKV}, D, D", LONG, few=FEW),
    work(alibi_window_sinks, f"{QKV}, H, H", LONG, few=FEW | dict(S=40)),
    work(absorbed_latent, "B H D, H D C, B H R, B T C, B T R, H C D",
         dict(B=8, H=16, D=128, C=512, R=64, T=4096), few=dict(H=2, C=16, D=8, R=4, T=24)),
    work(soft_cap, QKV, LONG, few=FEW),
    work(gated, f"{QKV}, B S E, E E", LONG | dict(E=1024), few=FEW | dict(E=16)),
    work(windows, "B 64 64 C, 3C C, H 64 64", {"B": 8, "C": 96, "3C": 288, "H": 3},
         few={"C": 12, "3C": 36}),
    work(cache_by_cat, "B H 1 D, B H T D, B H T D, B H 1 D, B H 1 D",
         dict(B=8, H=16, D=128, T=4095), few=FEW),
    work(cache_by_where, "B H 1 D, B H T D, B H T D, B H 1 D, B H 1 D, 1",
         dict(B=8, H=16, D=128, T=4096), few=FEW, own=dict(place="int64"),
         special=dict(place=lambda random, shape: torch.full(shape, 17))),
    work(cache_by_index, "B H D, P 64 H D, P 64 H D, B T",
         dict(B=8, H=16, D=128, P=1024, T=64), few=dict(H=2, D=8, P=8, T=3),
         own=dict(table="int64"),
         special=dict(table=lambda random, shape: torch.randint(8, shape, generator=random))),
    work(cache_in_place, "B H 1 D, B H T D, B H T D, B H 1 D, B H 1 D",
         dict(B=8, H=16, D=128, T=4096), few=FEW),
    work(rotated, "B H S D, S D, S D", LONG, few=FEW, name="rotation of halves"),
    work(rotated_pairs, "B H S D, S P, S P", LONG | dict(P=32), few=FEW | dict(P=4),
         name="rotation of neighbours"),
    work(rotated_complex_by_hand, "B H S D, S P", LONG | dict(P=32), few=FEW | dict(P=4)),
    work(partly_rotated, "B H S D, S P, S P", LONG | dict(P=32), few=FEW | dict(P=4)),
    work(top_scores, QKV, dict(B=2, H=8, S=512, D=64), few=FEW),
    other(retention_chunk, "B H S D, B H S D, B H S D, B H D D, H", dict(B=4, H=8, S=256, D=64),
          few=FEW, special=dict(
              decay=lambda random, shape: 1 - 2.0 ** (-5 - torch.arange(shape[0])))),
    other(state_space_step, "B E, B E N, E N, B N, B N, B E, E", dict(B=64, E=2048, N=16)),
    other(linear_attention, QKV, dict(B=4, H=8, S=4096, D=64), few=FEW),
    other(performer, f"{QKV}, D F", dict(B=4, H=8, S=4096, D=64, F=128), few=FEW | dict(F=16)),
)  # fmt: skip
