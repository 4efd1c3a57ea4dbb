"""Products and contractions, each in three ways: einsum, products with transposes, broadcasting."""

from __future__ import annotations

from bench.outside.spelling import Draw, Spelled, spelled


def experts(draw: Draw) -> Spelled:
    """Outputs of experts, weighted and added up."""
    e, m = draw.few(4, 8, 16), draw.size(256, 512, 1024)
    f, d = draw.size(512, 1024, 2048), draw.size(512, 1024)
    return spelled(
        {"g": (m, e), "h": (e, m, f), "w": (e, f, d)},
        'np.einsum("me,emd->md", g, np.einsum("emf,efd->emd", h, w))',
        "(g.T[..., None] * (h @ w)).sum(0)",
        'torch.einsum("em,emd->md", g.t(), torch.bmm(h, w))',
    )


def last_axis(draw: Draw) -> Spelled:
    """A linear layer of an array of three axes."""
    b, s = draw.size(8 * 64, 1024, 512), draw.few(16, 77, 128)
    k, n = draw.size(256, 512, 1000), draw.size(256, 768)
    return spelled(
        {"x": (b, s, k), "w": (n, k)},
        'np.einsum("bsk,nk->bsn", x, w)',
        f"(x.reshape({b * s}, {k}) @ w.T).reshape({b}, {s}, {n})",
        "F.linear(x, w)",
    )


def middle_axis(draw: Draw) -> Spelled:
    """A product along a middle axis."""
    b, k = draw.size(512, 1024), draw.size(196 * 2, 256, 512)
    c, n = draw.size(128, 256), draw.size(256, 512)
    return spelled(
        {"x": (b, k, c), "w": (n, k)},
        'torch.einsum("bkc,nk->bnc", x, w)',
        "w @ x",
        "(x.transpose(1, 2) @ w.T).transpose(1, 2)",
    )


def outer_sum(draw: Draw) -> Spelled:
    """A gradient of weights: products of rows, added up."""
    b, m, n = draw.size(1024, 4096), draw.size(256, 512, 1024), draw.size(256, 512)
    return spelled(
        {"x": (b, m), "y": (b, n)},
        'np.einsum("bm,bn->mn", x, y)',
        "x.T @ y",
        "(x[:, :, None] * y[:, None, :]).sum(0)",
    )


def broadcast_product(draw: Draw) -> Spelled:
    """A plain product, also as a sum of a broadcast product."""
    m, k, n = draw.size(512, 1024), draw.size(256, 512, 1000), draw.size(512, 1024)
    return spelled(
        {"x": (m, k), "w": (k, n)},
        "x @ w",
        'torch.einsum("mk,kn->mn", x, w)',
        "(x[:, :, None] * w[None]).sum(1)",
    )


def vectors(draw: Draw) -> Spelled:
    """A matrix by a vector, for each of a batch."""
    b, i, j = draw.few(16, 64, 128), draw.size(256, 512, 1024), draw.size(256, 512, 1000)
    return spelled(
        {"a": (b, i, j), "x": (b, j)},
        'torch.einsum("bij,bj->bi", a, x)',
        "(a @ x[..., None])[..., 0]",
        "(a * x[:, None]).sum(-1)",
    )


def vectors_in_front(draw: Draw) -> Spelled:
    """A vector by a matrix, for each of a batch."""
    b, i, j = draw.few(16, 64, 128), draw.size(256, 512, 1024), draw.size(256, 512, 1000)
    return spelled(
        {"a": (b, i, j), "x": (b, i)},
        'np.einsum("bij,bi->bj", a, x)',
        "(x[:, None] @ a)[:, 0]",
        "(a * x[..., None]).sum(1)",
    )


def bilinear(draw: Draw) -> Spelled:
    """A bilinear form of two vectors for each row."""
    b, i, j = draw.size(4096, 8192), draw.size(256, 512), draw.size(256, 512)
    return spelled(
        {"x": (b, i), "w": (i, j), "y": (b, j)},
        'np.einsum("bi,ij,bj->b", x, w, y)',
        "((x @ w) * y).sum(-1)",
        'torch.einsum("bj,bj->b", x @ w, y)',
    )


def turned_product(draw: Draw) -> Spelled:
    """The transpose of a product."""
    m, k, n = draw.size(1024, 2048, 4096), draw.size(512, 1024), draw.size(512, 1024)
    return spelled(
        {"x": (m, k), "w": (k, n)},
        'np.einsum("mk,kn->nm", x, w)',
        "(x @ w).T",
        "w.T @ x.T",
    )


def all_pairs(draw: Draw) -> Spelled:
    """Squared differences of all pairs."""
    m, n, d = draw.size(512, 1024), draw.size(512, 1024), draw.size(64, 128)
    return spelled(
        {"x": (m, d), "y": (n, d)},
        "((x[:, None] - y[None]) ** 2).sum(-1)",
        "t = np.expand_dims(x, 1) - np.expand_dims(y, 0)\nnp.einsum('mnd,mnd->mn', t, t)",
        "t = x.unsqueeze(1) - y.unsqueeze(0)\n(t * t).sum(dim=2)",
    )


def adapter(draw: Draw) -> Spelled:
    """A linear layer with a product of low rank beside it."""
    m, k, n, r = draw.size(1024, 4096), draw.size(1024, 2048), draw.size(1024, 2048), 16
    return spelled(
        {"x": (m, k), "w": (n, k), "a": (r, k), "b": (n, r)},
        'np.einsum("mk,nk->mn", x, w) + np.einsum("mk,rk,nr->mn", x, a, b)',
        "x @ w.T + (x @ a.T) @ b.T",
        "F.linear(x, w) + F.linear(F.linear(x, a), b)",
    )


def gates(draw: Draw) -> Spelled:
    """A gated layer."""
    m, k, n = draw.size(1024, 2048), draw.size(512, 1024), draw.size(1024, 2048)
    return spelled(
        {"x": (m, k), "a": (k, n), "b": (k, n)},
        "F.silu(x @ a) * (x @ b)",
        "p = np.einsum('mk,kn->mn', x, a)\np / (1 + np.exp(-p)) * np.einsum('mk,kn->mn', x, b)",
        "p = torch.matmul(x, a)\np * torch.sigmoid(p) * torch.matmul(x, b)",
    )


def heads_joined(draw: Draw) -> Spelled:
    """The output projection of attention, from heads."""
    b, h, s = draw.few(2, 4, 8), draw.few(8, 16), draw.size(512, 1024)
    d, o = draw.few(32, 64), draw.size(512, 1024)
    return spelled(
        {"x": (b, h, s, d), "w": (h, d, o)},
        'torch.einsum("bhsd,hdo->bso", x, w)',
        f"x.transpose(1, 2).reshape({b}, {s}, {h * d}) @ w.reshape({h * d}, {o})",
        "(x @ w).sum(1)",
    )


def heads_split(draw: Draw) -> Spelled:
    """A projection to heads."""
    b, h, s = draw.few(2, 4, 8), draw.few(8, 16), draw.size(512, 1024)
    d, k = draw.few(32, 64), draw.size(512, 1024)
    return spelled(
        {"x": (b, s, k), "w": (k, h * d)},
        f"(x @ w).reshape({b}, {s}, {h}, {d}).transpose(1, 2)",
        f"np.einsum('bsk,khd->bhsd', x, w.reshape({k}, {h}, {d}))",
        f"x[:, None] @ w.view({k}, {h}, {d}).permute(1, 0, 2)",
    )


def group_products(draw: Draw) -> Spelled:
    """A linear layer for each group of columns."""
    m, g, i, o = draw.size(2048, 4096), draw.few(4, 8), draw.few(64, 128), draw.few(64, 128)
    return spelled(
        {"x": (m, g * i), "w": (g, i, o)},
        f"np.einsum('mgi,gio->mgo', x.reshape({m}, {g}, {i}), w).reshape({m}, {g * o})",
        f"(x.view({m}, {g}, {i}).transpose(0, 1) @ w).transpose(0, 1).reshape({m}, {g * o})",
        f"(x.view({m}, {g}, 1, {i}) @ w).reshape({m}, {g * o})",
    )


def three_factors(draw: Draw) -> Spelled:
    """A core tensor by two factors."""
    b, i, j, k = draw.size(1024, 2048), draw.few(16, 32), draw.few(16, 32), draw.few(128, 256)
    return spelled(
        {"x": (b, i), "y": (b, j), "t": (i, j, k)},
        'np.einsum("bi,bj,ijk->bk", x, y, t)',
        f"(x[:, :, None] * y[:, None]).reshape({b}, {i * j}) @ t.reshape({i * j}, {k})",
        "torch.einsum('bij,ijk->bk', x.unsqueeze(2) * y.unsqueeze(1), t)",
    )


FAMILIES = (
    experts, last_axis, middle_axis, outer_sum, broadcast_product, vectors, vectors_in_front,
    bilinear, turned_product, all_pairs, adapter, gates, heads_joined, heads_split, group_products,
    three_factors,
)  # fmt: skip
