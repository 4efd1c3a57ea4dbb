"""Vision and losses, as people write them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from bench.outside.making import below, case
from bench.peers.case import Array

vision = partial(case, "vision")
loss = partial(case, "losses")
S = dict(B=2, H=16, S=2048, D=64)
CL = dict(M=4096, N=1000)
LAB = dict(own=dict(labels="int64"), special=dict(labels=below(16)))
ones = below(2)


def boxes(random: Any, shape: tuple[int, ...]) -> Array:
    """Corners in order."""
    return torch.cumsum(torch.rand(shape, generator=random), -1)


def iou(a: Array, b: Array) -> Any:
    tl = torch.maximum(a[:, None, :2], b[None, :, :2])
    br = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    wh = (br - tl).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return inter / (area_a[:, None] + area_b - inter)


def giou_loss(a: Array, b: Array) -> Any:
    x1, y1, x2, y2 = a.unbind(-1)
    u1, v1, u2, v2 = b.unbind(-1)
    iw = (torch.min(x2, u2) - torch.max(x1, u1)).clamp(0)
    ih = (torch.min(y2, v2) - torch.max(y1, v1)).clamp(0)
    inter = iw * ih
    union = (x2 - x1) * (y2 - y1) + (u2 - u1) * (v2 - v1) - inter
    hull = (torch.max(x2, u2) - torch.min(x1, u1)) * (torch.max(y2, v2) - torch.min(y1, v1))
    return (1 - inter / (union + 1e-7) + (hull - union) / (hull + 1e-7)).mean()


def matching_cost(z: Array, box: Array, classes: Array, target: Array) -> Any:
    """DETR: what it costs to match each query with each target."""
    p = z.softmax(-1)
    cost_class = -p[:, :, classes]
    cost_box = (box[:, :, None] - target).abs().sum(-1)
    return cost_class + 5 * cost_box


def window_shift(x: Array) -> Any:
    """Swin: a rolled image in windows of 7 x 7."""
    b, h, w, c = x.shape
    x = torch.roll(x, shifts=(-3, -3), dims=(1, 2))
    x = x.view(b, h // 7, 7, w // 7, 7, c)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 49, c)


def patch_merge(x: Array, g: Array, h: Array, w: Array) -> Any:
    x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
    return F.layer_norm(x, x.shape[-1:], g, h) @ w.T


def sobel(x: Array) -> Any:
    gx = x[:, :, 2:] - x[:, :, :-2]
    gx = gx[:, :-2] + 2 * gx[:, 1:-1] + gx[:, 2:]
    gy = x[:, 2:] - x[:, :-2]
    gy = gy[:, :, :-2] + 2 * gy[:, :, 1:-1] + gy[:, :, 2:]
    return torch.sqrt(gx**2 + gy**2)


def volume_render(sigma: Array, rgb: Array, delta: Array) -> Any:
    """NeRF: colours along a ray, weighed by what is not yet hidden."""
    alpha = 1 - torch.exp(-F.relu(sigma) * delta.abs())
    t = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
    w = alpha * t
    return (w[..., None] * torch.sigmoid(rgb)).sum(1), w


def ssim(x: Array, y: Array) -> Any:
    mx, my = F.avg_pool2d(x, 3, 1), F.avg_pool2d(y, 3, 1)
    vx = F.avg_pool2d(x * x, 3, 1) - mx**2
    vy = F.avg_pool2d(y * y, 3, 1) - my**2
    vxy = F.avg_pool2d(x * y, 3, 1) - mx * my
    return (
        (2 * mx * my + 1e-2) * (2 * vxy + 3e-2) / ((mx**2 + my**2 + 1e-2) * (vx + vy + 3e-2))
    ).mean()


def ppo(logp: Array, old: Array, adv: Array, value: Array, ret: Array, ent: Array) -> Any:
    ratio = (logp - old).exp()
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    pg = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
    return pg + 0.5 * (value - ret).pow(2).mean() - 0.01 * ent.mean()


def grpo(logp: Array, old: Array, ref: Array, reward: Array, mask: Array) -> Any:
    """Advantages within a group of answers, and a distance to a reference."""
    adv = (reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)
    ratio = torch.exp(logp - old)
    kl = torch.exp(ref - logp) - (ref - logp) - 1
    obj = torch.min(ratio * adv[..., None], ratio.clamp(0.8, 1.2) * adv[..., None]) - 0.04 * kl
    return -((obj * mask).sum(-1) / mask.sum(-1).clamp(min=1)).mean()


def z_loss(z: Array, labels: Array) -> Any:
    lse = torch.logsumexp(z.float(), -1)
    nll = lse - z.float().gather(-1, labels[:, None]).squeeze(-1)
    return (nll + 1e-4 * lse**2).mean()


def masked_ce(z: Array, labels: Array) -> Any:
    """Cross-entropy that leaves a label out, by hand."""
    keep = labels != 3
    lp = torch.log_softmax(z, -1)
    nll = -lp.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return (nll * keep).sum() / keep.sum().clamp(min=1)


def distillation(z: Array, t: Array, labels: Array) -> Any:
    soft = F.kl_div(F.log_softmax(z / 2, -1), F.softmax(t / 2, -1), reduction="batchmean") * 4
    return 0.5 * soft + 0.5 * F.cross_entropy(z, labels)


def gaussian_kl(mu: Array, logvar: Array, mu2: Array, logvar2: Array) -> Any:
    return (
        0.5
        * (logvar2 - logvar + (logvar.exp() + (mu - mu2) ** 2) / logvar2.exp() - 1).sum(-1).mean()
    )


def gaussian_nll(mean: Array, logvar: Array, y: Array) -> Any:
    return 0.5 * (logvar + (y - mean) ** 2 / logvar.exp() + math.log(2 * math.pi)).mean()


def dice(z: Array, y: Array) -> Any:
    p = torch.sigmoid(z).flatten(1)
    y = y.flatten(1)
    return 1 - ((2 * (p * y).sum(1) + 1) / (p.sum(1) + y.sum(1) + 1)).mean()


def barlow(x: Array, y: Array) -> Any:
    x = (x - x.mean(0)) / x.std(0)
    y = (y - y.mean(0)) / y.std(0)
    c = x.T @ y / x.shape[0]
    on = (torch.diagonal(c) - 1).pow(2).sum()
    off = (c - torch.diag(torch.diagonal(c))).pow(2).sum()
    return on + 0.005 * off


def vicreg_variance(x: Array) -> Any:
    std = torch.sqrt(x.var(dim=0) + 1e-4)
    return F.relu(1 - std).mean()


def arcface(x: Array, w: Array, labels: Array) -> Any:
    c = (F.normalize(x) @ F.normalize(w).T).clamp(-1 + 1e-7, 1 - 1e-7)
    hot = F.one_hot(labels, w.shape[0])
    t = torch.cos(torch.acos(c) + 0.5)
    return F.cross_entropy(64 * torch.where(hot == 1, t, c), labels)


def pairwise_rank(s: Array, y: Array) -> Any:
    """RankNet: pairs of documents in a wrong order."""
    d = s[:, :, None] - s[:, None, :]
    win = (y[:, :, None] > y[:, None, :]).to(s.dtype)
    return (F.softplus(-d) * win).sum((1, 2)).mean()


def hinge_gan(real: Array, fake: Array) -> Any:
    return F.relu(1 - real).mean() + F.relu(1 + fake).mean()


def quantile(y: Array, pred: Array, q: Array) -> Any:
    e = y[:, None] - pred
    return torch.maximum(q * e, (q - 1) * e).mean()


CASES = (
    vision(iou, "M 4, N 4", dict(M=2048, N=512), special=dict(a=boxes, b=boxes)),
    vision(giou_loss, "M 4, M 4", dict(M=65536), special=dict(a=boxes, b=boxes)),
    vision(
        matching_cost,
        "B Q N, B Q 4, T, T 4",
        dict(B=8, Q=300, N=91, T=40),
        few=dict(T=5),
        own=dict(classes="int64"),
        special=dict(classes=below(16)),
    ),
    vision(window_shift, "B H W C", dict(B=16, H=56, W=56, C=96), few=dict(H=14, W=21, C=6)),
    vision(
        patch_merge,
        "B H W C, F, F, N F",
        dict(B=16, H=56, W=56, C=96, F=384, N=192),
        few=dict(H=6, W=8, C=6, F=24),
    ),
    vision(sobel, "B H W", dict(B=16, H=512, W=512)),
    vision(volume_render, "R S, R S 3, R S", dict(R=16384, S=128)),
    vision(ssim, "B C H W, B C H W", dict(B=16, C=3, H=256, W=256), few=dict(H=9, W=8)),
    loss(ppo, "M, M, M, M, M, M", dict(M=65536)),
    loss(
        grpo,
        "B G S, B G S, B G S, B G, B G S",
        dict(B=16, G=8, S=1024),
        few=dict(G=4),
        special=dict(mask=ones),
    ),
    loss(z_loss, "M N, M", CL, **LAB),
    loss(masked_ce, "M N, M", CL, **LAB),
    loss(distillation, "M N, M N, M", CL, **LAB),
    loss(gaussian_kl, "M N, M N, M N, M N", CL),
    loss(gaussian_nll, "M N, M N, M N", CL),
    loss(dice, "B C H W, B C H W", dict(B=16, C=4, H=256, W=256), special=dict(y=ones)),
    loss(barlow, "M E, M E", dict(M=2048, E=512), few=dict(M=17)),
    loss(vicreg_variance, "M E", dict(M=2048, E=2048)),
    loss(arcface, "M E, N E, M", dict(M=512, E=512, N=10000), few=dict(N=20), **LAB),
    loss(pairwise_rank, "B L, B L", dict(B=256, L=128), few=dict(L=9)),
    loss(hinge_gan, "M, M", dict(M=65536)),
    loss(quantile, "M, M Q, Q", dict(M=65536, Q=9)),
)
