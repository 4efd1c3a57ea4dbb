"""Losses, distances and statistics of rows, each in three ways."""

from __future__ import annotations

from bench.outside.spelling import Draw, Spelled, spelled


def _rows(draw: Draw) -> tuple[int, int]:
    return draw.size(2048, 4096, 8192), draw.size(1000, 1024, 4096)


def label_entropy(draw: Draw) -> Spelled:
    """Cross entropy of one label a row."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "n": (m,)},
        "F.cross_entropy(x, n.long(), reduction='none')",
        "torch.logsumexp(x, -1) - x.gather(-1, n.long()[:, None])[:, 0]",
        f"t = x - x.max(-1, keepdims=True)\nt = t - np.log(np.exp(t).sum(-1, keepdims=True))\n"
        f"-np.where(np.arange({n}) == n.astype(np.int64)[:, None], t, 0).sum(-1)",
    )


def smoothed_entropy(draw: Draw) -> Spelled:
    """Cross entropy with smoothed labels."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "n": (m,)},
        "F.cross_entropy(x, n.long(), label_smoothing=0.1)",
        "t = F.log_softmax(x, -1)\nown = t.gather(-1, n.long().unsqueeze(-1)).squeeze(-1)\n"
        "-(0.9 * own + 0.1 * t.mean(-1)).mean()",
        f"t = torch.log_softmax(x, dim=1)\ny = F.one_hot(n.long(), {n}) * 0.9 + 0.1 / {n}\n"
        "-(y * t).sum(1).mean()",
    )


def binary_entropy(draw: Draw) -> Spelled:
    """Cross entropy of yes and no, of logits."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "F.binary_cross_entropy_with_logits(x, y)",
        "np.mean(np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x))))",
        "(F.softplus(x) - x * y).mean()",
    )


def focal(draw: Draw) -> Spelled:
    """The focal loss of logits."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "p = torch.sigmoid(x)\n(-((1 - p) ** 2) * F.logsigmoid(x)).mean()",
        "p = 1 / (1 + np.exp(-x))\nnp.mean(np.square(1 - p) * np.logaddexp(0, -x))",
        "p = x.sigmoid()\n((1 - p).square() * F.softplus(-x)).sum() / x.numel()",
    )


def huber(draw: Draw) -> Spelled:
    """The Huber loss."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "F.huber_loss(x, y)",
        "t = np.abs(x - y)\nnp.where(t < 1, 0.5 * t * t, t - 0.5).mean()",
        "t = (x - y).abs()\nu = t.clamp(max=1)\n(u * (t - 0.5 * u)).mean()",
    )


def divergence(draw: Draw) -> Spelled:
    """The divergence of two distributions, of their logits."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "F.kl_div(x.log_softmax(-1), y.log_softmax(-1), log_target=True, reduction='batchmean')",
        "p = torch.softmax(y, -1)\n"
        "(p * (F.log_softmax(y, -1) - F.log_softmax(x, -1))).sum(-1).mean()",
        "a, b = x - x.max(-1, keepdims=True), y - y.max(-1, keepdims=True)\n"
        "a = a - np.log(np.exp(a).sum(-1, keepdims=True))\n"
        "b = b - np.log(np.exp(b).sum(-1, keepdims=True))\n"
        "(np.exp(b) * (b - a)).sum(-1).mean()",
    )


def entropy(draw: Draw) -> Spelled:
    """The entropy of a softmax."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "-(torch.softmax(x, -1) * torch.log_softmax(x, -1)).sum(-1)",
        "t = x.log_softmax(-1)\n-(t.exp() * t).sum(-1)",
        "t = x - x.max(-1, keepdims=True)\nu = np.exp(t)\ns = u.sum(-1)\n"
        "np.log(s) - np.einsum('mn,mn->m', u, t) / s",
    )


def cosine(draw: Draw) -> Spelled:
    """The cosine of the angle between two rows."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "F.cosine_similarity(x, y, dim=-1)",
        "(F.normalize(x, dim=-1) * F.normalize(y, dim=-1)).sum(-1)",
        "np.einsum('mn,mn->m', x, y) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1))",
    )


def triplet(draw: Draw) -> Spelled:
    """A triplet loss of squared distances."""
    m, n = _rows(draw)
    return spelled(
        dict.fromkeys(("a", "p", "q"), (m, n)),
        "F.relu((a - p).pow(2).sum(-1) - (a - q).pow(2).sum(-1) + 0.2).mean()",
        "np.maximum(0, np.sum((a - p) ** 2, 1) - np.sum((a - q) ** 2, 1) + 0.2).mean()",
        "u, v = a - p, a - q\n"
        "t = torch.einsum('mn,mn->m', u, u) - torch.einsum('mn,mn->m', v, v)\n"
        "(t + 0.2).clamp(min=0).mean()",
    )


def contrast(draw: Draw) -> Spelled:
    """A contrastive loss: each row belongs to the row of its own number."""
    m, d = draw.size(1024, 2048), draw.size(256, 512)
    return spelled(
        {"x": (m, d), "y": (m, d)},
        f"s = F.normalize(x, dim=1) @ F.normalize(y, dim=1).T / 0.07\n"
        f"F.cross_entropy(s, torch.arange({m}))",
        "x, y = (t / t.norm(dim=1, keepdim=True) for t in (x, y))\n"
        "s = torch.einsum('md,nd->mn', x, y) / 0.07\n"
        "(torch.logsumexp(s, 1) - (x * y).sum(1) / 0.07).mean()",
        "x, y = (t / np.sqrt((t * t).sum(1, keepdims=True)) for t in (x, y))\n"
        "s = np.matmul(x, y.T) / 0.07\nt = s.max(1)\n"
        "(np.log(np.exp(s - t[:, None]).sum(1)) + t - np.einsum('md,md->m', x, y) / 0.07).mean()",
    )


def overlap(draw: Draw) -> Spelled:
    """The Dice loss of each row."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "p = torch.sigmoid(x)\n1 - 2 * (p * y).sum(-1) / (p.sum(-1) + y.sum(-1) + 1)",
        "p = 1 / (1 + np.exp(-x))\n"
        "1 - 2 * np.einsum('mn,mn->m', p, y) / (np.sum(p, 1) + np.sum(y, 1) + 1)",
        "p = x.sigmoid()\n1 - 2 * (p * y).sum(1) / ((p + y).sum(1) + 1)",
    )


def log_cosh(draw: Draw) -> Spelled:
    """The logarithm of the hyperbolic cosine of differences."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "t = x - y\n(t + F.softplus(-2 * t) - 0.6931471805599453).mean()",
        "t = x - y\nnp.mean(np.logaddexp(t, -t)) - 0.6931471805599453",
        "t = (x - y).abs()\n(t + torch.log1p(torch.exp(-2 * t)) - 0.6931471805599453).mean()",
    )


def pair_distances(draw: Draw) -> Spelled:
    """Squared distances of all pairs by a product."""
    m, n, d = draw.size(1024, 2048), draw.size(1024, 2048), draw.size(64, 256)
    return spelled(
        {"x": (m, d), "y": (n, d)},
        "x.pow(2).sum(1, keepdim=True) + y.pow(2).sum(1) - 2 * x @ y.T",
        "(x * x).sum(1)[:, None] + (y * y).sum(1)[None] - 2 * np.einsum('md,nd->mn', x, y)",
        "torch.einsum('md,md->m', x, x)[:, None] + torch.einsum('nd,nd->n', y, y)[None]"
        " - 2 * torch.mm(x, y.t())",
    )


def manhattan(draw: Draw) -> Spelled:
    """Sums of absolute differences of all pairs."""
    m, n, d = draw.size(512, 1024), draw.size(512, 1024), draw.few(32, 64)
    return spelled(
        {"x": (m, d), "y": (n, d)},
        "torch.cdist(x, y, p=1)",
        "(x[:, None] - y[None]).abs().sum(-1)",
        "np.abs(x[:, np.newaxis, :] - y[np.newaxis, :, :]).sum(axis=2)",
    )


def radial(draw: Draw) -> Spelled:
    """Features of distances from centers."""
    m, n, d = draw.size(1024, 4096), draw.size(512, 1024), draw.few(64, 128)
    return spelled(
        {"x": (m, d), "c": (n, d)},
        "torch.exp(-0.5 * ((x * x).sum(1)[:, None] + (c * c).sum(1) - 2 * x @ c.T))",
        "t = x @ c.T\n"
        "np.exp(t - 0.5 * np.square(x).sum(1, keepdims=True) - 0.5 * np.square(c).sum(1))",
        "t = torch.einsum('md,nd->mn', x, c) * 2 - x.pow(2).sum(1)[:, None] - c.norm(dim=1) ** 2\n"
        "torch.exp(t / 2)",
    )


def quantile(draw: Draw) -> Spelled:
    """The loss of a quantile."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "t = y - x\ntorch.maximum(0.9 * t, -0.1 * t).mean()",
        "t = y - x\nnp.where(t > 0, 0.9 * t, -0.1 * t).mean()",
        "t = y - x\n(0.9 * t.clamp(min=0) + 0.1 * F.relu(-t)).mean()",
    )


def relative_error(draw: Draw) -> Spelled:
    """Differences relative to means."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "(2 * (x - y).abs() / (x.abs() + y.abs() + 1e-3)).mean(-1)",
        "np.mean(np.abs(x - y) / ((np.abs(x) + np.abs(y) + 1e-3) * 0.5), axis=-1)",
        f"2 / {n} * torch.sum(torch.abs(x - y) / (torch.abs(x) + torch.abs(y) + 1e-3), dim=-1)",
    )


def correlation(draw: Draw) -> Spelled:
    """The correlation of two rows."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "F.cosine_similarity(x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True), dim=1)",
        "a, b = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)\n"
        "(a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))",
        "a, b = x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True)\n"
        "(a * b).mean(1) / (x.std(1, unbiased=False) * y.std(1, unbiased=False))",
    )


def covariance(draw: Draw) -> Spelled:
    """Covariances of columns."""
    m, n = draw.size(2048, 4096), draw.size(256, 512)
    return spelled(
        {"x": (m, n)},
        f"t = x - x.mean(0)\nt.T @ t / {m - 1}",
        f"t = x - np.mean(x, axis=0, keepdims=True)\nnp.einsum('mi,mj->ij', t, t) / ({m} - 1)",
        f"t = x.t() - x.t().mean(1, keepdim=True)\nt.mm(t.t()).div({m - 1})",
    )


def likelihood(draw: Draw) -> Spelled:
    """The likelihood of numbers under means and variances."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "a": (m, n), "v": (m, n)},
        "0.5 * (v + (x - a) ** 2 / v.exp()).sum(-1)",
        "0.5 * np.sum(v + np.square(x - a) * np.exp(-v), axis=-1)",
        "t = (x - a) * torch.exp(-0.5 * v)\n(0.5 * v + 0.5 * t * t).sum(dim=1)",
    )


FAMILIES = (
    label_entropy, smoothed_entropy, binary_entropy, focal, huber, divergence, entropy, cosine,
    triplet, contrast, overlap, log_cosh, pair_distances, manhattan, radial, quantile,
    relative_error, correlation, covariance, likelihood,
)  # fmt: skip
