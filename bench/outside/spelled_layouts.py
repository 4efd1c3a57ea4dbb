"""Axes that are cut, joined, moved and repeated around products, each in three ways."""

from __future__ import annotations

from bench.outside.spelling import Draw, Spelled, spelled


def projected_heads(draw: Draw) -> Spelled:
    """A linear layer whose results are heads."""
    b, s, h, d = draw.few(4, 8), draw.size(512, 1024), draw.few(8, 16), 64
    k = draw.size(512, 1024)
    return spelled(
        {"x": (b, s, k), "w": (k, h * d)},
        f"(x @ w).view({b}, {s}, {h}, {d}).transpose(1, 2)",
        f"np.einsum('bsk,khd->bhsd', x, w.reshape({k}, {h}, {d}))",
        f"F.linear(x, w.T).unflatten(-1, ({h}, {d})).permute(0, 2, 1, 3)",
    )


def packed_heads(draw: Draw) -> Spelled:
    """Attention of queries, keys and values that one array holds."""
    b, s, h, d = draw.few(2, 4), draw.size(512, 1024), draw.few(8, 16), 64
    return spelled(
        {"x": (b, s, 3 * h * d)},
        f"q, k, v = (t.view({b}, {s}, {h}, {d}).transpose(1, 2) for t in x.chunk(3, -1))\n"
        "F.scaled_dot_product_attention(q, k, v)",
        f"q, k, v = x.view({b}, {s}, 3, {h}, {d}).permute(2, 0, 3, 1, 4)\n"
        f"(q @ k.transpose(-2, -1) * {d**-0.5}).softmax(-1) @ v",
        f"q, k, v = x.reshape({b}, {s}, 3, {h}, {d}).transpose(2, 0, 3, 1, 4)\n"
        f"s = np.matmul(q, k.swapaxes(-1, -2)) * {d**-0.5}\n"
        "t = np.exp(s - s.max(-1, keepdims=True))\n(t / t.sum(-1, keepdims=True)) @ v",
    )


def repeated_rows(draw: Draw) -> Spelled:
    """A row added to all rows."""
    m, n = draw.size(2048, 4096), draw.size(1000, 1024, 4096)
    return spelled(
        {"x": (m, n), "b": (n,)},
        "F.relu(x + b)",
        f"torch.relu(x + b[None].expand({m}, {n}))",
        f"np.maximum(x + np.tile(b, ({m}, 1)), 0)",
    )


def repeated_columns(draw: Draw) -> Spelled:
    """Rows divided by a number each."""
    m, n = draw.size(2048, 4096), draw.size(1000, 1024, 4096)
    return spelled(
        {"x": (m, n), "c": (m,)},
        "x * c[:, None]",
        f"x * c.unsqueeze(1).repeat(1, {n})",
        f"x * np.broadcast_to(c.reshape(-1, 1), ({m}, {n}))",
    )


def outer(draw: Draw) -> Spelled:
    """All products of two vectors, added to a matrix."""
    m, n = draw.size(2048, 4096), draw.size(1024, 2048)
    return spelled(
        {"x": (m, n), "a": (m,), "b": (n,)},
        "x + torch.outer(a, b)",
        "x + np.einsum('m,n->mn', a, b)",
        "torch.addr(x, a, b)",
    )


def similar_rows(draw: Draw) -> Spelled:
    """Products of all rows of a batch."""
    b, s, d = draw.few(8, 16), draw.size(512, 1024), draw.size(64, 128)
    return spelled(
        {"x": (b, s, d), "y": (b, s, d)},
        "torch.bmm(x, y.transpose(1, 2))",
        "np.einsum('bid,bjd->bij', x, y)",
        "x.matmul(y.permute(0, 2, 1))",
    )


def traces(draw: Draw) -> Spelled:
    """The trace of a product."""
    m, n = draw.size(2048, 4096), draw.size(1024, 2048)
    return spelled(
        {"x": (m, n), "y": (n, m)},
        "(x * y.T).sum()",
        "np.einsum('ij,ji->', x, y)",
        "torch.einsum('ij,ij', x, y.t())",
    )


def quadratic(draw: Draw) -> Spelled:
    """A quadratic form of each row."""
    m, d = draw.size(4096, 8192), draw.size(256, 512)
    return spelled(
        {"x": (m, d), "a": (d, d)},
        "((x @ a) * x).sum(-1)",
        "np.einsum('mi,ij,mj->m', x, a, x)",
        "(x.unsqueeze(1) @ (x @ a).unsqueeze(2)).flatten()",
    )


def patches(draw: Draw) -> Spelled:
    """Squares of an image as rows, through a linear layer."""
    b, c, n, p, d = (
        draw.few(8, 16),
        3,
        2 if draw.small else 14,
        draw.few(8, 16),
        draw.size(384, 768),
    )
    return spelled(
        {"x": (b, c, n * p, n * p), "w": (d, c, p, p)},
        f"F.conv2d(x, w, stride={p}).flatten(2).transpose(1, 2)",
        f"t = x.reshape({b}, {c}, {n}, {p}, {n}, {p}).permute(0, 2, 4, 1, 3, 5)\n"
        f"t.reshape({b}, {n * n}, {c * p * p}) @ w.flatten(1).T",
        f"np.einsum('bchpwq,dcpq->bhwd', x.reshape({b}, {c}, {n}, {p}, {n}, {p}), w)"
        f".reshape({b}, {n * n}, {d})",
    )


def shuffled_pixels(draw: Draw) -> Spelled:
    """Channels that become pixels."""
    b, c, h = draw.few(8, 16), draw.few(16, 32), 3 if draw.small else draw.few(28, 56)
    return spelled(
        {"x": (b, 4 * c, h, h)},
        "F.pixel_shuffle(x, 2)",
        f"x.view({b}, {c}, 2, 2, {h}, {h}).permute(0, 1, 4, 2, 5, 3)"
        f".reshape({b}, {c}, {2 * h}, {2 * h})",
        f"np.einsum('bcpqhw->bchpwq', x.reshape({b}, {c}, 2, 2, {h}, {h}))"
        f".reshape({b}, {c}, {2 * h}, {2 * h})",
    )


def shuffled_channels(draw: Draw) -> Spelled:
    """Channels of two groups in turn."""
    b, c, h = draw.few(8, 16), draw.few(32, 64), 3 if draw.small else draw.few(28, 56)
    return spelled(
        {"x": (b, 2 * c, h, h)},
        f"x.view({b}, 2, {c}, {h}, {h}).transpose(1, 2).reshape({b}, {2 * c}, {h}, {h})",
        "torch.channel_shuffle(x, 2)",
        f"np.swapaxes(x.reshape({b}, 2, {c}, {h}, {h}), 1, 2).reshape({b}, {2 * c}, {h}, {h})",
    )


def low_rank(draw: Draw) -> Spelled:
    """A linear layer with a product of two thin matrices beside it."""
    m, k, n, r = draw.size(1024, 2048), draw.size(1024, 2048), draw.size(1024, 2048), 16
    return spelled(
        {"x": (m, k), "w": (n, k), "a": (r, k), "b": (n, r)},
        "F.linear(x, w) + F.linear(F.linear(x, a), b) * 2",
        "x @ w.T + (x @ a.T @ b.T) * 2",
        "t = np.einsum('mk,rk->mr', x, a)\n"
        "np.einsum('mk,nk->mn', x, w) + 2 * np.einsum('mr,nr->mn', t, b)",
    )


def mixed_outputs(draw: Draw) -> Spelled:
    """Results of several layers, added up with weights of a softmax."""
    m, e, k, n = draw.size(512, 1024), draw.few(4, 8), draw.size(256, 512), draw.size(256, 512)
    return spelled(
        {"x": (m, k), "g": (k, e), "w": (e, k, n)},
        "p = torch.softmax(x @ g, -1)\ntorch.einsum('me,mk,ekn->mn', p, x, w)",
        "p = (x @ g).softmax(-1)\n(p.T[:, :, None] * torch.matmul(x, w)).sum(0)",
        "s = x @ g\nt = np.exp(s - s.max(-1, keepdims=True))\np = t / t.sum(-1, keepdims=True)\n"
        "np.einsum('me,emn->mn', p, np.einsum('mk,ekn->emn', x, w))",
    )


def squared_units(draw: Draw) -> Spelled:
    """Two layers with a squared ReLU between them."""
    m, k, n = draw.size(1024, 2048), draw.size(512, 1024), draw.size(1024, 2048)
    return spelled(
        {"x": (m, k), "w": (k, n), "v": (n, k)},
        "F.relu(x @ w).square() @ v",
        "np.maximum(x @ w, 0) ** 2 @ v",
        "t = torch.einsum('mk,kn->mn', x, w).clamp(min=0)\ntorch.einsum('mn,nk->mk', t * t, v)",
    )


def two_axes(draw: Draw) -> Spelled:
    """A product that adds up along two axes."""
    m, a, c, n = draw.size(1024, 4096), draw.few(16, 32), draw.few(32, 64), draw.size(256, 512)
    return spelled(
        {"x": (m, a, c), "w": (a, c, n)},
        "np.tensordot(x, w, axes=2)",
        "torch.einsum('mac,acn->mn', x, w)",
        f"x.flatten(1) @ w.reshape({a * c}, {n})",
    )


def grouped_layer(draw: Draw) -> Spelled:
    """A linear layer for each group of columns."""
    m, g, k, n = draw.size(2048, 4096), draw.few(4, 8), draw.few(64, 128), draw.few(64, 128)
    return spelled(
        {"x": (m, g * k), "w": (g, k, n)},
        f"torch.einsum('mgk,gkn->mgn', x.view({m}, {g}, {k}), w).flatten(1)",
        f"np.matmul(x.reshape({m}, {g}, 1, {k}), w).reshape({m}, {g * n})",
        f"t = torch.bmm(x.view({m}, {g}, {k}).transpose(0, 1), w)\n"
        f"t.transpose(0, 1).reshape({m}, {g * n})",
    )


def mixed_tokens(draw: Draw) -> Spelled:
    """A layer along positions, with its input added."""
    b, s, d = draw.few(32, 64), draw.few(196, 256), draw.size(256, 512)
    return spelled(
        {"x": (b, s, d), "w": (s, s), "c": (s,)},
        "x + F.linear(x.transpose(1, 2), w, c).transpose(1, 2)",
        "x + np.einsum('bsd,ts->btd', x, w) + c[:, None]",
        "x + torch.matmul(w, x) + c.unsqueeze(-1)",
    )


FAMILIES = (
    projected_heads, packed_heads, repeated_rows, repeated_columns, outer, similar_rows, traces,
    quadratic, patches, shuffled_pixels, shuffled_channels, low_rank, mixed_outputs, squared_units,
    two_axes, grouped_layer, mixed_tokens,
)  # fmt: skip
