"""Vision, mixers, recurrent cells, aggregation and mixtures of experts."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from bench.outside.making import case
from bench.peers.case import Array, Case

STEPS = 4  # of an unrolled recurrent layer
PATCH = 16


# vision ---------------------------------------------------------------------------


def patches(x: Array, w: Array, b: Array) -> Array:
    """Pieces of an image of 16 × 16 pixels, each through one linear layer."""
    n, c, height, width = x.shape
    cut = x.reshape(n, c, height // PATCH, PATCH, width // PATCH, PATCH)
    rows = cut.permute(0, 2, 4, 1, 3, 5).reshape(n, -1, c * PATCH * PATCH)
    return F.linear(rows, w, b)


def patches_and_norm(x: Array, w: Array, b: Array, g: Array, h: Array, places: Array) -> Array:
    y = patches(x, w, b)
    return F.layer_norm(y, (y.shape[-1],), g, h) + places


def pixel_layer(x: Array, w: Array, b: Array) -> Array:
    """A convolution of one pixel: channels are mixed at every place."""
    return torch.einsum("bchw,oc->bohw", x, w) + b[:, None, None]


def pixel_layer_norm_relu(x: Array, w: Array, g: Array, h: Array, mean: Array, var: Array) -> Array:
    n, c, height, width = x.shape
    y = torch.matmul(w, x.reshape(n, c, height * width)).reshape(n, -1, height, width)
    return F.relu6(F.batch_norm(y, mean, var, g, h))


def squeeze_excite(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    means = x.mean((2, 3))
    scale = torch.sigmoid(F.linear(F.relu(F.linear(means, w1, b1)), w2, b2))
    return x * scale[:, :, None, None]


def channel_attention(x: Array, w1: Array, w2: Array) -> Array:
    """By means and by maxima, as in CBAM."""
    means, tops = x.mean((2, 3)), x.amax((2, 3))
    scores = F.relu(means @ w1.T) @ w2.T + F.relu(tops @ w1.T) @ w2.T
    return x * torch.sigmoid(scores)[..., None, None]


def shuffled(x: Array) -> Array:
    n, c, height, width = x.shape
    return x.view(n, 4, c // 4, height, width).transpose(1, 2).reshape(n, c, height, width)


def residual_norms(x: Array, y: Array, g: Array, h: Array, mean: Array, var: Array) -> Array:
    return F.relu(x + F.batch_norm(y, mean, var, g, h))


def classifier(x: Array, w: Array, b: Array) -> Array:
    return F.linear(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1), w, b).softmax(-1)


# mixers ---------------------------------------------------------------------------


def token_mixer(x: Array, g: Array, h: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    """The half of a block of MLP-Mixer that works along the tokens."""
    n = F.layer_norm(x, (x.shape[-1],), g, h).transpose(1, 2)
    return x + F.linear(F.gelu(F.linear(n, w1, b1)), w2, b2).transpose(1, 2)


def spatial_gate(x: Array, w: Array, b: Array) -> Array:
    """gMLP's unit: half of the channels, mixed along the tokens, gates the other half."""
    u, v = x.chunk(2, dim=-1)
    v = F.layer_norm(v, (v.shape[-1],))
    return u * (torch.einsum("bsc,ts->btc", v, w) + b[:, None])


def affine_mixer(x: Array, g: Array, h: Array, w: Array, scale: Array) -> Array:
    """A block of ResMLP, along the tokens."""
    return x + scale * torch.matmul(w, x * g + h)


# recurrent cells ------------------------------------------------------------------


def rnn_cell(x: Array, s: Array, w_in: Array, w_state: Array, b: Array) -> Array:
    return torch.tanh(F.linear(x, w_in) + F.linear(s, w_state, b))


def concatenated_cell(x: Array, s: Array, w: Array, b: Array) -> Array:
    return torch.tanh(F.linear(torch.cat((x, s), dim=1), w, b))


def lstm_cell(
    x: Array, s: Array, cell: Array, w_in: Array, w_state: Array, b: Array
) -> tuple[Array, Array]:
    gates = F.linear(x, w_in, b) + F.linear(s, w_state)
    i, f, g, o = gates.chunk(4, dim=1)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def gru_cell(x: Array, s: Array, w_in: Array, w_state: Array, b: Array, c: Array) -> Array:
    r1, z1, n1 = F.linear(x, w_in, b).chunk(3, 1)
    r2, z2, n2 = F.linear(s, w_state, c).chunk(3, 1)
    z = torch.sigmoid(z1 + z2)
    n = torch.tanh(n1 + torch.sigmoid(r1 + r2) * n2)
    return (1 - z) * n + z * s


def unrolled(x: Array, s: Array, w_in: Array, w_state: Array, b: Array) -> Array:
    """A few steps of a recurrent layer; x is (steps, B, inputs)."""
    states = []
    for step in range(STEPS):
        s = rnn_cell(x[step], s, w_in, w_state, b)
        states.append(s)
    return torch.stack(states)


# aggregation, experts -------------------------------------------------------------


def vlad(x: Array, u: Array, centers: Array) -> Array:
    """NetVLAD: residuals to soft clusters, normalized twice."""
    shares = torch.softmax(x @ u, dim=-1)
    sums = shares.sum(dim=-2, keepdim=True) * centers
    v = torch.matmul(shares.transpose(1, 2), x).transpose(1, 2) - sums
    return F.normalize(F.normalize(v, dim=1).flatten(1))


def vlad_batch_norm(
    x: Array, u: Array, centers: Array, g: Array, h: Array, mean: Array, var: Array
) -> Array:
    """The same with ghost clusters that are dropped, and a norm of the assignments."""
    n, length, depth = x.shape
    scores = F.batch_norm(x.reshape(-1, depth) @ u, mean, var, g, h)
    shares = torch.softmax(scores, dim=1)[:, : centers.shape[1]].view(n, length, -1)
    v = (shares.transpose(1, 2) @ x).transpose(1, 2) - shares.sum(1, keepdim=True) * centers
    return F.normalize(F.normalize(v, dim=1).reshape(n, -1))


def attention_pool(x: Array, w: Array, c: Array) -> Array:
    scores = torch.tanh(F.linear(x, w)) @ c
    return (torch.softmax(scores, dim=1)[..., None] * x).sum(1)


def masked_mean(x: Array, sign: Array) -> Array:
    kept = (sign > 0).to(x.dtype)[..., None]
    return (x * kept).sum(1) / kept.sum(1).clamp(min=1)


def experts_by_einsum(x: Array, w_gate: Array, u1: Array, u2: Array) -> Array:
    """All experts see all tokens, weighted by a softmax of the gate."""
    gates = torch.softmax(torch.einsum("td,ed->te", x, w_gate), dim=-1)
    hidden = F.gelu(torch.einsum("td,edh->teh", x, u1))
    return torch.einsum("teh,ehd,te->td", hidden, u2, gates)


def experts_by_matmul(x: Array, w_gate: Array, u1: Array, u2: Array) -> Array:
    gates = torch.softmax(x @ w_gate.T, dim=-1)
    hidden = F.gelu(torch.matmul(x[None], u1))
    return (torch.matmul(hidden, u2) * gates.T[..., None]).sum(0)


def top_two_gate(x: Array, w: Array) -> tuple[Array, Array]:
    values, experts = torch.topk(torch.softmax(F.linear(x, w), dim=-1), 2, dim=-1)
    return values / values.sum(-1, keepdim=True), experts


def factorization(x: Array) -> Array:
    """Products of all pairs of features, summed."""
    return 0.5 * (x.sum(1) ** 2 - (x**2).sum(1)).sum(-1)


VISION, MIXERS, CELLS = "vision", "mixers", "recurrent cells"
AGGREGATION = "aggregation and experts"


def _vision() -> Iterator[Case]:
    image, small = dict(B=16, C=3, H=224, W=224, K=768, E=768), dict(B=2, H=32, W=48, K=768, E=24)
    yield case(VISION, patches, "B C H W, E K, E", image, few=small)
    norm = dict(image, P=196), dict(small, P=6)
    yield case(VISION, patches_and_norm, "B C H W, E K, E, E, E, P E", norm[0], few=norm[1])
    yield case(VISION, pixel_layer, "B C H W, O C, O", dict(B=16, C=64, H=56, W=56, O=256))
    yield case(
        VISION, pixel_layer_norm_relu, "B C H W, O C, O, O, O, O",
        dict(B=16, C=96, H=57, W=55, O=192),
    )  # fmt: skip
    yield case(
        VISION, squeeze_excite, "B C H W, R C, R, C R, C", dict(B=32, C=256, H=56, W=56, R=16)
    )
    yield case(VISION, channel_attention, "B C H W, R C, C R", dict(B=16, C=128, H=63, W=65, R=8))
    yield case(VISION, shuffled, "B C H W", dict(B=16, C=240, H=28, W=28), few=dict(C=8))
    yield case(VISION, residual_norms, "B C H W, B C H W, C, C, C, C", dict(B=32, C=64, H=56, W=56))
    yield case(VISION, classifier, "B C H W, N C, N", dict(B=64, C=1024, H=7, W=7, N=1000))
    yield case(VISION, pixel_layer, "B C H W, O C, O", dict(B=4, C=64, H=56, W=56, O=128),
               dtype="float32")  # fmt: skip


def _networks() -> Iterator[Case]:
    yield case(MIXERS, token_mixer, "B S C, C, C, H S, H, S H, S", dict(B=32, S=196, C=512, H=256))
    yield case(MIXERS, spatial_gate, "B S C, S S, S", dict(B=16, S=256, C=1024), few=dict(C=32))
    yield case(MIXERS, affine_mixer, "B S C, C, C, S S, C", dict(B=32, S=196, C=384))
    cell = "B I, B H, H I, H H, H"
    yield case(CELLS, rnn_cell, cell, dict(B=256, I=1024, H=1024))
    yield case(CELLS, concatenated_cell, "B H, B H, H J, H", dict(B=256, H=1024, J=2048),
               few=dict(H=16, J=32))  # fmt: skip
    yield case(CELLS, lstm_cell, "B I, B H, B H, J I, J H, J", dict(B=64, I=512, H=1024, J=4096),
               few=dict(H=8, J=32))  # fmt: skip
    yield case(CELLS, gru_cell, "B I, B H, J I, J H, J, J", dict(B=16, I=256, H=512, J=1536),
               few=dict(H=8, J=24))  # fmt: skip
    steps = f"{STEPS} B I, B H, H I, H H, H"
    yield case(CELLS, unrolled, steps, dict(B=64, I=256, H=512))
    yield case(CELLS, lstm_cell, "B I, B H, B H, J I, J H, J", dict(B=16, I=256, H=256, J=1024),
               dtype="float32", few=dict(H=8, J=32))  # fmt: skip


def _aggregation() -> Iterator[Case]:
    of_vlad = dict(N=64, L=100, D=512, C=32)
    yield case(AGGREGATION, vlad, "N L D, D C, D C", of_vlad)
    yield case(
        AGGREGATION, vlad_batch_norm, "N L D, D G, D C, G, G, G, G", dict(of_vlad, G=48),
        few=dict(C=16, G=24),
    )  # fmt: skip
    yield case(AGGREGATION, attention_pool, "B S E, F E, F", dict(B=64, S=257, E=512, F=128))
    yield case(AGGREGATION, masked_mean, "B S E, B S", dict(B=128, S=511, E=768))
    experts = "T D, E D, E D H, E H D"
    yield case(AGGREGATION, experts_by_einsum, experts, dict(T=512, D=512, E=8, H=1024))
    yield case(AGGREGATION, experts_by_matmul, experts, dict(T=512, D=512, E=8, H=1024))
    yield case(AGGREGATION, top_two_gate, "T D, E D", dict(T=4096, D=1024, E=16))
    yield case(AGGREGATION, factorization, "B F D", dict(B=8192, F=39, D=64))


CASES = (*_vision(), *_networks(), *_aggregation())
