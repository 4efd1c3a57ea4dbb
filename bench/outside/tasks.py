"""Modules as benchmarks of kernels pose them: a layer with steps behind it, and parts of models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import torch
import torch.nn.functional as F
from torch import nn

from bench.outside.blocks import with_statistics
from bench.outside.making import OfModule, case
from bench.peers.case import Array, Case

Build = Callable[[Array], nn.Module]
Shapes = tuple[tuple[int, ...], ...]


class Behind(nn.Module):
    """A layer, then a function of its result and of the parameters by these shapes."""

    def __init__(
        self, layer: nn.Module, then: Callable[..., Array], *shapes: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.layer, self.then = layer, then
        self.own = nn.ParameterList(nn.Parameter(0.5 * torch.randn(shape)) for shape in shapes)

    def forward(self, x: Array) -> Array:
        return self.then(self.layer(x), *self.own)


# steps behind a layer -------------------------------------------------------------


def conv(made: int = 16, size: int = 3, **named: int) -> Build:
    return lambda x: (nn.Conv2d, nn.Conv3d)[x.ndim - 4](x.shape[1], made, size, **named)


def transposed(made: int = 16, size: int = 3, **named: int) -> Build:
    kinds = (nn.ConvTranspose2d, nn.ConvTranspose3d)
    return lambda x: kinds[x.ndim - 4](x.shape[1], made, size, **named)


def linear(x: Array) -> nn.Module:
    return nn.Linear(x.shape[1], 2 * x.shape[1])


def spatial_softmax(y: Array, scale: Array) -> Array:
    z = torch.clamp(F.avg_pool3d(y, 2), 0, 1)
    return torch.softmax(z.flatten(2), dim=2).view(z.shape) * scale


def kept_largest(y: Array) -> Array:
    return torch.where(y >= torch.topk(y, 3)[0][..., -1:], y, torch.zeros_like(y))


def response_norm(y: Array, scale: Array, shift: Array) -> Array:
    """ConvNeXt V2's norm of the channels' sizes."""
    size = torch.norm(y, p=2, dim=(2, 3), keepdim=True)
    return scale * (y * (size / (size.mean(1, keepdim=True) + 1e-6))) + shift + y


BY_TWO = dict(stride=2, padding=1)
UP = dict(BY_TWO, output_padding=1)
PLANE, SPACE, ROWS = (
    dict(B=16, C=16, H=64, W=63), dict(B=8, C=8, D=16, H=30, W=32), dict(M=1024, K=1024),
)  # fmt: skip
LSE = torch.logsumexp

STEPS: tuple[tuple[str, Mapping[str, int], Build, Callable[..., Array], Shapes], ...] = (
    ("clamped-twice", PLANE, transposed(**UP),
     lambda y, b: torch.clamp(torch.clamp(y + b, 0, 1) * 2.0, 0, 1) / 2.0, ((16, 1, 1),)),
    ("softmax-bias-sigmoid", PLANE, transposed(size=4, **UP),
     lambda y, b: torch.sigmoid((torch.softmax(y, 1) + b) * 2.0), ((16, 1, 1),)),
    ("min-sum-gelu", PLANE, transposed(**UP),
     lambda y, b: F.gelu(y.amin(1, keepdim=True).sum(2, keepdim=True)) + b, ((16, 1, 1),)),
    ("mean-logsumexp-sum", PLANE, transposed(),
     lambda y, b: LSE(y.mean((2, 3), keepdim=True) + b, 1, keepdim=True).sum((2, 3)) * 10,
     ((16, 1, 1),)),
    ("pool-hardtanh-mean", PLANE, transposed(size=4, padding=1),
     lambda y: torch.tanh(F.hardtanh(F.max_pool2d(y, 2)).mean((2, 3), keepdim=True)), ()),
    ("group-norm-residual-logsumexp", PLANE, conv(),
     lambda y: LSE(y + F.hardswish(torch.tanh(F.group_norm(y, 4))), 1, keepdim=True), ()),
    ("sigmoid-group-norm", PLANE, conv(),
     lambda y, b, c: F.group_norm(torch.sigmoid((y + b) * c), 4), ((16, 1, 1),) * 2),
    ("pool-sigmoid-sum", PLANE, conv(),
     lambda y: torch.sigmoid(F.avg_pool2d(y, 2)).sum((1, 2, 3)), ()),
    ("largest-of-three", PLANE, conv(made=24),
     lambda y: y.view(y.shape[0], 8, 3, *y.shape[2:]).max(2)[0], ()),
    ("response-norm", PLANE, conv(), response_norm, ((1, 16, 1, 1),) * 2),
    ("softmax-two-pools", SPACE, conv(),
     lambda y: F.max_pool3d(F.max_pool3d(torch.softmax(y, 1), 2), 2), ()),
    ("min-softmax", SPACE, conv(), lambda y: torch.softmax(y.amin(2), 1), ()),
    ("instance-norm-clamp-max", SPACE, conv(),
     lambda y, a: (torch.clamp(F.instance_norm(y * a), -1, 1) * a).amax(1), ((16, 1, 1, 1),)),
    ("group-norm-clamp-mean", SPACE, conv(),
     lambda y: torch.clamp(F.group_norm(y, 8), min=0.1).mean((1, 2, 3, 4)), ()),
    ("pool-softmax-swish-max", SPACE, transposed(**UP),
     lambda y, b: F.silu(F.max_pool3d(y, 2).softmax(1) - b).amax(1), ((16, 1, 1, 1),)),
    ("spatial-softmax", SPACE, transposed(**UP), spatial_softmax, ((1, 16, 1, 1, 1),)),
    ("added-twice", SPACE, transposed(**UP), lambda y, b: ((y + b) + y) * y + y, ((16, 1, 1, 1),)),
    ("clamp-logsumexp-mish", ROWS, linear,
     lambda y: (lambda z: z * F.mish(z))(LSE(torch.clamp(4 * y, -10, 10), 1, keepdim=True)), ()),
    ("group-norm-min-bias", ROWS, linear,
     lambda y, b: F.group_norm(y, 4).amin(1, keepdim=True) + b, ((1, 64, 1, 1),)),
    ("batch-statistics", ROWS, linear, lambda y: F.gelu(F.batch_norm(y, None, None, training=True)),
     ()),
    ("kept-largest", ROWS, linear, kept_largest, ()),
    ("running-softplus", ROWS, linear, lambda y: torch.cumsum(F.softplus(y), -1), ()),
)  # fmt: skip


# parts of models ------------------------------------------------------------------


class Recurrent(nn.Module):
    """The last state of a recurrent layer decides."""

    def __init__(self, layer: nn.Module, hidden: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(hidden, 10)

    def forward(self, x: Array) -> Array:
        return self.head(self.layer(x)[0][:, -1])


class ShiftedWindows(nn.Module):
    """Attention of Swin's windows, with a table of biases."""

    def __init__(self, width: int, side: int, window: int, heads: int) -> None:
        super().__init__()
        self.side, self.window, self.heads = side, window, heads
        self.packed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads))
        places = torch.stack(torch.meshgrid([torch.arange(window)] * 2, indexing="ij")).flatten(1)
        apart = places[:, :, None] - places[:, None] + window - 1
        self.register_buffer("which", apart[0] * (2 * window - 1) + apart[1])

    def forward(self, x: Array) -> Array:
        b, _, c = x.shape
        n, w = self.side // self.window, self.window
        y = torch.roll(x.view(b, self.side, self.side, c), (-1, -1), (1, 2))
        y = y.view(b, n, w, n, w, c).transpose(2, 3).reshape(-1, w * w, c)
        q, k, v = (
            self.packed(y).view(-1, w * w, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        )
        bias = self.table[self.which.view(-1)].view(w * w, w * w, -1).permute(2, 0, 1)
        a = torch.softmax(q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5 + bias, -1)
        y = self.out((a @ v).transpose(1, 2).reshape(-1, w * w, c))
        y = y.view(b, n, n, w, w, c).transpose(2, 3).reshape(b, self.side, self.side, c)
        return x + torch.roll(y, (1, 1), (1, 2)).reshape(x.shape)


class TalkingHeads(nn.Module):
    """Attention whose heads are mixed before and behind the softmax."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.packed = heads, nn.Linear(width, 3 * width)
        self.before, self.behind = nn.Linear(heads, heads), nn.Linear(heads, heads)

    def forward(self, x: Array) -> Array:
        b, n, d = x.shape
        q, k, v = self.packed(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (d // self.heads) ** -0.5
        a = self.before(scores.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).softmax(-1)
        a = self.behind(a.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return (a @ v).transpose(1, 2).reshape(b, n, d)


class ChannelsAttend(nn.Module):
    """XCiT: features attend to features."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.packed = heads, nn.Linear(width, 3 * width)
        self.warmth = nn.Parameter(torch.ones(heads, 1, 1))

    def forward(self, x: Array) -> Array:
        b, n, d = x.shape
        q, k, v = self.packed(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 4, 1)
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        a = (q @ k.transpose(-2, -1) * self.warmth).softmax(-1)
        return (a @ v).permute(0, 3, 1, 2).reshape(b, n, d)


class Conditioned(nn.Module):
    """The half of DiT's block that works on each token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.told = nn.Sequential(nn.SiLU(), nn.Linear(width, 3 * width))
        self.first, self.last = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Array, c: Array) -> Array:
        shift, scale, gate = (t.unsqueeze(1) for t in self.told(c).chunk(3, 1))
        y = self.norm(x) * (1 + scale) + shift
        return x + gate * self.last(F.gelu(self.first(y), approximate="tanh"))


class NonLocal(nn.Module):
    """Pixels attend to a smaller image."""

    def __init__(self, c: int) -> None:
        super().__init__()
        few = c // 2
        self.queries, self.keys, self.values = (nn.Conv2d(c, few, 1) for _ in range(3))
        self.out = nn.Conv2d(few, c, 1)

    def forward(self, x: Array) -> Array:
        b, _, height, width = x.shape
        q = self.queries(x).flatten(2).transpose(1, 2)
        k, v = (F.max_pool2d(t(x), 2).flatten(2) for t in (self.keys, self.values))
        y = torch.softmax(q @ k, -1) @ v.transpose(1, 2)
        return x + self.out(y.transpose(1, 2).reshape(b, -1, height, width))


class Involution(nn.Module):
    """A filter for each place, made of what is there."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.reduce, self.span = nn.Conv2d(c, 4, 1), nn.Conv2d(4, 18, 1)

    def forward(self, x: Array) -> Array:
        b, c, height, width = x.shape
        w = self.span(F.relu(self.reduce(x))).view(b, 2, 1, 9, height, width)
        around = F.unfold(x, 3, padding=1).view(b, 2, c // 2, 9, height, width)
        return (w * around).sum(3).view(x.shape)


class Coordinates(nn.Module):
    """Attention to rows and to columns."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.both, self.rows, self.columns = (
            nn.Conv2d(c, c // 2, 1), nn.Conv2d(c // 2, c, 1), nn.Conv2d(c // 2, c, 1),
        )  # fmt: skip

    def forward(self, x: Array) -> Array:
        height, width = x.shape[2:]
        means = torch.cat([x.mean(3, keepdim=True), x.mean(2, keepdim=True).mT], 2)
        rows, columns = torch.split(F.hardswish(self.both(means)), [height, width], 2)
        return x * self.rows(rows).sigmoid() * self.columns(columns.mT).sigmoid()


class Routed(nn.Module):
    """Capsules agree in three rounds."""

    def forward(self, u: Array) -> Array:
        b = torch.zeros(u.shape[:3], device=u.device, dtype=u.dtype)
        for _ in range(3):
            v = (torch.softmax(b, 2)[..., None] * u).sum(1)
            size = (v**2).sum(-1, keepdim=True)
            v = size / (1 + size) * v / torch.sqrt(size + 1e-4)
            b = b + (u * v[:, None]).sum(-1)
        return v


class Biased(nn.Module):
    """Causal attention with a slope for each head, all from one layer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.packed = heads, nn.Linear(width, 3 * width)
        self.register_buffer("slopes", 2.0 ** -torch.arange(1.0, heads + 1))

    def forward(self, x: Array) -> Array:
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.packed(x).split(d, 2))
        at = torch.arange(n, device=x.device)
        bias = (self.slopes[:, None, None] * (at[None] - at[:, None])).to(x.dtype)
        later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.mT / math.sqrt(d // self.heads) + bias).masked_fill(later, -math.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def gru(x: Array) -> nn.Module:
    return Recurrent(nn.GRU(x.shape[2], 2 * x.shape[2], batch_first=True), 2 * x.shape[2])


def lstm_both_ways(x: Array) -> nn.Module:
    width = x.shape[2]
    return Recurrent(nn.LSTM(width, width, 2, batch_first=True, bidirectional=True), 2 * width)


def windows(x: Array) -> nn.Module:
    side = math.isqrt(x.shape[1])
    return ShiftedWindows(x.shape[2], side, 7 if side % 7 == 0 else 2, 3)


TOKENS, MAPS = dict(B=8, S=196, E=384), dict(B=8, C=64, H=28, W=30)
MODELS: tuple[tuple[str, str, Mapping[str, int], Build, Mapping[str, int]], ...] = (
    ("gru", "B S E", dict(B=10, S=64, E=128), gru, dict(S=5, E=6)),
    ("lstm-both-ways", "B S E", dict(B=10, S=64, E=128), lstm_both_ways, dict(S=5, E=6)),
    ("shifted-windows", "B S E", dict(B=8, S=784, E=96), windows, dict(S=16, E=12)),
    ("talking-heads", "B S E", TOKENS, lambda x: TalkingHeads(x.shape[2], 4), dict(S=9, E=16)),
    ("channels-attend", "B S E", TOKENS, lambda x: ChannelsAttend(x.shape[2], 4),
     dict(S=9, E=16)),
    ("biased-heads", "B S E", dict(TOKENS, S=1000, E=512), lambda x: Biased(x.shape[2], 8),
     dict(S=9, E=16)),
    ("non-local", "B C H W", dict(MAPS, C=128, H=32, W=32), lambda x: NonLocal(x.shape[1]),
     dict(C=8, H=4, W=6)),
    ("involution", "B C H W", MAPS, lambda x: Involution(x.shape[1]), dict(C=8, H=5, W=6)),
    ("coordinates", "B C H W", MAPS, lambda x: Coordinates(x.shape[1]), dict(C=8, H=5, W=6)),
    ("routed-capsules", "B N 10 16", dict(B=16, N=1152), lambda x: Routed(), dict(N=6)),
)  # fmt: skip
BEHIND, PARTS = "layers with steps", "parts of models"
FEW = dict(C=4, D=9, H=10, W=11, M=6, K=32)


def _cases() -> Iterator[Case]:
    for name, sizes, layer, then, shapes in STEPS:
        few = {dim: FEW[dim] for dim in sizes if dim != "B"}
        yield case(BEHIND, OfModule(of_steps(layer, then, shapes)), " ".join(sizes), sizes,
                   name=name, few=few)  # fmt: skip
    for name, dims, sizes, build, few in MODELS:
        yield case(PARTS, OfModule(build), dims, sizes, name=name, few=few)
    told = OfModule(lambda x, c: Conditioned(x.shape[2]))
    yield case(PARTS, told, "B S E, B E", TOKENS, name="conditioned", few=dict(S=9, E=16))


def of_steps(layer: Build, then: Callable[..., Array], shapes: Shapes) -> Build:
    """What makes the module of a layer and the steps behind it."""
    return lambda x: with_statistics(Behind(layer(x), then, *shapes))


CASES = tuple(_cases())
