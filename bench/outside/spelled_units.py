"""Functions of single elements, gates and steps of rows, each in three ways."""

from __future__ import annotations

from bench.outside.spelling import Draw, Spelled, spelled


def _rows(draw: Draw) -> tuple[int, int]:
    return draw.size(2048, 4096), draw.size(1024, 4096)


def mish(draw: Draw) -> Spelled:
    """Mish of a sum."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "b": (n,)},
        "F.mish(x + b)",
        "t = x + b\nt * torch.tanh(F.softplus(t))",
        "t = x + b\nt * np.tanh(np.log1p(np.exp(t)))",
    )


def quick_gelu(draw: Draw) -> Spelled:
    """GELU by a sigmoid."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "x * torch.sigmoid(1.702 * x)",
        "F.silu(1.702 * x) / 1.702",
        "x / (1 + np.exp(-1.702 * x))",
    )


def gelu_of_errors(draw: Draw) -> Spelled:
    """GELU by the error function."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "F.gelu(x)",
        "x * 0.5 * (1.0 + torch.erf(x / 1.4142135623730951))",
        "x * (1 + torch.special.erf(x * 0.7071067811865476)) / 2",
    )


def gelu_gate(draw: Draw) -> Spelled:
    """Half of a row, gated by the GELU of the other half."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, 2 * n)},
        "a, b = x.chunk(2, -1)\na * F.gelu(b)",
        f"x[:, :{n}] * F.gelu(x[:, {n}:])",
        f"a, b = x.view({m}, 2, {n}).unbind(1)\n"
        "b * 0.5 * (1 + torch.erf(b / 1.4142135623730951)) * a",
    )


def relu_gate(draw: Draw) -> Spelled:
    """A layer gated by the ReLU of another."""
    m, k, n = draw.size(1024, 2048), draw.size(512, 1024), draw.size(1024, 2048)
    return spelled(
        {"x": (m, k), "w": (k, 2 * n)},
        "a, b = (x @ w).chunk(2, -1)\nF.relu(a) * b",
        f"torch.clamp(x @ w[:, :{n}], min=0) * (x @ w[:, {n}:])",
        f"t = np.einsum('mk,kgn->mgn', x, w.reshape({k}, 2, {n}))\n"
        "np.maximum(t[:, 0], 0) * t[:, 1]",
    )


def selu(draw: Draw) -> Spelled:
    """SELU."""
    m, n = _rows(draw)
    a, s = 1.6732632423543772, 1.0507009873554805
    return spelled(
        {"x": (m, n)},
        "F.selu(x)",
        f"{s} * torch.where(x > 0, x, {a} * torch.expm1(x))",
        f"{s} * (np.maximum(x, 0) + np.minimum({a} * (np.exp(x) - 1), 0))",
    )


def celu(draw: Draw) -> Spelled:
    """CELU."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "F.celu(x, 0.5)",
        "torch.where(x > 0, x, 0.5 * torch.expm1(x / 0.5))",
        "np.maximum(x, 0) + np.minimum(0.5 * (np.exp(2 * x) - 1), 0)",
    )


def softsign(draw: Draw) -> Spelled:
    """x over 1 + |x|."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "F.softsign(x)",
        "x / (1 + x.abs())",
        "x * (1 / (np.abs(x) + 1))",
    )


def hard_sigmoid(draw: Draw) -> Spelled:
    """A piecewise sigmoid, as a gate."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "g": (m, n)},
        "x * F.hardsigmoid(g)",
        "x * F.relu6(g + 3) / 6",
        "x * np.clip(g / 6 + 0.5, 0, 1)",
    )


def shrunk(draw: Draw) -> Spelled:
    """Numbers moved towards zero."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "F.softshrink(x, 0.5)",
        "torch.sign(x) * F.relu(x.abs() - 0.5)",
        "x - np.clip(x, -0.5, 0.5)",
    )


def log_sigmoid(draw: Draw) -> Spelled:
    """The logarithm of a sigmoid, added up along rows."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "F.logsigmoid(x).sum(-1)",
        "-F.softplus(-x).sum(-1)",
        "(-np.logaddexp(0, -x)).sum(axis=-1)",
    )


def slopes_of_channels(draw: Draw) -> Spelled:
    """A slope below zero for each channel."""
    b, c, h = draw.few(8, 16), draw.few(64, 128), draw.size(28, 56)
    return spelled(
        {"x": (b, c, h, h), "a": (c,)},
        "F.prelu(x, a)",
        "torch.where(x > 0, x, a[:, None, None] * x)",
        "np.maximum(x, 0) + a.reshape(1, -1, 1, 1) * np.minimum(x, 0)",
    )


def own_swish(draw: Draw) -> Spelled:
    """Swish with a factor for each column."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "b": (n,)},
        "x * torch.sigmoid(b * x)",
        "x / (1 + torch.exp(-b * x))",
        "x * (1 / (1 + np.exp(-(x * b))))",
    )


def maxout(draw: Draw) -> Spelled:
    """The largest of each group of columns of a layer."""
    m, k, n, g = draw.size(1024, 2048), draw.size(512, 1024), draw.size(512, 1024), draw.few(2, 4)
    return spelled(
        {"x": (m, k), "w": (k, n * g)},
        f"(x @ w).view({m}, {n}, {g}).amax(-1)",
        f"F.max_pool1d(x @ w, {g})",
        f"t = np.einsum('mk,kn->mn', x, w)\nnp.max(np.reshape(t, ({m}, {n}, {g})), axis=2)",
    )


def smooth_step(draw: Draw) -> Spelled:
    """3 x^2 - 2 x^3 between 0 and 1."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "x = x.clamp(0, 1)\n3 * x**2 - 2 * x**3",
        "x = torch.clamp(x, 0, 1)\nx * x * (3 - 2 * x)",
        "x = np.minimum(np.maximum(x, 0), 1)\nx**2 * (3 - 2 * x)",
    )


def snake(draw: Draw) -> Spelled:
    """x plus a squared sine."""
    b, c, n = draw.few(8, 16), draw.few(64, 128), draw.size(4096, 8192)
    return spelled(
        {"x": (b, c, n), "a": (c,)},
        "x + torch.sin(a[:, None] * x) ** 2 / a[:, None]",
        "a = a.view(1, -1, 1)\nx + torch.sin(x * a).pow(2) * a.reciprocal()",
        "a = a[None, :, None]\nx + 1 / a * np.square(np.sin(a * x))",
    )


def dropped(draw: Draw) -> Spelled:
    """A dropout whose mask is given, with a residual."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n), "r": (m, n), "y": (m, n)},
        "y + x * (r > 0.1) / 0.9",
        "y + torch.where(r > 0.1, x / 0.9, 0)",
        "y + np.greater(r, 0.1).astype(x.dtype) * x * (1 / 0.9)",
    )


def heated(draw: Draw) -> Spelled:
    """A softmax of logits over a temperature."""
    m, n = draw.size(2048, 4096), draw.size(1000, 8192)
    return spelled(
        {"x": (m, n)},
        "F.softmax(x / 0.7, dim=-1)",
        "torch.exp(F.log_softmax(x / 0.7, dim=-1))",
        "t = x / 0.7\nt = np.exp(t - t.max(axis=-1, keepdims=True))\n"
        "t / t.sum(axis=-1, keepdims=True)",
    )


def softmin(draw: Draw) -> Spelled:
    """A softmax of negated rows, as weights of a sum."""
    m, n = draw.size(2048, 4096), draw.size(1000, 8192)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "(F.softmin(x, dim=-1) * y).sum(-1)",
        "torch.einsum('mn,mn->m', torch.softmax(-x, 1), y)",
        "t = np.exp(x.min(1, keepdims=True) - x)\n(t * y).sum(1) / t.sum(1)",
    )


def largest_few(draw: Draw) -> Spelled:
    """Rows of which the largest few numbers stay."""
    m, n, k = draw.size(2048, 4096), draw.few(64, 128), draw.few(2, 8)
    return spelled(
        {"x": (m, n)},
        f"torch.where(x >= torch.topk(x, {k}, dim=-1).values[:, -1:], x, 0)",
        f"x.masked_fill(x < x.topk({k}).values.amin(-1, keepdim=True), 0)",
        f"t = np.sort(x, axis=-1)[:, -{k}, None]\nx * (x >= t)",
    )


def centered_log(draw: Draw) -> Spelled:
    """Logarithms minus their means."""
    m, n = draw.size(2048, 4096), draw.size(1000, 4096)
    return spelled(
        {"x": (m, n)},
        "t = torch.log(x.abs() + 1)\nt - t.mean(-1, keepdim=True)",
        f"t = torch.log1p(torch.abs(x))\nt - t.sum(1, keepdim=True) / {n}",
        "t = np.log(1 + np.abs(x))\nt - np.mean(t, axis=1)[:, None]",
    )


def mu_law(draw: Draw) -> Spelled:
    """Sounds with their loudness compressed."""
    m, n = _rows(draw)
    return spelled(
        {"x": (m, n)},
        "torch.sign(x) * torch.log1p(255 * x.abs()) / 5.545177444479562",
        "x.sign() * x.abs().mul(255).log1p().div(5.545177444479562)",
        "np.sign(x) * np.log(1 + 255 * np.abs(x)) * (1 / 5.545177444479562)",
    )


FAMILIES = (
    mish, quick_gelu, gelu_of_errors, gelu_gate, relu_gate, selu, celu, softsign, hard_sigmoid,
    shrunk, log_sigmoid, slopes_of_channels, own_swish, maxout, smooth_step, snake, dropped,
    heated, softmin, largest_few, centered_log, mu_law,
)  # fmt: skip
