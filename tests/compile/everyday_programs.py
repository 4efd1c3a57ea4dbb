"""Programs as users of NumPy and of torch write them: name -> (function, arguments)."""

import math

import numpy as np

_RNG = np.random.default_rng(0)


def floats(*shape):
    return _RNG.standard_normal(shape).astype(np.float32)


def labels(count, *shape):
    return _RNG.integers(0, count, shape)


def cross_entropy(logits, classes):
    shifted = logits - logits.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -logs[np.arange(len(classes)), classes].mean()


def k_means_step(x, centers):
    near = ((x[:, None, :] - centers[None]) ** 2).sum(-1).argmin(1)
    one = (near[:, None] == np.arange(centers.shape[0])).astype(x.dtype)
    return one.T @ x / np.maximum(one.sum(0), 1)[:, None], near


def principal_step(x, v):
    centred = x - x.mean(axis=0)
    w = centred.T @ (centred @ v) / (len(x) - 1)
    return w / np.linalg.norm(w)


def masked_mean(x, mask):
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)


def dice(p, mask):
    return 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)


def convolution(x, w):
    return sum(w[i] * x[:, i : x.shape[1] - 2 + i] for i in range(3))


def confusion(found, wanted):
    classes = np.arange(5)
    return (found[:, None] == classes).astype(int).T @ (wanted[:, None] == classes).astype(int)


def correlation(x, y):
    x, y = x - x.mean(), y - y.mean()
    return (x @ y) / np.sqrt((x @ x) * (y @ y))


def adam(p, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m / (1 - 0.9**3)) / (np.sqrt(v / (1 - 0.999**3)) + 1e-8), m, v


def positions_added(x):
    place, i = np.arange(8)[:, None], np.arange(2)[None]
    angle = place / np.power(10000.0, i)
    return x + np.where(i % 2 == 0, np.sin(angle), np.cos(angle))


def layers(parameters, x):
    for p in parameters[:-1]:
        x = np.tanh(x @ p["w"] + p["b"])
    return x @ parameters[-1]["w"] + parameters[-1]["b"]


def causal(q, k, v):
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    scores = np.where(np.tril(np.ones(scores.shape[-2:], dtype=bool)), scores, -1e9)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhqk,bkhd->bqhd", e / e.sum(-1, keepdims=True), v)


IN_NUMPY = {
    "cross entropy by index": (cross_entropy, (floats(40, 10), labels(10, 40))),
    "k-means": (k_means_step, (floats(60, 5), floats(4, 5))),
    "a step to the first component": (principal_step, (floats(60, 5), floats(5))),
    "masked mean": (masked_mean, (floats(6, 5, 8), labels(2, 6, 5) > 0)),
    "dice": (dice, (abs(floats(8, 16)), labels(2, 8, 16) > 0)),
    "convolution": (convolution, (floats(7, 30), floats(3))),
    "maxima of pairs": (lambda x: np.maximum(x[:, ::2], x[:, 1::2]), (floats(7, 31)[:, 1:],)),
    "differences": (lambda x: np.diff(x, axis=1) / np.ptp(x, axis=1)[:, None], (floats(7, 9),)),
    "confusion": (confusion, (labels(5, 30), labels(5, 30))),
    "correlation": (correlation, (floats(30), floats(30))),
    "adam": (adam, (*(floats(4, 6) for _ in range(3)), abs(floats(4, 6)))),
    "positions": (positions_added, (floats(3, 8, 2),)),
    "layers in a list": (layers, ([{"w": floats(5, 7), "b": floats(7)},
                                   {"w": floats(7, 3), "b": floats(3)}], floats(9, 5))),
    "causal attention": (causal, tuple(floats(2, 16, 2, 8) for _ in range(3))),
    "an image": (lambda x: x[:, :, ::-1] / 255.0 - np.array([0.4, 0.5, 0.6]),
                 (labels(256, 2, 4, 6, 3).astype(np.uint8),)),
}  # fmt: skip


def in_torch(torch):
    """The programs that are written with torch; the last ones are layers of language models."""
    F = torch.nn.functional

    def focal(x, y):
        loss = F.binary_cross_entropy_with_logits(x, y, reduction="none")
        p = torch.sigmoid(x)
        return (0.25 * (1 - p * y - (1 - p) * (1 - y)) ** 2 * loss).mean()

    def contrastive(x, y):
        x, y = F.normalize(x, dim=-1), F.normalize(y, dim=-1)
        return F.cross_entropy(x @ y.t() / 0.07, torch.arange(x.shape[0], device=x.device))

    def group_norm(x, w, b):
        n, c, *rest = x.shape
        y = x.view(n, 3, -1)
        y = (y - y.mean(-1, keepdim=True)) * torch.rsqrt(y.var(-1, False, keepdim=True) + 1e-5)
        return y.view(n, c, *rest) * w[:, None] + b[:, None] - F.group_norm(x, 3)

    def attention(x, w_in, w_out):
        b, t, c = x.size()
        q, k, v = (z.view(b, t, 4, c // 4).transpose(1, 2) for z in (x @ w_in).split(c, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        seen = torch.tril(torch.ones(t, t)).view(1, 1, t, t)
        y = F.softmax(scores.masked_fill(seen == 0, float("-inf")), dim=-1) @ v
        return y.transpose(1, 2).contiguous().view(b, t, c) @ w_out

    def rotary(x, cos, sin):
        one, other = x[..., ::2], x[..., 1::2]
        c, s = cos[:, None], sin[:, None]
        return torch.stack((one * c - other * s, one * s + other * c), dim=-1).flatten(-2)

    def experts(x, w):
        weights, chosen = torch.topk(F.softmax(x @ w, -1), 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        return (F.one_hot(chosen, 6) * weights[..., None]).sum(-2)

    def quantized(x, w):
        scale = x.abs().amax(dim=-1, keepdim=True) / 127
        q = (x / scale).round().clamp(-128, 127).to(torch.int8)
        return (q.to(torch.int32) @ w.to(torch.int32)).float() * scale

    def patches(x):
        return F.avg_pool2d(x, 2).reshape(5, 3, 2, 2, 2, 2).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)

    one = torch.from_numpy
    return {
        "focal loss": (focal, (one(floats(8, 10)), one(labels(2, 8, 10)).float())),
        "contrastive": (contrastive, (one(floats(8, 10)), one(floats(8, 10)))),
        "group norm": (group_norm, (one(floats(2, 6, 5)), one(floats(6)), one(floats(6)))),
        "attention": (attention, (one(floats(2, 16, 24)), one(floats(24, 72)),
                                  one(floats(24, 24)))),
        "rotary": (rotary, (one(floats(2, 16, 4, 8)), one(floats(16, 4)), one(floats(16, 4)))),
        "experts": (experts, (one(floats(10, 5)), one(floats(5, 6)))),
        "quantized": (quantized, (one(floats(4, 6)), one(labels(100, 6, 3)).to(torch.int8))),
        "patches": (patches, (one(floats(5, 3, 8, 8)),)),
        "smoothed": (lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
                     (one(floats(8, 10)), one(labels(10, 8)))),
        "distances": (lambda x, y: torch.cdist(x, y).min(1), (one(floats(9, 5)),
                                                            one(floats(7, 5)))),
    }  # fmt: skip
