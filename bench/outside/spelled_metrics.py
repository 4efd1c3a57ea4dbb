"""More losses, distances and statistics, each in three ways."""

from __future__ import annotations

from bench.outside.spelling import Draw, Spelled, spelled


def _pairs(draw: Draw) -> dict[str, tuple[int, ...]]:
    shape = draw.size(2048, 4096), draw.size(512, 1024)
    return {"x": shape, "y": shape}


def squared_error(draw: Draw) -> Spelled:
    """The mean squared error of a layer."""
    m, k, n = draw.size(2048, 4096), draw.size(512, 1024), draw.size(512, 1024)
    return spelled(
        {"x": (m, k), "w": (n, k), "y": (m, n)},
        "F.mse_loss(F.linear(x, w), y)",
        "((x @ w.T - y) ** 2).mean()",
        "np.mean(np.square(np.einsum('mk,nk->mn', x, w) - y))",
    )


def root_error(draw: Draw) -> Spelled:
    """The root of the mean squared error of each row."""
    return spelled(
        _pairs(draw),
        "F.mse_loss(x, y, reduction='none').mean(-1).sqrt()",
        "torch.linalg.vector_norm(x - y, dim=-1) / x.shape[-1] ** 0.5",
        "t = x - y\nnp.sqrt(np.einsum('mn,mn->m', t, t) / x.shape[1])",
    )


def distances_of_pairs(draw: Draw) -> Spelled:
    """Distances of all pairs of rows."""
    m, n, d = draw.size(512, 1024), draw.size(512, 1024), draw.size(64, 128)
    return spelled(
        {"x": (m, d), "y": (n, d)},
        "(x[:, None] - y[None]).norm(dim=-1)",
        "(x.unsqueeze(1) - y).pow(2).sum(-1).sqrt()",
        "np.linalg.norm(x[:, None, :] - y[None, :, :], axis=-1)",
    )


def largest_difference(draw: Draw) -> Spelled:
    """The largest difference of all pairs of rows."""
    m, n, d = draw.size(512, 1024), draw.size(512, 1024), draw.size(64, 128)
    return spelled(
        {"x": (m, d), "y": (n, d)},
        "(x[:, None] - y[None]).abs().amax(-1)",
        "torch.linalg.vector_norm(x.unsqueeze(1) - y.unsqueeze(0), ord=float('inf'), dim=2)",
        "np.max(np.abs(x[:, None] - y), axis=-1)",
    )


def boxes(draw: Draw) -> Spelled:
    """The intersection of all pairs of boxes over their union."""
    m, n = draw.size(2048, 4096), draw.size(64, 256)
    return spelled(
        {"x": (m, 4), "y": (n, 4)},
        "a, b = torch.max(x[:, None, :2], y[:, :2]), torch.min(x[:, None, 2:], y[:, 2:])\n"
        "t = (b - a).clamp(min=0).prod(-1)\n"
        "p, q = ((z[:, 2] - z[:, 0]) * (z[:, 3] - z[:, 1]) for z in (x, y))\n"
        "t / (p[:, None] + q - t + 8)",
        "(a, b, c, d), (e, f, g, h) = (x[:, None].unbind(-1), y[None].unbind(-1))\n"
        "t = F.relu(torch.minimum(c, g) - torch.maximum(a, e))\n"
        "t = t * F.relu(torch.minimum(d, h) - torch.maximum(b, f))\n"
        "t / ((c - a) * (d - b) + (g - e) * (h - f) - t + 8)",
        "(a, b, c, d), (e, f, g, h) = (x[..., None].transpose(1, 0, 2), y.T)\n"
        "t = np.maximum(np.minimum(c, g) - np.maximum(a, e), 0)\n"
        "t = np.maximum(np.minimum(d, h) - np.maximum(b, f), 0) * t\n"
        "t / (((c - a) * (d - b) + (g - e) * (h - f)) - t + 8)",
    )


def jaccard(draw: Draw) -> Spelled:
    """The soft Jaccard loss of masks."""
    b, h = draw.few(16, 32), draw.size(128, 256)
    return spelled(
        {"x": (b, h, h), "y": (b, h, h)},
        "p = torch.sigmoid(x).flatten(1)\nt, y = y.flatten(1), y.flatten(1)\n"
        "i = (p * t).sum(1)\n1 - (i + 100) / (p.sum(1) + t.sum(1) - i + 100)",
        "p = x.sigmoid()\ni = torch.einsum('bhw,bhw->b', p, y)\n"
        "1 - (i + 100) / ((p + y - p * y).sum((1, 2)) + 100)",
        "p = 1 / (1 + np.exp(-x))\ni = np.sum(p * y, axis=(1, 2))\n"
        "1 - (i + 100) / (np.sum(p, axis=(1, 2)) + np.sum(y, axis=(1, 2)) - i + 100)",
    )


def latent_divergence(draw: Draw) -> Spelled:
    """The divergence of normal distributions from the standard one."""
    return spelled(
        _pairs(draw),
        "-0.5 * (1 + y - x**2 - y.exp()).sum(-1).mean()",
        "torch.mean(0.5 * torch.sum(x.pow(2) + torch.exp(y) - y - 1, dim=1))",
        "0.5 * np.mean(np.sum(np.exp(y) + x * x - 1 - y, axis=-1))",
    )


def symmetric_divergence(draw: Draw) -> Spelled:
    """The divergences of two distributions from their mean."""
    return spelled(
        _pairs(draw),
        "p, q = x.softmax(-1), y.softmax(-1)\nt = ((p + q) / 2).log()\n"
        "((p * (p.log() - t)).sum(-1) + (q * (q.log() - t)).sum(-1)) / 2",
        "p, q = F.softmax(x, -1), F.softmax(y, -1)\nt = torch.log(0.5 * (p + q))\n"
        "0.5 * (F.kl_div(t, p, reduction='none') + F.kl_div(t, q, reduction='none')).sum(-1)",
        "p, q = (np.exp(t - t.max(-1, keepdims=True)) for t in (x, y))\n"
        "p, q = p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True)\n"
        "t = np.log((p + q) / 2)\n"
        "np.sum(p * (np.log(p) - t) + q * (np.log(q) - t), axis=-1) * 0.5",
    )


def sorted_difference(draw: Draw) -> Spelled:
    """How far mass has to move between two distributions along a line."""
    return spelled(
        _pairs(draw),
        "(torch.cumsum(x, -1) - torch.cumsum(y, -1)).abs().mean(-1)",
        "(x - y).cumsum(1).abs().mean(1)",
        "np.mean(np.abs(np.cumsum(x - y, axis=-1)), axis=-1)",
    )


def nearest(draw: Draw) -> Spelled:
    """The mean distance of points to the nearest of other points."""
    b, m, n = draw.few(4, 8), draw.size(1024, 2048), draw.size(1024, 2048)
    return spelled(
        {"x": (b, m, 3), "y": (b, n, 3)},
        "((x[:, :, None] - y[:, None]) ** 2).sum(-1).amin(-1).mean(-1)",
        "t = x.unsqueeze(2) - y.unsqueeze(1)\n"
        "torch.einsum('bmnd,bmnd->bmn', t, t).min(dim=2).values.mean(dim=1)",
        "np.mean(np.min(np.sum(np.square(x[:, :, None] - y[:, None, :]), -1), -1), -1)",
    )


def bilinear_layer(draw: Draw) -> Spelled:
    """A bilinear layer of two inputs."""
    m, k, i, j = draw.size(2048, 4096), draw.few(8, 16), draw.few(64, 128), draw.few(64, 128)
    return spelled(
        {"x": (m, i), "w": (k, i, j), "y": (m, j)},
        "F.bilinear(x, y, w)",
        "torch.einsum('mi,kij,mj->mk', x, w, y)",
        "np.sum(np.einsum('mi,kij->mkj', x, w) * y[:, None], axis=-1)",
    )


def class_means(draw: Draw) -> Spelled:
    """The mean of the rows of each class."""
    m, d, k = draw.size(4096, 8192), draw.size(256, 512), draw.few(16, 64)
    return spelled(
        {"x": (m, d), "n": (m,)},
        f"t = F.one_hot(n.long(), {k}).to(x.dtype)\nt.T @ x / t.sum(0).clamp(min=1)[:, None]",
        f"t = (n.long() == torch.arange({k})[:, None]).to(x.dtype)\n"
        "torch.einsum('km,md->kd', t, x) / torch.maximum(t.sum(1, keepdim=True), "
        "torch.ones_like(t[:, :1]))",
        f"t = (n.astype(np.int64)[:, None] == np.arange({k})).astype(x.dtype)\n"
        "np.einsum('mk,md->kd', t, x) / np.maximum(np.sum(t, axis=0), 1)[:, None]",
    )


def hinge(draw: Draw) -> Spelled:
    """The hinge loss of signs."""
    return spelled(
        _pairs(draw),
        "F.relu(1 - x * torch.sign(y)).mean()",
        "torch.clamp(1 - x * y.sign(), min=0).mean()",
        "np.mean(np.maximum(1 - np.sign(y) * x, 0))",
    )


def ranked(draw: Draw) -> Spelled:
    """The loss of all pairs of scores in a row whose order is wrong."""
    b, n = draw.size(64, 256), draw.size(256, 512)
    return spelled(
        {"x": (b, n), "y": (b, n)},
        "t = 1 - (x[:, :, None] - x[:, None])\n(F.relu(t) * (y[:, :, None] > y[:, None])).mean()",
        "t = F.relu(1 + x.unsqueeze(1) - x.unsqueeze(2))\n"
        "torch.where(y.unsqueeze(2) > y.unsqueeze(1), t, 0).mean()",
        "t = np.maximum(1 - (x[:, :, None] - x[:, None, :]), 0)\n"
        "np.mean(t * (y[:, :, None] - y[:, None, :] > 0))",
    )


def counts_likelihood(draw: Draw) -> Spelled:
    """The likelihood of counts whose logarithms of means are given."""
    return spelled(
        _pairs(draw),
        "F.poisson_nll_loss(x, y)",
        "(x.exp() - y * x).mean()",
        "np.mean(np.exp(x) - x * y)",
    )


def distilled(draw: Draw) -> Spelled:
    """The divergence from a teacher, at a temperature."""
    m, n = draw.size(1024, 2048), draw.size(1000, 8192)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "F.kl_div(F.log_softmax(x / 2.0, -1), F.softmax(y / 2.0, -1), reduction='batchmean') * 4",
        "a, b = F.log_softmax(x / 2.0, -1), F.log_softmax(y / 2.0, -1)\n"
        "4 * (b.exp() * (b - a)).sum(-1).mean()",
        "a, b = (t / 2 - (t / 2).max(-1, keepdims=True) for t in (x, y))\n"
        "a, b = (t - np.log(np.exp(t).sum(-1, keepdims=True)) for t in (a, b))\n"
        "np.mean(np.sum(np.exp(b) * (b - a), axis=-1)) * 4",
    )


def sigmoid_contrast(draw: Draw) -> Spelled:
    """Cross entropy of all pairs of rows, of which those of equal numbers belong together."""
    m, d = draw.size(1024, 2048), draw.size(256, 512)
    return spelled(
        {"x": (m, d), "y": (m, d)},
        f"z = 2 * torch.eye({m}, dtype=x.dtype) - 1\n-F.logsigmoid(z * (x @ y.T)).sum() / {m}",
        f"s, i = torch.einsum('md,nd->mn', x, y), torch.arange({m})\n"
        f"F.softplus(torch.where(i[:, None] == i, -s, s)).sum(-1).mean()",
        f"z = 1 - 2 * np.eye({m}, dtype=x.dtype)\n"
        f"np.mean(np.sum(np.logaddexp(0, z * (x @ y.T)), axis=1))",
    )


def z_loss(draw: Draw) -> Spelled:
    """Squares of the logsumexp of rows."""
    m, n = draw.size(2048, 4096), draw.size(1000, 8192)
    return spelled(
        {"x": (m, n)},
        "(torch.logsumexp(x, -1) ** 2).mean()",
        "torch.square(x.exp().sum(-1).log()).mean()",
        "t = x.max(-1, keepdims=True)\n"
        "np.mean(np.square(t[:, 0] + np.log(np.sum(np.exp(x - t), axis=-1))))",
    )


def accuracy(draw: Draw) -> Spelled:
    """How many labels have the largest logits."""
    m, n = draw.size(2048, 4096), draw.size(1000, 4096)
    return spelled(
        {"x": (m, n), "n": (m,)},
        "(x.argmax(-1) == n.long()).to(x.dtype).mean()",
        "torch.eq(x.max(dim=1).indices, n).to(x.dtype).mean()",
        "np.mean((np.argmax(x, axis=1) == n.astype(np.int64)).astype(x.dtype))",
    )


def explained(draw: Draw) -> Spelled:
    """How much of the variance of columns is explained."""
    m, n = draw.size(4096, 8192), draw.size(256, 512)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "1 - ((x - y) ** 2).sum(0) / ((y - y.mean(0)) ** 2).sum(0)",
        "1 - F.mse_loss(x, y, reduction='none').mean(0) / y.var(0, unbiased=False)",
        "1 - np.mean(np.square(x - y), axis=0) / np.var(y, axis=0)",
    )


def style(draw: Draw) -> Spelled:
    """Products of all channels of an image."""
    b, c, h = draw.few(4, 8), draw.size(128, 256), draw.size(28, 56)
    return spelled(
        {"x": (b, c, h, h)},
        f"t = x.flatten(2)\nt @ t.mT / {c * h * h}",
        f"t = x.view({b}, {c}, {h * h})\ntorch.bmm(t, t.transpose(1, 2)).div({c * h * h})",
        f"np.einsum('bchw,bdhw->bcd', x, x) / {c * h * h}",
    )


FAMILIES = (
    squared_error, root_error, distances_of_pairs, largest_difference, boxes, jaccard,
    latent_divergence, symmetric_divergence, sorted_difference, nearest, bilinear_layer,
    class_means, hinge, ranked, counts_likelihood, distilled, sigmoid_contrast, z_loss, accuracy,
    explained, style,
)  # fmt: skip
