"""Losses, distances and steps of algorithms, as people write them."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F

from bench.outside.losses import focal
from bench.outside.making import below, case
from bench.peers.case import Array

loss = partial(case, "losses")
step = partial(case, "distances and steps")
CLASSES = dict(M=4096, N=1000)
LABELS = dict(own=dict(labels="int64"), special=dict(labels=below(16)))


def preference(z: Array, z_ref: Array, labels: Array) -> Array:
    """DPO: log-likelihoods of chosen and rejected answers, beside those of a reference."""

    def likelihood(z: Array) -> Array:
        taken = torch.log_softmax(z, -1).gather(-1, labels[..., None]).squeeze(-1)
        return taken.sum(-1)

    ratio = likelihood(z) - likelihood(z_ref)
    chosen, rejected = ratio.chunk(2)
    return -F.logsigmoid(0.1 * (chosen - rejected)).mean()


def smoothed(z: Array, labels: Array) -> Array:
    """Cross-entropy with label smoothing, by hand."""
    log_p = F.log_softmax(z, dim=-1)
    nll = -log_p.gather(-1, labels[:, None]).squeeze(-1)
    return (0.9 * nll - 0.1 * log_p.mean(dim=-1)).mean()


def smoothed_by_torch(z: Array, labels: Array) -> Array:
    return F.cross_entropy(z, labels, label_smoothing=0.1)


def clip_loss(x: Array, y: Array, log_scale: Array) -> Array:
    x, y = F.normalize(x, dim=-1), F.normalize(y, dim=-1)
    z = torch.exp(log_scale) * x @ y.T
    labels = torch.arange(x.shape[0], device=x.device)
    return (F.cross_entropy(z, labels) + F.cross_entropy(z.T, labels)) / 2


def nt_xent(x: Array, y: Array) -> Array:
    """SimCLR: two views of each image are near, all others are not."""
    z = F.normalize(torch.cat((x, y)), dim=-1)
    n = z.shape[0]
    s = z @ z.T / 0.5
    s = s.masked_fill(torch.eye(n, dtype=torch.bool, device=s.device), float("-inf"))
    target = (torch.arange(n, device=s.device) + n // 2) % n
    return F.cross_entropy(s, target)


def triplet(a: Array, p: Array, n: Array) -> Array:
    near, far = (a - p).pow(2).sum(-1), (a - n).pow(2).sum(-1)
    return F.relu(near - far + 0.2).mean()


def mixture_of_softmaxes(x: Array, w: Array, w_gate: Array) -> Array:
    """Several softmaxes over the vocabulary, weighed."""
    gate = torch.softmax(F.linear(x, w_gate), -1)
    p = torch.softmax(torch.einsum("me,kve->mkv", x, w), -1)
    return torch.log((gate[..., None] * p).sum(1) + 1e-9)


def entropy(z: Array) -> Array:
    p = torch.softmax(z, -1)
    return -(p * torch.log_softmax(z, -1)).sum(-1)


def kl(z: Array, y: Array) -> Array:
    return F.kl_div(F.log_softmax(z, -1), F.log_softmax(y, -1), reduction="batchmean",
                    log_target=True)  # fmt: skip


def huber(x: Array, y: Array) -> Array:
    d = (x - y).abs()
    return torch.where(d < 1.0, 0.5 * d**2, d - 0.5).mean()


def cosines(x: Array, y: Array) -> Array:
    return (x @ y.T) / (x.norm(dim=-1)[:, None] * y.norm(dim=-1)[None, :])


def assigned(x: Array, centers: Array) -> tuple[Array, Array]:
    """k-means: the nearest center of each point, and how far it is."""
    d = (x * x).sum(-1)[:, None] - 2 * x @ centers.T + (centers * centers).sum(-1)
    return d.argmin(-1), d.amin(-1)


def pairwise(x: Array, y: Array) -> Array:
    return ((x[:, None] - y[None]) ** 2).sum(-1).sqrt()


def pairwise_by_torch(x: Array, y: Array) -> Array:
    return torch.cdist(x, y)


def radial(x: Array, y: Array, v: Array) -> Array:
    """A sum over points, weighed by a Gaussian of their distance."""
    d = (x[:, None] - y[None]).pow(2).sum(-1)
    return torch.exp(-d / (2 * x.shape[-1])) @ v


def sinkhorn(c: Array, f: Array) -> tuple[Array, Array]:
    """One round in logarithms: potentials of rows, then of columns."""
    m, n = c.shape
    s = -c / 0.1
    g = -torch.logsumexp(s + f[:, None], dim=0) - math.log(n)
    return -torch.logsumexp(s + g[None], dim=1) - math.log(m), g


def beam(z: Array, score: Array) -> tuple[Array, Array]:
    """Beam search: the best continuations of all beams of a sentence."""
    total = score[..., None] + torch.log_softmax(z, -1)
    best, at = torch.topk(total.flatten(1), 4, dim=-1)
    return best, at


def ctc_step(alpha: Array, log_p: Array, skips: Array) -> Array:
    """One time step of CTC: stay, come from one before, or from two before where allowed."""
    one = F.pad(alpha, (1, 0), value=-1e9)[:, :-1]
    two = F.pad(alpha, (2, 0), value=-1e9)[:, :-2]
    two = torch.where(skips > 0, two, -1e9)
    return torch.logsumexp(torch.stack((alpha, one, two)), dim=0) + log_p


CASES = (
    loss(focal, "M N, M", CLASSES, **LABELS),
    loss(preference, "B S N, B S N, B S", dict(B=8, S=512, N=32000),
         few=dict(B=4, S=7, N=20), **LABELS),
    loss(smoothed, "M N, M", CLASSES, **LABELS),
    loss(smoothed_by_torch, "M N, M", CLASSES, **LABELS),
    loss(clip_loss, "M E, M E, 1", dict(M=2048, E=512)),
    loss(nt_xent, "M E, M E", dict(M=1024, E=128)),
    loss(triplet, "M E, M E, M E", dict(M=4096, E=256)),
    loss(mixture_of_softmaxes, "M E, K V E, K E", dict(M=512, E=512, K=4, V=8000),
         few=dict(M=5, E=16, V=30)),
    loss(entropy, "M N", CLASSES),
    loss(kl, "M N, M N", CLASSES),
    loss(huber, "M N, M N", CLASSES),
    step(cosines, "M E, N E", dict(M=2048, N=2048, E=512)),
    step(assigned, "M E, N E", dict(M=16384, N=256, E=64)),
    step(pairwise, "M E, N E", dict(M=1024, N=1024, E=64)),
    step(pairwise_by_torch, "M E, N E", dict(M=1024, N=1024, E=64)),
    step(radial, "M E, N E, N D", dict(M=2048, N=2048, E=8, D=16)),
    step(sinkhorn, "M N, M", dict(M=2048, N=2048)),
    step(beam, "B K V, B K", dict(B=16, K=4, V=32000), few=dict(V=50)),
    step(ctc_step, "B L, B L, B L", dict(B=64, L=401)),
)  # fmt: skip
