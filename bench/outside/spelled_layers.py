"""Layers, cells and steps of optimizers, each in three ways."""

from __future__ import annotations

from bench.outside.spelling import Draw, Spelled, spelled


def biased(draw: Draw) -> Spelled:
    """A linear layer with a bias."""
    m, k, n = draw.size(2048, 4096), draw.size(512, 1024), draw.size(1024, 2048)
    return spelled(
        {"x": (m, k), "w": (n, k), "b": (n,)},
        "F.linear(x, w, b)",
        "torch.addmm(b, x, w.t())",
        "np.einsum('mk,nk->mn', x, w) + b[None, :]",
    )


def two_layers(draw: Draw) -> Spelled:
    """Two linear layers with a GELU between them."""
    m, k, n = draw.size(1024, 2048), draw.size(512, 768), draw.size(2048, 3072)
    return spelled(
        {"x": (m, k), "a": (n, k), "c": (n,), "b": (k, n), "d": (k,)},
        "F.linear(F.gelu(F.linear(x, a, c)), b, d)",
        "t = x @ a.T + c\nt = 0.5 * t * (1 + torch.erf(t / 1.4142135623730951))\nt @ b.T + d",
        "t = torch.einsum('mk,nk->mn', x, a) + c\n"
        "t = t * 0.5 * (1.0 + torch.erf(t * 0.7071067811865476))\n"
        "torch.einsum('mn,kn->mk', t, b) + d",
    )


def each_expert(draw: Draw) -> Spelled:
    """A layer with a bias for each of several experts."""
    e, m, k, n = draw.few(4, 8), draw.size(256, 512), draw.size(512, 1024), draw.size(512, 1024)
    return spelled(
        {"x": (e, m, k), "w": (e, k, n), "b": (e, n)},
        "torch.baddbmm(b[:, None], x, w)",
        "torch.bmm(x, w) + b.unsqueeze(1)",
        "np.einsum('emk,ekn->emn', x, w) + b[:, np.newaxis, :]",
    )


def groups_in_a_loop(draw: Draw) -> Spelled:
    """A linear layer for each group of channels along positions."""
    b, g, s = draw.few(8, 16), 4, draw.size(512, 1024)
    i, o = draw.few(32, 64), draw.few(32, 64)
    return spelled(
        {"x": (b, g * i, s), "w": (g * o, i)},
        f"F.conv1d(x, w[:, :, None], groups={g})",
        f"torch.cat([u @ t for u, t in zip(w.chunk({g}), x.chunk({g}, 1))], 1)",
        f"np.einsum('goi,bgis->bgos', w.reshape({g}, {o}, {i}), x.reshape({b}, {g}, {i}, {s}))"
        f".reshape({b}, {g * o}, {s})",
    )


def heads_in_a_loop(draw: Draw) -> Spelled:
    """Attention, a head at a time."""
    b, h, s, d = draw.few(2, 4), 4, draw.size(512, 1024), draw.few(32, 64)
    scale = d**-0.5
    return spelled(
        dict.fromkeys("qkv", (b, h, s, d)),
        f"torch.softmax(q @ k.mT * {scale}, -1) @ v",
        "torch.stack([F.scaled_dot_product_attention(q[:, i], k[:, i], v[:, i])"
        f" for i in range({h})], 1)",
        f"torch.cat([torch.softmax(a @ c.mT * {scale}, -1) @ e for a, c, e in"
        " zip(q.split(1, 1), k.split(1, 1), v.split(1, 1))], 1)",
    )


def modulated(draw: Draw) -> Spelled:
    """Channels of images scaled and shifted by a layer of a condition."""
    b, c, h, k = draw.few(8, 16), draw.few(64, 128), draw.size(28, 56), draw.size(256, 512)
    return spelled(
        {"x": (b, c, h, h), "y": (b, k), "w": (k, 2 * c)},
        "g, t = (y @ w).chunk(2, -1)\nx * (1 + g[:, :, None, None]) + t[:, :, None, None]",
        f"t = (y @ w).view({b}, 2, {c}, 1, 1)\ntorch.addcmul(t[:, 1], x, t[:, 0] + 1)",
        "t = y @ w\n"
        f"x + x * t[:, :{c}].reshape({b}, {c}, 1, 1) + t[:, {c}:].reshape({b}, {c}, 1, 1)",
    )


def of_style(draw: Draw) -> Spelled:
    """Channels with the means and deviations of another image."""
    b, c, n = draw.few(8, 16), draw.few(64, 128), draw.size(1024, 3136)
    return spelled(
        {"x": (b, c, n), "y": (b, c, n)},
        "s = torch.sqrt(y.var(-1, keepdim=True, unbiased=False) + 1e-5)\n"
        "F.instance_norm(x, eps=1e-5) * s + y.mean(-1, keepdim=True)",
        "(a, m), (c, t) = (torch.var_mean(z, -1, correction=0, keepdim=True) for z in (x, y))\n"
        "(x - m) * torch.rsqrt(a + 1e-5) * (c + 1e-5).sqrt() + t",
        "s = np.sqrt(np.var(y, -1, keepdims=True) + 1e-5)\n"
        "(x - np.mean(x, -1, keepdims=True)) / np.sqrt(np.var(x, -1, keepdims=True) + 1e-5) * s"
        " + np.mean(y, -1, keepdims=True)",
    )


def weight_norms(draw: Draw) -> Spelled:
    """A linear layer whose weights have rows of given lengths."""
    m, k, n = draw.size(2048, 4096), draw.size(512, 1024), draw.size(512, 1024)
    return spelled(
        {"x": (m, k), "w": (n, k), "g": (n, 1)},
        "x @ (w * (g / w.norm(dim=1, keepdim=True))).T",
        "F.linear(x, g * w / torch.linalg.vector_norm(w, dim=1, keepdim=True))",
        "np.einsum('mk,nk->mn', x, g * (w / np.sqrt((w * w).sum(1, keepdims=True))))",
    )


def standard_weights(draw: Draw) -> Spelled:
    """A linear layer whose weights have rows of mean zero and variance one."""
    m, k, n = draw.size(2048, 4096), draw.size(512, 1024), draw.size(512, 1024)
    return spelled(
        {"x": (m, k), "w": (n, k)},
        "F.linear(x, F.layer_norm(w, w.shape[1:]))",
        "t = w - w.mean(1, keepdim=True)\n"
        "x @ (t * torch.rsqrt((t * t).mean(1, keepdim=True) + 1e-5)).T",
        "t = (w - np.mean(w, axis=1, keepdims=True)) / np.sqrt(np.var(w, axis=1, keepdims=True)"
        " + 1e-5)\nx @ t.T",
    )


def normed_layer(draw: Draw) -> Spelled:
    """Layer norm in front of a product."""
    m, k, n = draw.size(2048, 4096), draw.size(512, 1024), draw.size(1024, 2048)
    return spelled(
        {"x": (m, k), "g": (k,), "b": (k,), "w": (k, n)},
        f"F.layer_norm(x, ({k},), g, b) @ w",
        "t = x - x.mean(-1, keepdim=True)\nt = t / torch.sqrt(t.square().mean(-1, keepdim=True)"
        " + 1e-5)\n(t * g + b) @ w",
        "t = (x - np.mean(x, -1, keepdims=True)) / np.sqrt(np.var(x, -1, keepdims=True) + 1e-5)\n"
        "np.einsum('mk,kn->mn', g * t + b, w)",
    )


def group_norm_of_images(draw: Draw) -> Spelled:
    """Norms of groups of channels of images, with a scale and a shift."""
    b, g, c, h = draw.few(8, 16), draw.few(8, 32), draw.few(4, 8), draw.size(28, 56)
    shape = f"({b}, {g * c}, {h}, {h})"
    return spelled(
        {"x": (b, g * c, h, h), "w": (g * c,), "y": (g * c,)},
        f"F.group_norm(x, {g}, w, y)",
        f"t = x.reshape({b}, {g}, -1)\n"
        "v, m = torch.var_mean(t, -1, unbiased=False, keepdim=True)\n"
        f"t = ((t - m) / torch.sqrt(v + 1e-5)).reshape{shape}\n"
        "t * w[:, None, None] + y[:, None, None]",
        f"t = x.reshape({b}, {g}, {c}, {h}, {h})\n"
        "t = t - t.mean((2, 3, 4), keepdims=True)\n"
        f"t = (t / np.sqrt((t**2).mean((2, 3, 4), keepdims=True) + 1e-5)).reshape{shape}\n"
        f"w.reshape(1, {g * c}, 1, 1) * t + y.reshape(1, {g * c}, 1, 1)",
    )


def known_moments(draw: Draw) -> Spelled:
    """Batch norm with moments that were learned, and a ReLU."""
    b, c, h = draw.few(8, 16), draw.few(64, 128), draw.size(28, 56)
    return spelled(
        {"x": (b, c, h, h), "m": (c,), "n": (c,), "g": (c,), "y": (c,)},
        "F.relu(F.batch_norm(x, m, n, g, y))",
        "m, n, g, y = (t[:, None, None] for t in (m, n, g, y))\n"
        "torch.clamp((x - m) * torch.rsqrt(n + 1e-5) * g + y, min=0)",
        "m, n, g, y = (t.reshape(1, -1, 1, 1) for t in (m, n, g, y))\n"
        "np.maximum((x - m) / np.sqrt(n + 1e-5) * g + y, 0)",
    )


def rms_of_one_more(draw: Draw) -> Spelled:
    """Root mean squares of rows, scaled by one and a weight."""
    m, n = draw.size(2048, 8192), draw.size(1024, 4096)
    return spelled(
        {"x": (m, n), "g": (n,)},
        f"F.rms_norm(x, ({n},), 1 + g, 1e-6)",
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (1.0 + g)",
        "t = x / np.sqrt(np.mean(np.square(x), -1, keepdims=True) + 1e-6)\nt + t * g",
    )


def of_length_one(draw: Draw) -> Spelled:
    """Rows of length one."""
    m, n = draw.size(2048, 8192), draw.size(512, 4096)
    return spelled(
        {"x": (m, n)},
        "F.normalize(x, dim=-1)",
        "x / torch.linalg.norm(x, dim=-1, keepdim=True).clamp_min(1e-12)",
        "x / np.maximum(np.sqrt(np.einsum('mn,mn->m', x, x)), 1e-12)[:, None]",
    )


def lstm_cell(draw: Draw) -> Spelled:
    """The cell of an LSTM, of gates that are computed."""
    m, n = draw.size(1024, 4096), draw.size(512, 1024)
    return spelled(
        {"t": (m, 4 * n), "c": (m, n)},
        "i, f, g, o = t.chunk(4, 1)\n"
        "c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)\n"
        "torch.sigmoid(o) * torch.tanh(c)",
        f"i, f, g, o = t.view({m}, 4, {n}).unbind(1)\n"
        "c = f.sigmoid() * c + i.sigmoid() * g.tanh()\no.sigmoid() * c.tanh()",
        f"i, f, g, o = (t[:, j * {n} : (j + 1) * {n}] for j in range(4))\n"
        "c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))\n"
        "np.tanh(c) / (1 + np.exp(-o))",
    )


def gru_cell(draw: Draw) -> Spelled:
    """The cell of a GRU, of gates that are computed."""
    m, n = draw.size(1024, 4096), draw.size(512, 1024)
    return spelled(
        {"x": (m, 3 * n), "y": (m, 3 * n), "h": (m, n)},
        "(a, b, c), (d, e, f) = x.chunk(3, -1), y.chunk(3, -1)\n"
        "r, z = torch.sigmoid(a + d), torch.sigmoid(b + e)\n"
        "(1 - z) * torch.tanh(c + r * f) + z * h",
        f"(a, b, c), (d, e, f) = x.split({n}, 1), y.split({n}, 1)\n"
        "r, z = torch.sigmoid(a + d), torch.sigmoid(b + e)\nt = torch.tanh(c + r * f)\n"
        "t + z * (h - t)",
        "(a, b, c), (d, e, f) = (np.split(t, 3, axis=1) for t in (x, y))\n"
        "r, z = 1 / (1 + np.exp(-(a + d))), 1 / (1 + np.exp(-(b + e)))\n"
        "(1 - z) * np.tanh(c + r * f) + z * h",
    )


def mean_then_layer(draw: Draw) -> Spelled:
    """A linear layer of means over positions."""
    b, s, d, k = draw.size(64, 128), draw.size(196 * 2, 512), draw.size(512, 768), draw.size(1000)
    return spelled(
        {"x": (b, s, d), "w": (k, d)},
        "x.mean(1) @ w.T",
        "F.linear(F.adaptive_avg_pool1d(x.transpose(1, 2), 1).squeeze(-1), w)",
        f"np.einsum('bd,kd->bk', np.sum(x, axis=1) / {s}, w)",
    )


def additive_scores(draw: Draw) -> Spelled:
    """Scores of all pairs by a layer with a tanh."""
    b, s, d = draw.few(2, 4), draw.size(256, 512), draw.few(32, 64)
    return spelled(
        {"q": (b, s, d), "k": (b, s, d), "v": (d,)},
        "torch.tanh(q[:, :, None] + k[:, None]) @ v",
        "(torch.tanh(q.unsqueeze(2) + k.unsqueeze(1)) * v).sum(-1)",
        "np.einsum('bqkd,d->bqk', np.tanh(q[:, :, None, :] + k[:, None, :, :]), v)",
    )


def factor_machine(draw: Draw) -> Spelled:
    """Products of all pairs of columns, by factors."""
    m, k, f = draw.size(4096, 8192), draw.size(256, 512), draw.few(32, 64)
    return spelled(
        {"x": (m, k), "v": (k, f)},
        "0.5 * ((x @ v) ** 2 - (x**2) @ (v**2)).sum(-1)",
        "(torch.matmul(x, v).square() - torch.matmul(x.square(), v.square())).sum(dim=1) * 0.5",
        "t = np.einsum('mk,kf->mf', x, v)\n"
        "np.sum(t * t - np.einsum('mk,kf->mf', x * x, v * v), axis=-1) / 2",
    )


def both_sides(draw: Draw) -> Spelled:
    """A matrix between two others, for each of a batch."""
    b, i, j = draw.size(512, 1024), draw.few(32, 64), draw.few(32, 64)
    return spelled(
        {"x": (b, i, j), "a": (i, i), "c": (j, j)},
        "np.einsum('bij,ik,jl->bkl', x, a, c)",
        "a.T @ x @ c",
        "torch.einsum('bil,ik->bkl', x @ c, a)",
    )


def means_and_deviations(draw: Draw) -> Spelled:
    """Means and deviations over positions, side by side."""
    b, s, d = draw.few(16, 32), draw.size(512, 1024), draw.size(256, 768)
    return spelled(
        {"x": (b, s, d)},
        "torch.cat([x.mean(1), x.std(1, unbiased=False)], -1)",
        "v, m = torch.var_mean(x, 1, correction=0)\ntorch.cat((m, v.sqrt()), dim=1)",
        "m = np.mean(x, axis=1)\n"
        "np.concatenate([m, np.sqrt(((x - m[:, None]) ** 2).mean(1))], axis=1)",
    )


def general_means(draw: Draw) -> Spelled:
    """Means of third powers of the pixels of a channel."""
    b, c, h = draw.few(16, 32), draw.size(128, 256), draw.size(14, 28)
    return spelled(
        {"x": (b, c, h, h)},
        "x.clamp(min=1e-6).pow(3).mean((2, 3)).pow(1 / 3)",
        f"F.avg_pool2d(F.relu(x - 1e-6).add(1e-6) ** 3, {h})[:, :, 0, 0] ** (1 / 3)",
        "np.mean(np.maximum(x, 1e-6) ** 3, axis=(-2, -1)) ** (1.0 / 3.0)",
    )


def cross_layer(draw: Draw) -> Spelled:
    """A first input times a number of each row, with the input added."""
    m, n = draw.size(4096, 8192), draw.size(256, 1024)
    return spelled(
        {"x": (m, n), "y": (m, n), "w": (n,), "b": (n,)},
        "y * (x @ w)[:, None] + b + x",
        "x + torch.addcmul(b, y, (x * w).sum(-1, keepdim=True))",
        "np.einsum('mn,m->mn', y, np.einsum('mn,n->m', x, w)) + b + x",
    )


def mixed_with_before(draw: Draw) -> Spelled:
    """A mix with the position before, by a weight for each channel."""
    b, s, d = draw.few(8, 16), draw.size(1024, 2048), draw.size(256, 768)
    return spelled(
        {"x": (b, s, d), "m": (d,)},
        "t = F.pad(x, (0, 0, 1, -1))\nx * m + t * (1 - m)",
        "t = torch.cat((torch.zeros_like(x[:, :1]), x[:, :-1]), 1)\ntorch.lerp(t, x, m)",
        "t = np.pad(x[:, :-1], ((0, 0), (1, 0), (0, 0)))\nt + (x - t) * m",
    )


def between(draw: Draw) -> Spelled:
    """A weighted mean of two arrays, by a gate."""
    m, n = draw.size(2048, 4096), draw.size(1024, 4096)
    return spelled(
        {"x": (m, n), "y": (m, n), "g": (m, n)},
        "torch.lerp(y, x, torch.sigmoid(g))",
        "g = g.sigmoid()\ng * x + (1 - g) * y",
        "y + (x - y) / (1 + np.exp(-g))",
    )


def adam_step(draw: Draw) -> Spelled:
    """A step of Adam."""
    m, n = draw.size(2048, 4096), draw.size(1024, 4096)
    return spelled(
        {"w": (m, n), "g": (m, n), "a": (m, n), "n": (m, n)},
        "a = 0.9 * a + 0.1 * g\nn = 0.999 * n + 0.001 * g * g\n"
        "w - 0.001 * a / (torch.sqrt(n) + 1e-4)",
        "a = torch.lerp(a, g, 0.1)\nn = n.mul(0.999).addcmul(g, g, value=0.001)\n"
        "w.addcdiv(a, n.sqrt().add(1e-4), value=-0.001)",
        "a = a * 0.9 + g * 0.1\nn = n * 0.999 + np.square(g) * 0.001\n"
        "w - 0.001 * (a / (np.sqrt(n) + 1e-4))",
    )


def bounded_norm(draw: Draw) -> Spelled:
    """A gradient whose norm is at most one."""
    m, n = draw.size(1024, 2048), draw.size(1024, 2048)
    return spelled(
        {"x": (m, n)},
        "x * (1.0 / (x.norm() + 1e-6)).clamp(max=1.0)",
        "x * torch.clamp(1.0 / (torch.sqrt((x * x).sum()) + 1e-6), max=1.0)",
        "x * np.minimum(1.0 / (np.sqrt(np.sum(np.square(x))) + 1e-6), 1.0)",
    )


FAMILIES = (
    biased, two_layers, each_expert, groups_in_a_loop, heads_in_a_loop, modulated, of_style,
    weight_norms, standard_weights, normed_layer, group_norm_of_images, known_moments,
    rms_of_one_more, of_length_one, lstm_cell, gru_cell, mean_then_layer, additive_scores,
    factor_machine, both_sides, means_and_deviations, general_means, cross_layer,
    mixed_with_before, between, adam_step, bounded_norm,
)  # fmt: skip
