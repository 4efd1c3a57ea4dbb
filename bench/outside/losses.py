"""Losses of torch, and some that people write by hand; activations by themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from bench.outside.making import below, case
from bench.peers.case import Array, Case


def mse(x: Array, y: Array) -> Array:
    return torch.mean((x - y) ** 2)


def mse_loss(x: Array, y: Array) -> Array:
    return F.mse_loss(x, y)


def huber(x: Array, y: Array) -> Array:
    return F.smooth_l1_loss(x, y)


def log_cosh(x: Array, y: Array) -> Array:
    d = torch.abs(x - y)
    return torch.mean(d + F.softplus(-2.0 * d) - math.log(2.0))


def cross_entropy(z: Array, labels: Array) -> Array:
    return F.cross_entropy(z, labels)


def cross_entropy_of_layer(x: Array, w: Array, labels: Array) -> Array:
    return F.cross_entropy(F.linear(x, w), labels)


def cross_entropy_of_pixels(z: Array, labels: Array) -> Array:
    """Classes along axis 1."""
    return F.cross_entropy(z, labels)


def divergence(z: Array, share: Array) -> Array:
    return F.kl_div(F.log_softmax(z, -1), share, reduction="batchmean")


def distillation(student: Array, teacher: Array) -> Array:
    p = F.softmax(teacher / 4.0, dim=-1)
    return F.kl_div(F.log_softmax(student / 4.0, dim=-1), p, reduction="batchmean") * 16.0


def hinge(x: Array, sign: Array) -> Array:
    return torch.mean(torch.clamp(1 - x * sign, min=0))


def cosine_embedding(x: Array, y: Array, sign: Array) -> Array:
    return F.cosine_embedding_loss(x, y, sign)


def cosine(x: Array, y: Array) -> Array:
    return torch.mean(1 - F.cosine_similarity(x, y, dim=1))


def triplet(anchor: Array, near: Array, far: Array) -> Array:
    return F.triplet_margin_loss(anchor, near, far, margin=1.0)


def binary(z: Array, share: Array) -> Array:
    return F.binary_cross_entropy_with_logits(z, share)


def dice(z: Array, share: Array) -> Array:
    p = torch.sigmoid(z).flatten(1)
    t = share.flatten(1)
    return (1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)).mean()


def contrastive(x: Array, y: Array, labels: Array) -> Array:
    """Of pairs in a batch, as in CLIP: the classes are the positions, in some order."""
    scores = 20.0 * F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).T
    return F.cross_entropy(scores, labels)


def focal(z: Array, labels: Array) -> Array:
    losses = F.cross_entropy(z, labels, reduction="none")
    return ((1 - torch.exp(-losses)) ** 2 * losses).mean()


def normal_likelihood(x: Array, mean: Array, logs: Array) -> Array:
    return 0.5 * (logs + (x - mean) ** 2 / logs.exp()).mean()


def gelu_by_hand(x: Array) -> Array:
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x.pow(3.0))))


def softsign(x: Array) -> Array:
    return x / (1 + torch.abs(x))


def swiglu_halves(x: Array) -> Array:
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


def clamp_and_scale(x: Array, c: Array) -> Array:
    return torch.clamp(torch.round(x / c), -128, 127) * c


LOSSES, POINTWISE = "losses", "pointwise"
PAIR = "M N, M N"
OF_PAIRS: tuple[tuple[Callable[..., Array], dict[str, int]], ...] = (
    (mse, dict(M=4096, N=8191)), (mse_loss, dict(M=32768, N=128)), (huber, dict(M=4096, N=4097)),
    (log_cosh, dict(M=2048, N=2049)), (hinge, dict(M=8192, N=2048)),
    (divergence, dict(M=4096, N=8192)), (distillation, dict(M=2048, N=32000)),
    (cosine, dict(M=4096, N=1025)), (binary, dict(M=1024, N=4096)), (dice, dict(M=64, N=65536)),
)  # fmt: skip


def _losses() -> Iterator[Case]:
    for fn, sizes in OF_PAIRS:
        yield case(LOSSES, fn, PAIR, sizes)
    for fn, sizes in (
        (cross_entropy, dict(M=4096, N=1000)), (cross_entropy, dict(M=8192, N=50257)),
        (focal, dict(M=65536, N=21)),
    ):  # fmt: skip
        yield classes(fn, "M N, M", sizes)
    yield classes(cross_entropy_of_layer, "M K, N K, M", dict(M=2048, K=1024, N=32000))
    yield classes(cross_entropy_of_pixels, "B N X Y, B X Y", dict(B=16, N=21, X=127, Y=129))
    yield classes(contrastive, "N K, N K, N", dict(N=4096, K=512))
    yield case(LOSSES, cosine_embedding, "M N, M N, M", dict(M=4096, N=768))
    yield case(LOSSES, triplet, "M N, M N, M N", dict(M=8192, N=512))
    yield case(LOSSES, normal_likelihood, "M N, M N, M N", dict(M=2048, N=4095))
    yield case(LOSSES, mse, PAIR, dict(M=4096, N=4096), dtype="float32")
    yield classes(cross_entropy, "M N, M", dict(M=4096, N=4096), dtype="float32")


def classes(
    fn: Callable[..., Array], dims: str, sizes: dict[str, int], *, dtype: str = "float16"
) -> Case:
    """A loss whose ``labels`` are below N; small ones are below the N of a dry run."""
    own, special = dict(labels="int64"), dict(labels=below(8))
    return case(LOSSES, fn, dims, sizes, dtype=dtype, own=own, special=special, few=dict(N=24))


def _pointwise() -> Iterator[Case]:
    yield case(POINTWISE, gelu_by_hand, "M N", dict(M=8192, N=8191))
    yield case(POINTWISE, softsign, "A B C", dict(A=63, B=65, C=4097))
    yield case(POINTWISE, swiglu_halves, "B S N", dict(B=8, S=1025, N=11008), few=dict(N=32))
    yield case(POINTWISE, clamp_and_scale, "M N, M 1", dict(M=4096, N=4096), quantizes=True)
    yield case(POINTWISE, gelu_by_hand, "M N", dict(M=2048, N=4096), dtype="float32")


CASES = (*_losses(), *_pointwise())
