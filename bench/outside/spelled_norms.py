"""Norms, gates, activations, clamps and quantization, each in three ways."""

from __future__ import annotations

from bench.outside.spelling import Draw, Spelled, spelled


def _rows(draw: Draw) -> tuple[int, int]:
    return draw.size(2048, 4096, 8192), draw.size(1000, 1024, 4096)


def _images(draw: Draw) -> tuple[int, int, int]:
    return draw.few(8, 16), draw.few(64, 96), 3 if draw.small else draw.few(28, 56)


def batch_norm(draw: Draw) -> Spelled:
    """Norms of channels over a batch of images."""
    b, c, h = _images(draw)
    return spelled(
        {"x": (b, c, h, h), "g": (c,), "b": (c,)},
        "F.batch_norm(x, None, None, g, b, training=True)",
        "m = x.mean((0, 2, 3), keepdims=True)\nv = ((x - m) ** 2).mean((0, 2, 3), keepdims=True)\n"
        "(x - m) / np.sqrt(v + 1e-5) * g[:, None, None] + b[:, None, None]",
        "v, m = torch.var_mean(x, (0, 2, 3), unbiased=False, keepdim=True)\n"
        "(x - m) * torch.rsqrt(v + 1e-5) * g.view(1, -1, 1, 1) + b.view(1, -1, 1, 1)",
    )


def instance_norm(draw: Draw) -> Spelled:
    """Norms of each channel of each image."""
    b, c, h = _images(draw)
    return spelled(
        {"x": (b, c, h, h)},
        "F.instance_norm(x)",
        "t = x - x.mean((2, 3), keepdims=True)\n"
        "t / np.sqrt((t * t).mean((2, 3), keepdims=True) + 1e-5)",
        f"t = x.flatten(2)\nt = (t - t.mean(-1, keepdim=True))"
        " * torch.rsqrt(t.var(-1, unbiased=False, keepdim=True) + 1e-5)\n"
        f"t.view({b}, {c}, {h}, {h})",
    )


def query_key_norms(draw: Draw) -> Spelled:
    """Attention of queries and keys whose root mean squares are one."""
    b, h, s, d = draw.few(1, 2), draw.few(8, 16), draw.size(512, 1024), draw.few(64, 128)
    return spelled(
        dict.fromkeys("qkv", (b, h, s, d)),
        f"q, k = F.rms_norm(q, ({d},), eps=1e-6), F.rms_norm(k, ({d},), eps=1e-6)\n"
        "F.scaled_dot_product_attention(q, k, v)",
        "q, k = (t * torch.rsqrt(t.pow(2).mean(-1, keepdim=True) + 1e-6) for t in (q, k))\n"
        f"torch.softmax(q @ k.transpose(-1, -2) * {d**-0.5}, -1) @ v",
        "q, k = (t / np.sqrt((t * t).mean(-1, keepdims=True) + 1e-6) for t in (q, k))\n"
        f"s = np.einsum('bhqd,bhkd->bhqk', q, k) * {d**-0.5}\n"
        "t = np.exp(s - s.max(-1, keepdims=True))\nt = t / t.sum(-1, keepdims=True)\n"
        "np.einsum('bhqk,bhkd->bhqd', t, v)",
    )


def moments(draw: Draw) -> Spelled:
    """Norms of rows by their first two moments."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "m = x.mean(-1, keepdim=True)\nv = (x * x).mean(-1, keepdim=True) - m * m\n"
        "(x - m) / torch.sqrt(v + 1e-5)",
        f"m = np.sum(x, -1, keepdims=True) / {n}\n"
        f"v = np.sum(np.square(x), -1, keepdims=True) / {n} - np.square(m)\n"
        "(x - m) / np.sqrt(v + 1e-5)",
        f"m = x.sum(-1, keepdim=True) * {1 / n!r}\n"
        f"v = torch.einsum('mn,mn->m', x, x)[:, None] * {1 / n!r} - m**2\n"
        "(x - m) * (v + 1e-5).rsqrt()",
    )


def scores(draw: Draw) -> Spelled:
    """Standard scores of rows."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "(x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)",
        "(x - np.mean(x, -1, keepdims=True)) / np.std(x, -1, ddof=1, keepdims=True)",
        "t = x - x.mean(-1, keepdim=True)\n"
        f"t / (t.square().sum(-1, keepdim=True) / ({n} - 1)).sqrt()",
    )


def ranges(draw: Draw) -> Spelled:
    """Rows between 0 and 1."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "a, b = torch.aminmax(x, dim=-1, keepdim=True)\n(x - a) / (b - a + 1e-6)",
        "(x - x.min(-1, keepdims=True)) / (np.ptp(x, axis=-1, keepdims=True) + 1e-6)",
        "a = x.amin(-1)[:, None]\nb = -((-x).amin(-1)[:, None])\n(x - a) / (b - a + 1e-6)",
    )


def of_sum_one(draw: Draw) -> Spelled:
    """Rows whose absolute values add up to one."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "F.normalize(x, p=1, dim=-1)",
        "x / np.maximum(np.abs(x).sum(-1, keepdims=True), 1e-12)",
        "x / x.norm(p=1, dim=-1, keepdim=True).clamp_min(1e-12)",
    )


def gate(draw: Draw) -> Spelled:
    """A gate by a sigmoid."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "torch.sigmoid(x) * y",
        "y / (1 + np.exp(-x))",
        "0.5 * (1 + torch.tanh(0.5 * x)) * y",
    )


def softplus(draw: Draw) -> Spelled:
    """The softplus of a sum."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (n,)},
        "F.softplus(x + y)",
        "np.logaddexp(x + y, 0)",
        "t = x + y\nt.clamp(min=0) + torch.log1p(torch.exp(-t.abs()))",
    )


def halves_gated(draw: Draw) -> Spelled:
    """Half of a row as the gate of the other half."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, 2 * n)},
        "a, b = x.chunk(2, dim=-1)\nF.gelu(a) * b",
        f"F.gelu(x[:, :{n}]) * x[:, {n}:]",
        f"a, b = x.unflatten(-1, (2, {n})).unbind(1)\n"
        "0.5 * a * (1 + torch.erf(a * 0.7071067811865476)) * b",
    )


def gated_layers(draw: Draw) -> Spelled:
    """Two linear layers, of which one gates the other."""
    m, k, n = draw.size(1024, 2048), draw.size(512, 1024), draw.size(1024, 2048)
    return spelled(
        {"x": (m, k), "w": (k, n), "v": (k, n)},
        "F.silu(x @ w) * (x @ v)",
        "t = np.einsum('mk,kn->mn', x, w)\nt / (1 + np.exp(-t)) * np.einsum('mk,kn->mn', x, v)",
        "t = torch.matmul(x, w)\nt * t.sigmoid() * torch.matmul(x, v)",
    )


def hard_swish(draw: Draw) -> Spelled:
    """A piecewise swish."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "F.hardswish(x)",
        "x * np.clip(x + 3, 0, 6) / 6",
        "x * F.relu6(x + 3) * (1 / 6)",
    )


def leaky(draw: Draw) -> Spelled:
    """A leaky ReLU."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "F.leaky_relu(x, 0.1)",
        "np.where(x > 0, x, 0.1 * x)",
        "torch.maximum(x, 0.1 * x)",
    )


def gelu_by_tanh(draw: Draw) -> Spelled:
    """GELU by a tanh."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "F.gelu(x, approximate='tanh')",
        "0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))",
        "t = 1.5957691216057308 * (x + 0.044715 * x * x * x)\nx * torch.sigmoid(t)",
    )


def elu(draw: Draw) -> Spelled:
    """An exponential below 0."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "F.elu(x)",
        "np.where(x > 0, x, np.expm1(np.minimum(x, 0)))",
        "torch.relu(x) + torch.expm1(x.clamp(max=0))",
    )


def clamped(draw: Draw) -> Spelled:
    """A sum between two bounds."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (n,)},
        "(x + y).clamp(-1, 1)",
        "np.minimum(np.maximum(x + y, -1), 1)",
        "t = x + y\ntorch.where(t > 1, 1, torch.where(t < -1, -1, t))",
    )


def row_means(draw: Draw) -> Spelled:
    """Means of rows."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "x.mean(-1)",
        f"np.einsum('mn->m', x) / {n}",
        f"x.sum(dim=1) * (1 / {n})",
    )


def responses(draw: Draw) -> Spelled:
    """Channels scaled by their norms over the mean of these."""
    b, c, h = _images(draw)
    return spelled(
        {"x": (b, c, h, h), "g": (c,)},
        "t = torch.norm(x, p=2, dim=(2, 3), keepdim=True)\n"
        "x * (t / (t.mean(1, keepdim=True) + 1e-6)) * g[:, None, None] + x",
        "t = np.sqrt(np.sum(x * x, axis=(2, 3), keepdims=True))\n"
        "x * (t / (np.mean(t, axis=1, keepdims=True) + 1e-6)) * g[:, None, None] + x",
        "t = x.flatten(2).square().sum(-1).sqrt()\n"
        "t = t / (t.mean(1, keepdim=True) + 1e-6) * g\nx * t[:, :, None, None] + x",
    )


def rounded_rows(draw: Draw) -> Spelled:
    """Rows rounded to 255 steps of their largest elements."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "s = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127\n"
        "(x / s).round().clamp(-128, 127) * s",
        "s = np.maximum(np.max(np.abs(x), -1, keepdims=True), 1e-5) / 127\n"
        "np.clip(np.round(x / s), -128, 127) * s",
        "s = torch.maximum(x.amax(-1), -x.amin(-1)).clamp(min=1e-5)[:, None] / 127\n"
        "torch.clamp(torch.round(x / s), -128, 127) * s",
    )


def rounded_groups(draw: Draw) -> Spelled:
    """Groups of a row rounded to 15 steps of their largest elements."""
    m, n, g = draw.size(2048, 4096), draw.few(1024, 4096), draw.few(64, 128)
    k = n // g
    return spelled(
        {"x": (m, n)},
        f"t = x.view({m}, {k}, {g})\ns = t.abs().amax(-1, keepdim=True).clamp(min=1e-4) / 7\n"
        f"(torch.round(t / s) * s).view({m}, {n})",
        "t = x.unflatten(1, (-1, " + str(g) + "))\n"
        "s = t.abs().max(dim=2, keepdim=True).values.clamp(min=1e-4) / 7\n"
        "((t / s).round() * s).flatten(1)",
        f"t = x.reshape({m}, {k}, {g})\n"
        "s = np.maximum(np.abs(t).max(-1, keepdims=True), 1e-4) / 7\n"
        f"(np.rint(t / s) * s).reshape({m}, {n})",
    )


def residual_norm(draw: Draw) -> Spelled:
    """A norm of a sum, with the sum itself."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (m, n), "g": (n,)},
        f"t = x + y\nF.layer_norm(t, ({n},), g) + t",
        "t = x + y\nu = t - t.mean(1, keepdims=True)\n"
        "u / np.sqrt(np.mean(u**2, axis=1, keepdims=True) + 1e-5) * g + t",
        "t = torch.add(x, y)\n"
        "(t - t.mean(-1, True)) * (t.var(-1, False, True) + 1e-5).rsqrt() * g + t",
    )


def conditioned_norm(draw: Draw) -> Spelled:
    """Layer norm with a scale and a shift for each sequence."""
    b, s, d = draw.few(8, 16), draw.size(512, 1024), draw.size(768, 1024)
    return spelled(
        {"x": (b, s, d), "c": (b, 2 * d)},
        f"a, h = c.chunk(2, dim=1)\nF.layer_norm(x, ({d},)) * (1 + a[:, None]) + h[:, None]",
        f"a, h = c[:, None, :{d}], c[:, None, {d}:]\nt = x - x.mean(-1, keepdims=True)\n"
        "t / np.sqrt((t * t).mean(-1, keepdims=True) + 1e-5) * (1 + a) + h",
        f"a, h = c.view({b}, 2, 1, {d}).unbind(1)\n"
        f"torch.addcmul(h, F.layer_norm(x, ({d},)), a + 1)",
    )


def pooled_by_scores(draw: Draw) -> Spelled:
    """Rows of a sequence added up with weights that a softmax gives."""
    b, s, d = draw.few(16, 32), draw.size(512, 1024), draw.size(256, 512)
    return spelled(
        {"x": (b, s, d), "w": (d,)},
        "t = torch.softmax(x @ w, dim=1)\n(x * t[..., None]).sum(1)",
        "t = torch.softmax(torch.einsum('bsd,d->bs', x, w), -1)\ntorch.einsum('bs,bsd->bd', t, x)",
        "s = (x * w).sum(-1)\nt = np.exp(s - s.max(1, keepdims=True))\n"
        "t = t / t.sum(1, keepdims=True)\n(t[:, None] @ x)[:, 0]",
    )


def geometric(draw: Draw) -> Spelled:
    """Geometric means of rows."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "torch.exp(torch.log(x.abs() + 1).mean(-1))",
        "np.exp(np.mean(np.log1p(np.abs(x)), axis=-1))",
        f"(x.abs().add(1).log().sum(-1) / {n}).exp()",
    )


def variances(draw: Draw) -> Spelled:
    """Standard deviations of columns."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "x.std(0)",
        f"t = x - x.mean(0)\nnp.sqrt(np.einsum('mn,mn->n', t, t) / {m - 1})",
        "torch.var(x, dim=0, correction=1).sqrt()",
    )


FAMILIES = (
    batch_norm, instance_norm, query_key_norms, moments, scores, ranges, of_sum_one, gate,
    softplus, halves_gated, gated_layers, hard_swish, leaky, gelu_by_tanh, elu, clamped, row_means,
    responses, rounded_rows, rounded_groups, residual_norm, conditioned_norm, pooled_by_scores,
    geometric, variances,
)  # fmt: skip
