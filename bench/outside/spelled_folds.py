"""Folds, norms, softmax, masks beside sums, and shifted arrays, each in three ways."""

from __future__ import annotations

from bench.outside.spelling import Draw, Spelled, spelled


def softmax_of_columns(draw: Draw) -> Spelled:
    """Softmax along the first axis."""
    m, n = draw.size(512, 1024, 2048), draw.size(1000, 1024, 4096)
    return spelled(
        {"x": (m, n)},
        "torch.softmax(x, 0)",
        "t = np.exp(x - x.max(0))\nt / t.sum(0)",
        "torch.softmax(x.T, -1).T",
    )


def softmax_in_the_middle(draw: Draw) -> Spelled:
    """Softmax along a middle axis."""
    b, c, n = draw.few(16, 32), draw.few(64, 150), draw.size(1024, 3136)
    return spelled(
        {"x": (b, c, n)},
        "torch.softmax(x, dim=1)",
        "t = np.exp(x - np.max(x, axis=1, keepdims=True))\nt / np.sum(t, axis=1, keepdims=True)",
        "t = (x - x.amax(1, keepdim=True)).exp()\nt / torch.einsum('bcn->bn', t)[:, None]",
    )


def log_softmax(draw: Draw) -> Spelled:
    """Log softmax of rows."""
    m, n = draw.size(1024, 4096), draw.size(1000, 8192)
    return spelled(
        {"x": (m, n)},
        "F.log_softmax(x, -1)",
        "x - torch.logsumexp(x, -1, keepdim=True)",
        "t = x - x.max(-1, keepdims=True)\nt - np.log(np.exp(t).sum(-1, keepdims=True))",
    )


def logsumexp(draw: Draw) -> Spelled:
    """The logarithm of a sum of exponentials, along either axis."""
    m, n, axis = draw.size(1024, 4096), draw.size(1000, 4096), draw.few(0, 1)
    return spelled(
        {"x": (m, n)},
        f"torch.logsumexp(x, {axis})",
        f"t = x.max({axis})\nnp.log(np.exp(x - np.expand_dims(t, {axis})).sum({axis})) + t",
        f"torch.log(torch.exp(x - x.amax({axis}, keepdim=True)).sum({axis})) + x.amax({axis})",
    )


def layer_norm(draw: Draw) -> Spelled:
    """Layer norm of rows, with a scale and a shift."""
    m, n = draw.size(2048, 8192), draw.size(768, 1024, 4096)
    return spelled(
        {"x": (m, n), "g": (n,), "b": (n,)},
        f"F.layer_norm(x, ({n},), g, b)",
        "t = x - x.mean(-1, keepdims=True)\n"
        "t / np.sqrt((t * t).mean(-1, keepdims=True) + 1e-5) * g + b",
        "v, m = torch.var_mean(x, -1, unbiased=False, keepdim=True)\n"
        "(x - m) * torch.rsqrt(v + 1e-5) * g + b",
    )


def channel_norm(draw: Draw) -> Spelled:
    """Layer norm of channels in the middle."""
    b, c, n = draw.few(8, 16), draw.few(64, 96, 128), draw.size(1024, 3136)
    return spelled(
        {"x": (b, c, n), "g": (c,), "b": (c,)},
        f"F.layer_norm(x.transpose(1, 2), ({c},), g, b).transpose(1, 2)",
        "t = x - x.mean(1, keepdims=True)\n"
        "t / np.sqrt((t**2).mean(1, keepdims=True) + 1e-5) * g[:, None] + b[:, None]",
        "v = x.var(1, unbiased=False, keepdim=True)\n"
        "(x - x.mean(1, keepdim=True)) / (v + 1e-5).sqrt() * g[:, None] + b[:, None]",
    )


def group_norm(draw: Draw) -> Spelled:
    """Norms of groups of channels."""
    b, g, c, n = draw.few(8, 16), draw.few(8, 32), draw.few(4, 8), draw.size(1024, 3136)
    shape = f"({b}, {g * c}, {n})"
    return spelled(
        {"x": (b, g * c, n)},
        f"F.group_norm(x, {g})",
        f"t = x.reshape({b}, {g}, {c * n})\nt = t - t.mean(-1, keepdims=True)\n"
        f"(t / np.sqrt((t * t).mean(-1, keepdims=True) + 1e-5)).reshape{shape}",
        f"t = x.view({b}, {g}, {c}, {n})\n"
        "v, m = torch.var_mean(t, (2, 3), unbiased=False, keepdim=True)\n"
        f"((t - m) * torch.rsqrt(v + 1e-5)).view{shape}",
    )


def rms_norm(draw: Draw) -> Spelled:
    """Root mean squares of rows, in front of a product."""
    m, k, n = draw.size(2048, 4096), draw.size(1024, 2048), draw.size(1024, 2048)
    return spelled(
        {"x": (m, k), "g": (k,), "w": (k, n)},
        f"F.rms_norm(x, ({k},), g, 1e-6) @ w",
        "(x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-6) * g) @ w",
        "t = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)\n"
        "torch.einsum('mk,kn->mn', g * t, w)",
    )


def several_axes(draw: Draw) -> Spelled:
    """A sum over the first and the last axis."""
    a, b, c = draw.few(16, 64), draw.size(256, 512, 1000), draw.size(1024, 3136)
    return spelled(
        {"x": (a, b, c)},
        "np.einsum('abc->b', x)",
        "x.sum((0, 2))",
        f"x.permute(1, 0, 2).reshape({b}, {a * c}).sum(1)",
    )


def by_channel(draw: Draw) -> Spelled:
    """A scale for each channel."""
    b, c, h = draw.few(16, 32), draw.size(64, 100, 256), draw.size(28, 56)
    return spelled(
        {"x": (b, c, h, h), "s": (c,)},
        "np.einsum('bchw,c->bchw', x, s)",
        "x * s[:, None, None]",
        "(x.permute(0, 2, 3, 1) * s).permute(0, 3, 1, 2)",
    )


def masked_mean(draw: Draw) -> Spelled:
    """Means over the first positions of each sequence."""
    b, s, d = draw.few(16, 32, 64), draw.size(512, 1024), draw.size(256, 768)
    return spelled(
        {"x": (b, s, d), "n": (b, 1)},
        f"m = np.arange({s}) < n\nnp.where(m[..., None], x, 0).sum(1) / m.sum(1)[:, None]",
        f"m = (torch.arange({s}) < n).to(x.dtype)\n"
        "torch.einsum('bsd,bs->bd', x, m) / m.sum(1, keepdim=True)",
        f"m = (torch.arange({s})[None, :, None] < n[..., None]).to(x.dtype)\n"
        "(x * m).sum(1) / m.sum(1)",
    )


def triangular_product(draw: Draw) -> Spelled:
    """A product of which a triangle counts, under another product."""
    b, s, d = draw.few(4, 16), draw.size(512, 1024), draw.few(64, 128)
    return spelled(
        {"q": (b, s, d), "k": (b, s, d), "v": (b, s, d)},
        "torch.tril(q @ k.mT) @ v",
        f"i = np.arange({s})\nnp.where(i <= i[:, None], np.einsum('bqd,bkd->bqk', q, k), 0) @ v",
        ("((q @ k.transpose(1, 2)) * mask) @ v", f"mask = torch.ones({s}, {s}).tril().half()"),
    )


def rolled(draw: Draw) -> Spelled:
    """Differences of neighbours in a ring."""
    m, n = draw.size(2048, 4096), draw.size(1000, 1024, 4096)
    k = draw.few(1, 3)
    return spelled(
        {"x": (m, n)},
        f"x - np.roll(x, {k}, 1)",
        f"x - torch.cat([x[:, -{k}:], x[:, :-{k}]], 1)",
        f"x - F.pad(x[None], ({k}, 0), mode='circular')[0, :, :{n}]",
    )


def shifted(draw: Draw) -> Spelled:
    """A sum with the position before, and zeros in front."""
    b, s, d = draw.few(8, 16), draw.size(1024, 2048), draw.size(256, 768)
    return spelled(
        {"x": (b, s, d)},
        "x + F.pad(x, (0, 0, 1, 0))[:, :-1]",
        "x + np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], 1)",
        f"x + torch.where(torch.arange({s})[:, None] >= 1, torch.roll(x, 1, 1), 0)",
    )


def taps(draw: Draw) -> Spelled:
    """A causal filter of each channel."""
    b, s, d = draw.few(8, 16), draw.size(1024, 2048), draw.size(256, 768)
    return spelled(
        {"x": (b, s, d), "w": (3, d)},
        f"t = np.pad(x, ((0, 0), (2, 0), (0, 0)))\n"
        f"t[:, :{s}] * w[0] + t[:, 1:{s + 1}] * w[1] + t[:, 2:] * w[2]",
        f"t = F.pad(x, (0, 0, 2, 0))\nsum(t[:, i : i + {s}] * w[i] for i in range(3))",
        f"F.conv1d(x.mT, w.T[:, None], padding=2, groups={d})[..., :{s}].mT",
    )


def pooled(draw: Draw) -> Spelled:
    """Means of pieces of rows."""
    m, n, k = draw.size(2048, 4096), draw.size(1024, 4096), draw.few(2, 4)
    n = n * k
    return spelled(
        {"x": (m, n)},
        f"x.reshape({m}, {n // k}, {k}).mean(-1)",
        f"F.avg_pool1d(x, {k})",
        f"({' + '.join(f'x[:, {i}::{k}]' for i in range(k))}) / {k}",
    )


def normalized(draw: Draw) -> Spelled:
    """Similarities of rows of length one."""
    m, n, d = draw.size(1024, 2048), draw.size(1024, 2048), draw.size(256, 512)
    return spelled(
        {"x": (m, d), "y": (n, d)},
        "F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).T",
        "x, y = (t / np.maximum(np.sqrt((t * t).sum(-1, keepdims=True)), 1e-12) for t in (x, y))\n"
        "np.einsum('md,nd->mn', x, y)",
        "x, y = (t / t.norm(dim=-1, keepdim=True).clamp(min=1e-12) for t in (x, y))\n"
        "torch.matmul(x, y.t())",
    )


def excited(draw: Draw) -> Spelled:
    """Channels weighted by what their means say."""
    b, c, h, r = draw.few(16, 32), draw.size(128, 256), draw.size(14, 28), 16
    return spelled(
        {"x": (b, c, h, h), "a": (c, r), "w": (r, c)},
        "x * torch.sigmoid(torch.relu(x.mean((2, 3)) @ a) @ w)[:, :, None, None]",
        f"t = F.adaptive_avg_pool2d(x, 1).flatten(1)\n"
        f"x * torch.sigmoid(torch.relu(t @ a) @ w).view({b}, {c}, 1, 1)",
        "t = np.maximum(np.einsum('bchw->bc', x) / " + str(h * h) + " @ a, 0) @ w\n"
        "np.einsum('bchw,bc->bchw', x, 1 / (1 + np.exp(-t)))",
    )


FAMILIES = (
    softmax_of_columns, softmax_in_the_middle, log_softmax, logsumexp, layer_norm, channel_norm,
    group_norm, rms_norm, several_axes, by_channel, masked_mean, triangular_product, rolled,
    shifted, taps, pooled, normalized, excited,
)  # fmt: skip
