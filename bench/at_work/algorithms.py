"""Distances, steps of algorithms and updates of weights, as people write them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from bench.outside.making import below, case
from bench.peers.case import Array

step = partial(case, "distances and steps")
update = partial(case, "updates of weights")
ones = below(2)


def positive(random: Any, shape: tuple[int, ...]) -> Array:
    """Numbers between 1/2 and 3/2."""
    return torch.rand(shape, generator=random) + 0.5


def vq_nearest(x: Array, book: Array) -> Any:
    d = x.pow(2).sum(1, keepdim=True) - 2 * x @ book.T + book.pow(2).sum(1)
    at = d.argmin(1)
    q = book[at]
    return x + (q - x).detach(), at, F.mse_loss(q, x)


def kernel_density(x: Array, data: Array, h: Array) -> Any:
    d = torch.cdist(x, data) ** 2
    return torch.logsumexp(-d / (2 * h**2), dim=1) - math.log(data.shape[0])


def tsne(y: Array) -> Any:
    d = torch.cdist(y, y).pow(2)
    q = 1 / (1 + d)
    q = q * (1 - torch.eye(y.shape[0], device=y.device))
    return q / q.sum()


def crf_step(alpha: Array, trans: Array, emit: Array, mask: Array) -> Any:
    nxt = torch.logsumexp(alpha[:, :, None] + trans, dim=1) + emit
    return torch.where(mask[:, None] > 0, nxt, alpha)


def crf_forward(emit: Array, trans: Array) -> Any:
    """A conditional random field over six steps, by a loop."""
    alpha = emit[:, 0]
    for t in range(1, emit.shape[1]):
        alpha = torch.logsumexp(alpha.unsqueeze(2) + trans, dim=1) + emit[:, t]
    return torch.logsumexp(alpha, dim=1)


def gae(reward: Array, value: Array, done: Array) -> Any:
    """Advantages from the last step on, by a loop."""
    out, last = [], torch.zeros_like(reward[:, 0])
    for t in reversed(range(reward.shape[1])):
        live = 1 - done[:, t]
        delta = reward[:, t] + 0.99 * value[:, t + 1] * live - value[:, t]
        last = delta + 0.99 * 0.95 * live * last
        out.append(last)
    return torch.stack(out[::-1], 1)


def histogram(x: Array, values: Array) -> Any:
    at = torch.clamp((x * 4 + 8).long(), 0, 15)
    hot = F.one_hot(at, 16).to(values.dtype)
    return hot.T @ values


def gumbel(z: Array, u: Array) -> Any:
    y = torch.softmax((z - torch.log(-torch.log(u.abs() * 0.1 + 0.01))) / 0.5, -1)
    hard = F.one_hot(y.argmax(-1), y.shape[-1]).to(y.dtype)
    return hard - y.detach() + y


def min_p(z: Array) -> Any:
    p = torch.softmax(z / 0.7, -1)
    keep = p >= 0.1 * p.amax(-1, keepdim=True)
    p = torch.where(keep, p, 0)
    return p / p.sum(-1, keepdim=True)


def top_p(z: Array) -> Any:
    p, at = torch.sort(torch.softmax(z, -1), descending=True)
    keep = p.cumsum(-1) - p < 0.9
    p = torch.where(keep, p, 0.0)
    return p / p.sum(-1, keepdim=True), at


def penalty(z: Array, seen: Array) -> Any:
    """Tokens that were seen lose score."""
    return torch.where(seen > 0, torch.where(z > 0, z / 1.2, z * 1.2), z)


def ddim_step(x: Array, eps: Array, a: Array, b: Array) -> Any:
    a, b = a[:, None, None, None], b[:, None, None, None]
    x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
    return b.sqrt() * x0 + (1 - b).sqrt() * eps


def guidance(e: Array) -> Any:
    u, c = e.chunk(2)
    g = u + 7.5 * (c - u)
    dims = list(range(1, g.ndim))
    s = c.std(dim=dims, keepdim=True) / g.std(dim=dims, keepdim=True)
    return 0.7 * g * s + 0.3 * g


def kalman(x: Array, p: Array, z: Array, f: Array, r: Array) -> Any:
    x = x @ f.T
    p = f @ p @ f.mT
    k = p[:, :, 0] / (p[:, 0, 0] + r)[:, None]
    return x + k * (z - x[:, 0])[:, None], p - k[:, :, None] * p[:, None, 0]


def pagerank(a: Array, x: Array) -> Any:
    w = a / a.sum(0, keepdim=True).clamp(min=1)
    return 0.85 * w @ x + 0.15 / x.shape[0]


def gcn(a: Array, x: Array, w: Array) -> Any:
    a = a + torch.eye(a.shape[0], device=a.device)
    d = a.sum(1).rsqrt()
    return F.relu((d[:, None] * a * d[None]) @ x @ w.T)


def gat(x: Array, w: Array, a1: Array, a2: Array, adj: Array) -> Any:
    h = x @ w.T
    e = F.leaky_relu((h @ a1)[:, None] + (h @ a2)[None], 0.2)
    return F.elu(torch.softmax(e.masked_fill(adj == 0, -9e15), 1) @ h)


def adamw(p: Array, g: Array, m: Array, v: Array) -> Any:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    mh, vh = m / (1 - 0.9**10), v / (1 - 0.999**10)
    return p * (1 - 1e-3) - 1e-3 * mh / (vh.sqrt() + 1e-8), m, v


def lion(p: Array, g: Array, m: Array) -> Any:
    u = torch.sign(0.9 * m + 0.1 * g)
    return p - 1e-4 * (u + 0.1 * p), torch.lerp(g, m, 0.99)


def muon(g: Array) -> Any:
    x = g / (g.norm() + 1e-7)
    a = x @ x.T
    b = -4.7750 * a + 2.0315 * a @ a
    return 3.4445 * x + b @ x


def adafactor(p: Array, g: Array, row: Array, col: Array) -> Any:
    sq = g**2 + 1e-30
    row = 0.99 * row + 0.01 * sq.mean(-1)
    col = 0.99 * col + 0.01 * sq.mean(-2)
    u = g * (row / row.mean()).rsqrt()[:, None] * col.rsqrt()
    u = u / (u.pow(2).mean().sqrt()).clamp(min=1.0)
    return p - 1e-3 * u, row, col


def clipped(g: Array, h: Array) -> Any:
    n = torch.sqrt(g.square().sum() + h.square().sum())
    c = (1.0 / (n + 1e-6)).clamp(max=1.0)
    return g * c, h * c


def ema(avg: Array, p: Array) -> Any:
    return torch.lerp(avg, p, 0.001)


CASES = (
    step(vq_nearest, "M E, N E", dict(M=16384, E=64, N=512)),
    step(kernel_density, "M E, N E, 1", dict(M=4096, E=8, N=4096), special=dict(h=positive)),
    step(tsne, "M E", dict(M=2048, E=2)),
    step(crf_step, "B T, T T, B T, B", dict(B=256, T=64), special=dict(mask=ones)),
    step(crf_forward, "B L T, T T", dict(B=64, L=6, T=32), few=dict(L=6)),
    step(
        gae, "B L, B K, B L", dict(B=4096, L=16, K=17), few=dict(L=6, K=7), special=dict(done=ones)
    ),
    step(histogram, "M, M E", dict(M=16384, E=64)),
    step(gumbel, "M N, M N", dict(M=4096, N=256)),
    step(min_p, "M N", dict(M=64, N=32000)),
    step(top_p, "M N", dict(M=64, N=1000)),
    step(penalty, "M N, M N", dict(M=64, N=32000), special=dict(seen=ones)),
    step(
        ddim_step,
        "B C H W, B C H W, B, B",
        dict(B=16, C=4, H=64, W=64),
        special=dict(
            a=lambda r, s: torch.rand(s, generator=r) * 0.9 + 0.05,
            b=lambda r, s: torch.rand(s, generator=r) * 0.9 + 0.05,
        ),
    ),
    step(guidance, "B C H W", dict(B=16, C=4, H=64, W=64), few=dict(B=4)),
    step(
        kalman, "B D, B D D, B, D D, 1", dict(B=65536, D=4), few=dict(B=3), special=dict(r=positive)
    ),
    step(pagerank, "N N, N", dict(N=4096), special=dict(a=ones)),
    step(gcn, "N N, N E, F E", dict(N=2048, E=256, F=256), special=dict(a=ones)),
    step(gat, "N E, F E, F, F, N N", dict(N=2048, E=256, F=64), special=dict(adj=ones)),
    update(adamw, "M N, M N, M N, M N", dict(M=4096, N=4096), special=dict(v=positive)),
    update(lion, "M N, M N, M N", dict(M=4096, N=4096)),
    update(muon, "M N", dict(M=1024, N=4096)),
    update(
        adafactor, "M N, M N, M, N", dict(M=4096, N=4096), special=dict(row=positive, col=positive)
    ),
    update(clipped, "M N, P", dict(M=4096, N=4096, P=4096)),
    update(ema, "M N, M N", dict(M=4096, N=4096)),
)
