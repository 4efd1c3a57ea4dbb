"""Modules of ``torch.nn``: ours is ``bb.jit`` of the module itself, whose weights it finds."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from bench.outside.making import OfModule, case
from bench.peers.case import Array, Case


class SelfAttention(nn.Module):
    """nn.MultiheadAttention of one sequence with itself."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 8, batch_first=True)

    def forward(self, x: Array) -> Array:
        return self.attention(x, x, x, need_weights=False)[0]


class Mixer(nn.Module):
    """A whole block of MLP-Mixer."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.of_tokens = two_layers(tokens, tokens * 2)
        self.of_channels = two_layers(width, width * 4)

    def forward(self, x: Array) -> Array:
        x = x + self.of_tokens(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.of_channels(self.second(x))


class Excited(nn.Module):
    """Squeeze and excitation with nn.Linear."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.layers = nn.Sequential(
            nn.Linear(channels, channels // 8), nn.ReLU(inplace=True),
            nn.Linear(channels // 8, channels), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: Array) -> Array:
        batch, channels, _, _ = x.shape
        scale = self.layers(self.pool(x).view(batch, channels)).view(batch, channels, 1, 1)
        return x * scale.expand_as(x)


def cell_of(kind: type[nn.Module]) -> OfModule:
    """A cell with twice as many states as inputs, from the state 0."""
    return OfModule(lambda x: kind(x.shape[-1], 2 * x.shape[-1]))


def two_layers(width: int, hidden: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


def normed_layer(x: Array) -> nn.Module:
    width = x.shape[-1]
    return nn.Sequential(nn.Linear(width, 2 * width), nn.LayerNorm(2 * width), nn.Hardswish())


def classifier(x: Array) -> nn.Module:
    width = x.shape[-1]
    return nn.Sequential(
        nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(width, 10), nn.LogSoftmax(dim=1),
    )  # fmt: skip


def grouped_layer(x: Array) -> nn.Module:
    width = x.shape[-1]
    return nn.Sequential(nn.Linear(width, width), nn.GroupNorm(8, width), nn.Mish())


def pooled_layer(x: Array) -> nn.Module:
    return nn.Sequential(nn.Linear(x.shape[-1], 1024), nn.AvgPool1d(4), nn.ELU())


def encoder_layer(x: Array) -> nn.Module:
    width = x.shape[-1]
    return nn.TransformerEncoderLayer(width, 8, 4 * width, activation="gelu", batch_first=True)


MODULES = "torch modules"
TOKENS = dict(B=16, S=197, E=768)


def _cases() -> Iterator[Case]:
    wide, few = dict(M=1024, K=2048), dict(E=32)
    for build in (normed_layer, classifier, grouped_layer):
        yield case(MODULES, OfModule(build), "M K", wide, few=dict(K=32))
    yield case(MODULES, OfModule(pooled_layer), "B S K", dict(B=8, S=255, K=512))
    of_tokens = (
        ("self-attention", lambda x: SelfAttention(x.shape[-1])),
        ("encoder-layer", encoder_layer),
        ("mixer", lambda x: Mixer(*x.shape[1:])),
    )
    for name, build in of_tokens:
        yield case(MODULES, OfModule(build), "B S E", TOKENS, name=f"module-{name}", few=few)
    image = dict(B=16, C=256, H=28, W=28)
    yield case(MODULES, OfModule(lambda x: Excited(x.shape[1])), "B C H W", image, name="excited")
    yield case(MODULES, OfModule(lambda x: nn.PixelShuffle(2)), "B C H W", image, name="pixels")
    cells = (("rnn", nn.RNNCell), ("gru", nn.GRUCell), ("lstm", nn.LSTMCell))
    for name, cell in cells:
        name = f"module-{name}-cell"
        yield case(MODULES, cell_of(cell), "B I", dict(B=64, I=512), name=name, few=dict(I=16))
    bilinear = OfModule(lambda x, y: nn.Bilinear(x.shape[-1], y.shape[-1], 64))
    yield case(MODULES, bilinear, "B I, B J", dict(B=512, I=128, J=96), name="module-bilinear")
    yield case(
        MODULES, OfModule(lambda x: nn.Softmax2d()), "B C H W", image, name="module-softmax2d"
    )


CASES = tuple(_cases())
