"""Rotations, masks, gathers, windows and cumulative sums, each in three ways."""

from __future__ import annotations

import math

from bench.outside.spelling import Draw, Spelled, spelled


def _heads(draw: Draw) -> tuple[int, int, int, int]:
    return draw.few(1, 2, 4), draw.few(8, 16), draw.size(512, 1024), draw.few(64, 128)


def rotated_halves(draw: Draw) -> Spelled:
    """Rotary positions: the first and the second half of a head turn together."""
    b, h, s, d = _heads(draw)
    return spelled(
        {"x": (b, h, s, d), "c": (s, d // 2), "n": (s, d // 2)},
        "a, b = x.chunk(2, -1)\ntorch.cat((a * c - b * n, b * c + a * n), -1)",
        f"t = torch.cat((-x[..., {d // 2}:], x[..., :{d // 2}]), -1)\n"
        "x * torch.cat((c, c), -1) + t * torch.cat((n, n), -1)",
        f"a, b = x[..., :{d // 2}], x[..., {d // 2}:]\n"
        "np.concatenate([a * c - b * n, a * n + b * c], axis=-1)",
    )


def rotated_pairs(draw: Draw) -> Spelled:
    """Rotary positions: neighbours turn together."""
    b, h, s, d = _heads(draw)
    return spelled(
        {"x": (b, h, s, d), "c": (s, d // 2), "n": (s, d // 2)},
        "a, b = x[..., 0::2], x[..., 1::2]\n"
        "torch.stack((a * c - b * n, b * c + a * n), -1).flatten(-2)",
        f"t = x.reshape({b}, {h}, {s}, {d // 2}, 2)\na, b = t[..., 0], t[..., 1]\n"
        f"np.stack([a * c - b * n, a * n + b * c], -1).reshape({b}, {h}, {s}, {d})",
        "a, b = x.unflatten(-1, (-1, 2)).unbind(-1)\nt = torch.stack((-b, a), dim=-1).flatten(-2)\n"
        "x * c.repeat_interleave(2, -1) + t * n.repeat_interleave(2, -1)",
    )


def complex_products(draw: Draw) -> Spelled:
    """Products of complex numbers, whose parts are rows of a pair."""
    m, n = draw.size(2048, 4096), draw.size(1000, 1024, 2048)
    return spelled(
        {"x": (2, m, n), "y": (2, m, n)},
        "torch.stack((x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]))",
        "(a, b), (c, d) = x, y\nnp.stack([a * c - b * d, a * d + b * c])",
        "a, b = x.unbind(0)\nc, d = y.unbind(0)\n"
        "torch.cat(((a * c - b * d)[None], (a * d + b * c)[None]), 0)",
    )


def slopes(draw: Draw) -> Spelled:
    """Attention whose scores fall with distance, by a slope for each head."""
    b, h, s, d = _heads(draw)
    hand = "t = np.exp(s - s.max(-1, keepdims=True))\nt = t / t.sum(-1, keepdims=True)\n"
    return spelled(
        {**dict.fromkeys("qkv", (b, h, s, d)), "a": (h,)},
        f"i = torch.arange({s})\nt = (i[None] - i[:, None]).abs() * -a[:, None, None]\n"
        f"torch.softmax(q @ k.mT * {d**-0.5} + t, -1) @ v",
        f"i = np.arange({s})\nt = np.einsum('h,qk->hqk', -a, np.abs(i - i[:, None]))\n"
        f"s = np.einsum('bhqd,bhkd->bhqk', q, k) * {d**-0.5} + t\n"
        f"{hand}np.einsum('bhqk,bhkd->bhqd', t, v)",
        f"i = torch.arange({s}, dtype=q.dtype)\nt = (i.unsqueeze(0) - i.unsqueeze(1)).abs()\n"
        f"s = torch.einsum('bhqd,bhkd->bhqk', q, k) * {d**-0.5} - a.view(1, -1, 1, 1) * t\n"
        "torch.einsum('bhqk,bhkd->bhqd', s.softmax(-1), v)",
    )


def padded_keys(draw: Draw) -> Spelled:
    """Attention over as many keys as each sequence has."""
    b, h, s, d = _heads(draw)
    return spelled(
        {**dict.fromkeys("qkv", (b, h, s, d)), "n": (b,)},
        f"m = torch.arange({s}) < n[:, None]\n"
        "F.scaled_dot_product_attention(q, k, v, attn_mask=m[:, None, None, :])",
        f"m = torch.arange({s})[None, None, None] >= n.view(-1, 1, 1, 1)\n"
        f"s = (q @ k.mT * {d**-0.5}).masked_fill(m, float('-inf'))\ntorch.softmax(s, -1) @ v",
        f"m = np.arange({s}) < n[:, None, None, None]\n"
        f"s = np.where(m, q @ np.swapaxes(k, -1, -2) * {d**-0.5}, -np.inf)\n"
        "t = np.exp(s - s.max(-1, keepdims=True))\nt / t.sum(-1, keepdims=True) @ v",
    )


def shared_keys(draw: Draw) -> Spelled:
    """Attention of heads in groups, which share keys."""
    b, h, s, d = _heads(draw)
    g = 4
    return spelled(
        {"q": (b, h, s, d), "k": (b, h // g, s, d), "v": (b, h // g, s, d)},
        f"k, v = (t.repeat_interleave({g}, dim=1) for t in (k, v))\n"
        "F.scaled_dot_product_attention(q, k, v)",
        f"k, v = (t[:, :, None].expand({b}, {h // g}, {g}, {s}, {d})"
        f".reshape({b}, {h}, {s}, {d}) for t in (k, v))\n"
        f"torch.softmax(q @ k.mT * {d**-0.5}, -1) @ v",
        f"q = q.reshape({b}, {h // g}, {g}, {s}, {d})\n"
        f"s = np.einsum('bhgqd,bhkd->bhgqk', q, k) * {d**-0.5}\n"
        "t = np.exp(s - s.max(-1, keepdims=True))\nt = t / t.sum(-1, keepdims=True)\n"
        f"np.einsum('bhgqk,bhkd->bhgqd', t, v).reshape({b}, {h}, {s}, {d})",
    )


def moving_means(draw: Draw) -> Spelled:
    """Means of neighbours along rows."""
    m, n, k = draw.size(2048, 4096), draw.size(1024, 4096), draw.few(3, 4)
    return spelled(
        {"x": (m, n)},
        f"F.avg_pool1d(x, {k}, stride=1)",
        f"x.unfold(1, {k}, 1).mean(-1)",
        f"np.lib.stride_tricks.sliding_window_view(x, {k}, axis=1).mean(-1)",
    )


def neighbours(draw: Draw) -> Spelled:
    """Weighted sums of three neighbours along rows."""
    m, n = draw.size(2048, 4096), draw.size(1024, 4096)
    return spelled(
        {"x": (m, n)},
        "0.25 * x[:, :-2] + 0.5 * x[:, 1:-1] + 0.25 * x[:, 2:]",
        f"0.5 * (x[:, 1:{n - 1}] + (x[:, 0:{n - 2}] + x[:, 2:{n}]) / 2)",
        f"x.narrow(1, 0, {n - 2}) / 4 + x.narrow(1, 1, {n - 2}) / 2 + x.narrow(1, 2, {n - 2}) / 4",
    )


def running_means(draw: Draw) -> Spelled:
    """Means of all rows until each."""
    b, s, d = draw.few(8, 16), draw.size(512, 1024), draw.size(256, 768)
    return spelled(
        {"x": (b, s, d)},
        f"torch.cumsum(x, 1) / torch.arange(1, {s + 1})[:, None]",
        f"np.cumsum(x, axis=1) / np.arange(1, {s + 1})[None, :, None]",
        f"x.cumsum(dim=1) / (torch.arange({s}) + 1).view(1, -1, 1)",
    )


def decayed_sums(draw: Draw) -> Spelled:
    """Sums of earlier rows with weights that fall with distance."""
    b, s, d = draw.few(8, 16), draw.size(512, 1024), draw.size(256, 512)
    return spelled(
        {"x": (b, s, d)},
        f"i = torch.arange({s})\nt = i[:, None] - i\n"
        "w = torch.where(t >= 0, 0.9 ** t.clamp(min=0).to(x.dtype), 0)\n"
        "torch.einsum('qk,bkd->bqd', w, x)",
        f"i = np.arange({s})\nt = np.maximum(i[:, None] - i[None], 0).astype(x.dtype)\n"
        "np.tril(0.9**t) @ x",
        f"i = torch.arange({s}, dtype=x.dtype)\n"
        "t = (i.unsqueeze(1) - i.unsqueeze(0)).clamp(min=0)\n"
        "torch.matmul(torch.exp(t * -0.10536051565782628).tril(), x)",
    )


def waves(draw: Draw) -> Spelled:
    """Sines and cosines of positions, added to an array."""
    b, s, d = draw.few(8, 16), draw.size(512, 1024), draw.few(256, 512)
    scale = -math.log(10000.0) / (d // 2)
    return spelled(
        {"x": (b, s, d)},
        f"t = torch.exp(torch.arange({d // 2}, dtype=x.dtype) * {scale})\n"
        f"t = torch.arange({s})[:, None] * t\n"
        "x + torch.cat((t.sin(), t.cos()), -1)",
        f"t = np.outer(np.arange({s}), np.exp({scale} * np.arange({d // 2})))\n"
        "x + np.concatenate([np.sin(t), np.cos(t)], axis=1)",
        f"t = torch.einsum('s,d->sd', torch.arange({s}).to(x.dtype),"
        f" torch.exp({scale} * torch.arange({d // 2}, dtype=x.dtype)))\n"
        "x + torch.hstack((t.sin(), t.cos()))",
    )


def rows_by_number(draw: Draw) -> Spelled:
    """Rows of a table."""
    m, v, d = draw.size(2048, 4096), draw.size(1024, 4096), draw.size(256, 768)
    return spelled(
        {"n": (m,), "w": (v, d)},
        "F.embedding(n.long(), w)",
        "w[n.long()]",
        "np.take(w, n.astype(np.int64), axis=0)",
    )


def sums_by_label(draw: Draw) -> Spelled:
    """Sums of the rows of each label."""
    m, d, k = draw.size(4096, 8192), draw.size(256, 512), draw.few(16, 64)
    return spelled(
        {"x": (m, d), "n": (m,)},
        f"F.one_hot(n.long(), {k}).to(x.dtype).T @ x",
        f"(n.astype(np.int64)[None] == np.arange({k})[:, None]).astype(x.dtype) @ x",
        f"t = (n.long()[:, None] == torch.arange({k})).to(x.dtype)\n"
        "torch.einsum('mk,md->kd', t, x)",
    )


def last_rows(draw: Draw) -> Spelled:
    """The last row of each sequence."""
    b, s, d = draw.size(64, 128, 256), draw.size(512, 1024), draw.size(256, 768)
    return spelled(
        {"x": (b, s, d), "n": (b,)},
        f"x[torch.arange({b}), n.long() - 1]",
        f"t = (n.long() - 1)[:, None, None].expand({b}, 1, {d})\nx.gather(1, t)[:, 0]",
        "np.take_along_axis(x, (n.astype(np.int64) - 1)[:, None, None], axis=1)[:, 0]",
    )


def steps(draw: Draw) -> Spelled:
    """Differences of neighbours."""
    m, n = draw.size(2048, 4096), draw.size(1024, 4096)
    return spelled(
        {"x": (m, n)},
        "torch.diff(x, dim=-1)",
        "x[:, 1:] - x[:, :-1]",
        "np.diff(x, axis=1)",
    )


def variation(draw: Draw) -> Spelled:
    """The total variation of images."""
    b, c, h = draw.few(8, 16), draw.few(16, 64), 4 if draw.small else draw.few(64, 112)
    return spelled(
        {"x": (b, c, h, h)},
        "(x[..., 1:, :] - x[..., :-1, :]).abs().mean() + (x[..., 1:] - x[..., :-1]).abs().mean()",
        "np.abs(np.diff(x, axis=2)).mean() + np.abs(np.diff(x, axis=3)).mean()",
        "F.l1_loss(x[:, :, 1:], x[:, :, :-1]) + F.l1_loss(x[:, :, :, 1:], x[:, :, :, :-1])",
    )


def maxima_of_squares(draw: Draw) -> Spelled:
    """Maxima of squares of four pixels."""
    b, c, h = draw.few(8, 16), draw.few(64, 128), 4 if draw.small else draw.few(56, 112)
    return spelled(
        {"x": (b, c, h, h)},
        "F.max_pool2d(x, 2)",
        f"np.max(x.reshape({b}, {c}, {h // 2}, 2, {h // 2}, 2), axis=(3, 5))",
        f"x.view({b}, {c}, {h // 2}, 2, {h // 2}, 2).amax(-1).amax(3)",
    )


def means_of_squares(draw: Draw) -> Spelled:
    """Means of squares of four pixels."""
    b, c, h = draw.few(8, 16), draw.few(64, 128), 4 if draw.small else draw.few(56, 112)
    return spelled(
        {"x": (b, c, h, h)},
        "F.avg_pool2d(x, 2)",
        f"x.reshape({b}, {c}, {h // 2}, 2, {h // 2}, 2).mean((3, 5))",
        "t = x[:, :, 0::2] + x[:, :, 1::2]\n(t[..., 0::2] + t[..., 1::2]) / 4",
    )


def doubled(draw: Draw) -> Spelled:
    """Each pixel as a square of four, added to an image."""
    b, c, h = draw.few(8, 16), draw.few(32, 64), 4 if draw.small else draw.few(28, 56)
    return spelled(
        {"x": (b, c, h, h), "y": (b, c, 2 * h, 2 * h)},
        "y + F.interpolate(x, scale_factor=2, mode='nearest')",
        "y + np.repeat(np.repeat(x, 2, axis=2), 2, axis=3)",
        f"t = x[:, :, :, None, :, None].expand({b}, {c}, {h}, 2, {h}, 2)\n"
        f"y + t.reshape({b}, {c}, {2 * h}, {2 * h})",
    )


FAMILIES = (
    rotated_halves, rotated_pairs, complex_products, slopes, padded_keys, shared_keys,
    moving_means, neighbours, running_means, decayed_sums, waves, rows_by_number, sums_by_label,
    last_rows, steps, variation, maxima_of_squares, means_of_squares, doubled,
)  # fmt: skip
