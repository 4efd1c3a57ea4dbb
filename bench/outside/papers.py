"""Functions of papers, as their authors publish them: objectives, steps of optimizers, numbers in
few bits, recommenders, graphs, images, states that are scanned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.outside.making import below, case
from bench.peers.case import Array, Case

SMALL_STEP = 1e-3
CHUNK = 64


# objectives -----------------------------------------------------------------------


def clip(x: Array, y: Array) -> Array:
    """CLIP: pictures find their texts, and texts their pictures."""
    x, y = F.normalize(x, dim=-1), F.normalize(y, dim=-1)
    scores = x @ y.T / 0.07
    labels = torch.arange(x.shape[0], device=x.device)
    return (F.cross_entropy(scores, labels) + F.cross_entropy(scores.T, labels)) / 2


def nt_xent(x: Array, y: Array) -> Array:
    """SimCLR: of twice as many rows, each finds its other view."""
    z = F.normalize(torch.cat((x, y)), dim=1)
    n = x.shape[0]
    itself = torch.eye(2 * n, dtype=torch.bool, device=z.device)
    scores = (z @ z.T / 0.5).masked_fill(itself, float("-inf"))
    others = torch.cat((torch.arange(n, 2 * n), torch.arange(n))).to(z.device)
    return F.cross_entropy(scores, others)


def barlow(x: Array, y: Array) -> Array:
    """Barlow Twins: features of two views correlate with themselves alone."""
    x, y = (x - x.mean(0)) / x.std(0), (y - y.mean(0)) / y.std(0)
    c = x.T @ y / x.shape[0]
    same = torch.diagonal(c)
    return (same - 1).pow(2).sum() + 0.005 * (c.pow(2).sum() - same.pow(2).sum())


def preferences(x: Array, y: Array, x_before: Array, y_before: Array) -> tuple[Array, ...]:
    """DPO: the loss and the rewards of chosen and rejected answers."""
    margins = (x - x_before) - (y - y_before)
    return -F.logsigmoid(0.1 * margins).mean(), 0.1 * (x - x_before), 0.1 * (y - y_before)


def token_log_probabilities(z: Array, labels: Array, sign: Array) -> Array:
    """The mean of those of each answer's tokens, without what is padding."""
    kept = (sign > 0)[:, 1:]
    found = torch.log_softmax(z[:, :-1], -1).gather(-1, labels[:, 1:, None]).squeeze(-1)
    return (found * kept).sum(-1) / kept.sum(-1).clamp(min=1)


def clipped_policy(now: Array, before: Array, gain: Array, value: Array, target: Array) -> Array:
    """PPO."""
    ratio = (0.1 * (now - before)).exp()
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    policy = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
    return policy + 0.5 * F.mse_loss(value, target)


def margin_of_angles(x: Array, w: Array, labels: Array) -> Array:
    """CosFace: the class that is meant has to win by a margin."""
    scores = F.linear(F.normalize(x), F.normalize(w))
    return F.cross_entropy(30 * (scores - 0.35 * F.one_hot(labels, w.shape[0])), labels)


def smoothed_labels(z: Array, labels: Array) -> Array:
    rest = 0.1 / (z.shape[-1] - 1)
    wanted = torch.full_like(z, rest).scatter_(1, labels[:, None], 0.9)
    return -(wanted * torch.log_softmax(z, -1)).sum(-1).mean()


def nearest_points(x: Array, y: Array) -> Array:
    """The Chamfer distance of two clouds of points."""
    apart = (x[:, :, None] - y[:, None]).square().sum(-1)
    return apart.min(2).values.mean() + apart.min(1).values.mean()


def structural_similarity(x: Array, y: Array) -> Array:
    """SSIM, as networks of depth use it."""
    mx, my, xx, yy, xy = (F.avg_pool2d(t, 3, 1) for t in (x, y, x * x, y * y, x * y))
    above = (2 * mx * my + 1e-4) * (2 * (xy - mx * my) + 9e-4)
    below_it = (mx**2 + my**2 + 1e-4) * (xx - mx**2 + yy - my**2 + 9e-4)
    return torch.clamp((1 - above / below_it) / 2, 0, 1).mean()


# optimizers, few bits -------------------------------------------------------------


def adam(p: Array, g: Array, m: Array, var: Array) -> tuple[Array, Array, Array]:
    m, var = 0.9 * m + 0.1 * g, 0.999 * var + 0.001 * g * g
    step = (m / (1 - 0.9**10)) / ((var / (1 - 0.999**10)).sqrt() + 1e-8)
    return p - SMALL_STEP * (step + 0.01 * p), m, var


def adafactor(g: Array, var_rows: Array, var_columns: Array) -> Array:
    squares = g * g + 1e-3
    rows = 0.9 * var_rows + 0.1 * squares.mean(-1)
    columns = 0.9 * var_columns + 0.1 * squares.mean(-2)
    return g * (rows / rows.mean(-1, keepdim=True)).rsqrt()[:, None] * columns.rsqrt()


def newton_schulz(x: Array) -> Array:
    """Muon: a step towards the nearest orthogonal matrix."""
    x = x / (x.norm() + 1e-7)
    for _ in range(2):
        a = x @ x.T
        x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
    return x


def group_weights(x: Array, packed: Array, var_scale: Array, zero: Array) -> Array:
    """A layer whose weights are pairs of 4 bits, with a scale for each 8."""
    low, high = packed & 15, (packed >> 4) & 15
    w = torch.stack((low, high), -1).flatten(-2).reshape(packed.shape[0], -1, 8).to(x.dtype)
    return x @ ((w - zero[..., None]) * var_scale[..., None]).flatten(1).T / 16


# recommenders, graphs -------------------------------------------------------------


def interactions(x: Array, y: Array, z: Array, s: Array) -> Array:
    """DLRM: the products of all pairs of features, beside the first feature."""
    t = torch.stack((x, y, z, s), 1)
    rows, columns = torch.tril_indices(4, 4, -1)
    return torch.cat((x, torch.bmm(t, t.transpose(1, 2))[:, rows, columns]), 1)


def cross_network(x: Array, w: Array, b: Array) -> Array:
    """DCN-v2."""
    y = x
    for at in range(3):
        y = x * (y @ w[at] + b[at]) + y
    return y


def graph_layer(edges: Array, x: Array, u: Array) -> Array:
    """GCN, of a matrix of edges."""
    edges = (edges > 0.5).to(x.dtype)
    degree = edges.sum(-1).clamp(min=1).rsqrt()
    return torch.relu((degree[:, None] * edges * degree) @ (x @ u))


def graph_attention(x: Array, edges: Array, u: Array, a: Array, b: Array) -> Array:
    z = x @ u
    scores = F.leaky_relu((z @ a)[:, None] + (z @ b)[None], 0.2)
    return F.elu(torch.softmax(torch.where(edges > 0, scores, -6e4), 1) @ z)


def messages(x: Array, u: Array, from_node: Array, to_node: Array) -> Array:
    """A layer of a graph given by lists of edges."""
    return torch.relu(torch.zeros_like(x @ u).index_add_(0, to_node, (x @ u)[from_node]))


# images, scans, experts -----------------------------------------------------------


def adaptive_instance_norm(x: Array, y: Array) -> Array:
    mx, my = (t.mean((2, 3), keepdim=True) for t in (x, y))
    sx, sy = ((t.var((2, 3), keepdim=True) + 1e-5).sqrt() for t in (x, y))
    return (x - mx) / sx * sy + my


def cost_volume(x: Array, y: Array) -> Array:
    """The correlations of each pixel with those around it in another image."""
    height, width = x.shape[2:]
    around = F.pad(y, (1, 1, 1, 1))
    found = [(x * around[:, :, i : i + height, j : j + width]).mean(1)
             for i in range(3) for j in range(3)]  # fmt: skip
    return torch.stack(found, 1)


def rendered(color: Array, sigma: Array, var_step: Array) -> tuple[Array, Array]:
    """NeRF: colors along each ray, by how much light is left."""
    a = 1 - torch.exp(-F.relu(sigma) * var_step)
    left = torch.cumprod(torch.cat((torch.ones_like(a[:, :1]), 1 - a + 1e-4), 1), 1)[:, :-1]
    return ((a * left)[..., None] * torch.sigmoid(color)).sum(1), (a * left).sum(1)


def state_space_chunk(x: Array, var: Array, b: Array, c: Array) -> Array:
    """Mamba-2, inside of a chunk."""
    length = x.shape[2]
    total = torch.cumsum(-var, -1)
    later = ~torch.tril(torch.ones(length, length, device=x.device, dtype=torch.bool))
    decay = (total[..., :, None] - total[..., None, :]).masked_fill(later, -math.inf).exp()
    return torch.einsum("bcln,bcsn,bcls,bcsp->bclp", c, b, decay, x)


def delta_step(s: Array, k: Array, v: Array, beta: Array) -> Array:
    """DeltaNet: a state forgets what it told of a key, and learns a new value."""
    told = torch.einsum("bhkv,bhk->bhv", s, k)
    return s + torch.einsum("bhk,bhv->bhkv", k, (v - told) * torch.sigmoid(beta)[..., None])


def shifted_squares(x: Array, u_key: Array, u_gate: Array, u_out: Array, mix: Array) -> Array:
    """The channel mixing of RWKV."""
    before = torch.cat((torch.zeros_like(x[:, :1]), x[:, :-1]), 1)
    seen = x + (before - x) * mix
    return torch.sigmoid(seen @ u_gate) * (torch.relu(seen @ u_key).square() @ u_out)


def scattered_gates(x: Array, u: Array, u_in: Array, u_out: Array) -> Array:
    """Two experts of each token, whose gates are scattered among all."""
    p = torch.softmax(x @ u, -1)
    best, at = torch.topk(p, 2, -1)
    gates = torch.zeros_like(p).scatter(-1, at, best / best.sum(-1, keepdim=True))
    hidden = F.silu(torch.einsum("td,edh->teh", x, u_in))
    return torch.einsum("teh,ehd,te->td", hidden, u_out, gates)


def radial_layer(x: Array, w: Array) -> Array:
    """A layer of a KAN by radial functions."""
    near = torch.stack([torch.exp(-(((x - c) / 0.5) ** 2)) for c in (-1.0, 0.0, 1.0)], -1)
    return torch.einsum("bik,oik->bo", near, w)


OBJECTIVES, OPTIMIZERS = "objectives of papers", "optimizers and few bits"
GRAPHS, SCANS = "recommenders and graphs", "renderers, scans, experts"


def _labels(dim: str, count: int) -> dict[str, dict[str, object]]:
    return {"special": {dim: below(count)}, "own": {dim: "int64"}}


def _objectives() -> Iterator[Case]:
    pairs = dict(M=512, K=512)
    for fn in (clip, nt_xent, barlow):
        yield case(OBJECTIVES, fn, "M K, M K", pairs)
    yield case(OBJECTIVES, preferences, "M, M, M, M", dict(M=4093))
    sizes = dict(B=4, S=512, V=8192)
    given = _labels("labels", 32)
    yield case(OBJECTIVES, token_log_probabilities, "B S V, B S, B S", sizes, few=dict(V=32),
               **given)  # fmt: skip
    yield case(OBJECTIVES, clipped_policy, "M, M, M, M, M", dict(M=8192))
    sizes = dict(M=512, K=512, N=10007)
    yield case(OBJECTIVES, margin_of_angles, "M K, N K, M", sizes, few=dict(N=37),
               **_labels("labels", 37))  # fmt: skip
    yield case(OBJECTIVES, smoothed_labels, "M N, M", dict(M=4096, N=1000), few=dict(N=37),
               **_labels("labels", 37))  # fmt: skip
    yield case(OBJECTIVES, nearest_points, "B N 3, B M 3", dict(B=8, N=1024, M=1000))
    yield case(OBJECTIVES, structural_similarity, "B 3 H W, B 3 H W", dict(B=8, H=192, W=255))


def _optimizers() -> Iterator[Case]:
    yield case(OPTIMIZERS, adam, "M N, M N, M N, M N", dict(M=4096, N=1023))
    yield case(OPTIMIZERS, adafactor, "M N, M, N", dict(M=2048, N=4096))
    yield case(OPTIMIZERS, newton_schulz, "M N", dict(M=512, N=1024))
    sizes = dict(M=16, N=4096, P=2048, G=512, K=4096)
    bits = {"special": {"packed": below(256)}, "own": {"packed": "int64"}}
    yield case(OPTIMIZERS, group_weights, "M K, N P, N G, N G", sizes,
               few=dict(P=16, G=4, K=32), **bits)  # fmt: skip


def _graphs() -> Iterator[Case]:
    yield case(GRAPHS, interactions, "B D, B D, B D, B D", dict(B=2048, D=64))
    yield case(GRAPHS, cross_network, "B D, 3 D D, 3 D", dict(B=4096, D=512))
    sizes = dict(N=1024, D=256, H=128)
    yield case(GRAPHS, graph_layer, "N N, N D, D H", sizes)
    yield case(GRAPHS, graph_attention, "N D, N N, D H, H, H", sizes)
    ends = {"special": dict.fromkeys(("from_node", "to_node"), below(16)),
            "own": dict.fromkeys(("from_node", "to_node"), "int64")}  # fmt: skip
    yield case(GRAPHS, messages, "N D, D H, E, E", dict(N=4096, D=256, H=128, E=32768),
               few=dict(N=16), **ends)  # fmt: skip


def _scans() -> Iterator[Case]:
    yield case(SCANS, adaptive_instance_norm, "B C H W, B C I J",
               dict(B=8, C=256, H=64, W=63, I=48, J=49))  # fmt: skip
    yield case(SCANS, cost_volume, "B C H W, B C H W", dict(B=4, C=64, H=64, W=97))
    yield case(SCANS, rendered, "R S 3, R S, R S", dict(R=4096, S=127))
    chunk = f"B C {CHUNK}"
    sizes = dict(B=8, C=16, N=16, P=64)
    yield case(SCANS, state_space_chunk, f"{chunk} P, {chunk}, {chunk} N, {chunk} N", sizes,
               few=dict(C=2, N=4, P=8))  # fmt: skip
    yield case(SCANS, delta_step, "B H K V, B H K, B H V, B H", dict(B=16, H=16, K=64, V=63))
    yield case(SCANS, shifted_squares, "B S D, D H, D D, H D, D",
               dict(B=4, S=511, D=512, H=2048))  # fmt: skip
    yield case(SCANS, scattered_gates, "T D, D E, E D H, E H D", dict(T=512, D=512, E=8, H=1024))
    yield case(SCANS, radial_layer, "B I, O I 3", dict(B=1024, I=256, O=257))


CASES = (*_objectives(), *_optimizers(), *_graphs(), *_scans())
