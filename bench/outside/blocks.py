"""Convolutional blocks that people know by name, each made from the number of channels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from bench.peers.case import Array

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def with_statistics(module: nn.Module) -> nn.Module:
    """The module as after training: batch norms know means and variances."""
    for part in module.modules():
        if isinstance(part, BATCH_NORMS):
            nn.init.normal_(part.running_mean, std=0.5)
            nn.init.uniform_(part.running_var, 0.5, 1.5)
    return module


def conv(module: nn.Module) -> nn.Module:
    """The last convolution of a module."""
    kinds = nn.modules.conv._ConvNd
    return [part for part in module.modules() if isinstance(part, kinds)][-1]


class Residual(nn.Module):
    """x + path(x), or shortcut(x) + path(x), and what comes behind the sum."""

    def __init__(
        self, path: nn.Module, shortcut: nn.Module | None = None, last: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.path, self.shortcut, self.last = path, shortcut, last

    def forward(self, x: Array) -> Array:
        made = self.path(x) + (x if self.shortcut is None else self.shortcut(x))
        return made if self.last is None else self.last(made)


class Joined(nn.Module):
    """The results of several paths, one behind the other along the channels."""

    def __init__(self, *paths: nn.Module) -> None:
        super().__init__()
        self.paths = nn.ModuleList(paths)

    def forward(self, x: Array) -> Array:
        return torch.cat([path(x) for path in self.paths], dim=1)


def normed(
    channels: int, made: int, size: int, stride: int = 1, *, groups: int = 1, dilation: int = 1,
    then: Sequence[nn.Module] = (),
) -> nn.Sequential:  # fmt: skip
    """A convolution without bias, a batch norm, and what comes behind them."""
    pad = dilation * (size // 2)
    layer = nn.Conv2d(channels, made, size, stride, pad, dilation, groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(made), *then)


def rectified(channels: int, made: int, size: int, stride: int = 1, groups: int = 1) -> nn.Module:
    return normed(channels, made, size, stride, groups=groups, then=[nn.ReLU(inplace=True)])


# residual blocks ------------------------------------------------------------------


def basic(c: int) -> nn.Module:
    """The basic block of ResNet."""
    return Residual(nn.Sequential(rectified(c, c, 3), normed(c, c, 3)), last=nn.ReLU())


def basic_down(c: int) -> nn.Module:
    path = nn.Sequential(rectified(c, 2 * c, 3, 2), normed(2 * c, 2 * c, 3))
    return Residual(path, normed(c, 2 * c, 1, 2), nn.ReLU())


def bottleneck(c: int) -> nn.Module:
    few = c // 4
    path = nn.Sequential(rectified(c, few, 1), rectified(few, few, 3), normed(few, c, 1))
    return Residual(path, last=nn.ReLU())


def grouped_bottleneck(c: int) -> nn.Module:
    """That of ResNeXt."""
    few, groups = c // 2, 4
    path = (rectified(c, few, 1), rectified(few, few, 3, groups=groups), normed(few, c, 1))
    return Residual(nn.Sequential(*path), last=nn.ReLU())


def preactivated(c: int) -> nn.Module:
    layers = (nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1))
    return Residual(nn.Sequential(*layers, nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c, 1)))


def inverted_residual(c: int) -> nn.Module:
    """That of MobileNet."""
    wide, clip = 4 * c, [nn.ReLU6()]
    path = (normed(c, wide, 1, then=clip), normed(wide, wide, 3, groups=wide, then=clip))
    return Residual(nn.Sequential(*path, normed(wide, c, 1)))


def diffusion(c: int) -> nn.Module:
    layers = (nn.GroupNorm(4, c), nn.SiLU(), nn.Conv2d(c, c, 3, padding=1))
    return Residual(nn.Sequential(*layers))


class ConvNext(nn.Module):
    """The block of ConvNeXt: one wide filter for each channel, then layers of pixels."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.filter, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c, eps=1e-6)
        self.layers = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c))
        self.scale = nn.Parameter(torch.full((c,), 0.1))

    def forward(self, x: Array) -> Array:
        made = self.layers(self.norm(self.filter(x).permute(0, 2, 3, 1)))
        return x + (self.scale * made).permute(0, 3, 1, 2)


# chains ---------------------------------------------------------------------------


def separable(c: int) -> nn.Module:
    return nn.Sequential(rectified(c, c, 3, groups=c), rectified(c, 2 * c, 1))


def double_conv(c: int) -> nn.Module:
    """That of U-Net."""
    return nn.Sequential(rectified(c, 2 * c, 3), rectified(2 * c, 2 * c, 3))


def up_conv(c: int) -> nn.Module:
    layer = nn.ConvTranspose2d(c, c // 2, 2, stride=2)
    return nn.Sequential(layer, nn.BatchNorm2d(c // 2), nn.ReLU())


def vgg(c: int) -> nn.Module:
    layers = (nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU())
    return nn.Sequential(*layers, nn.MaxPool2d(2))


def stem(c: int) -> nn.Module:
    """The first layers of ResNet."""
    return nn.Sequential(rectified(c, 64, 7, 2), nn.MaxPool2d(3, stride=2, padding=1))


def pixel_shuffled(c: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(c, 12, 3, padding=1), nn.PixelShuffle(2), nn.Tanh())


def nearest_conv(c: int) -> nn.Module:
    return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(c, c, 3, padding=1))


def generator(c: int) -> nn.Module:
    """A block of DCGAN's generator."""
    layer = nn.ConvTranspose2d(c, c // 2, 4, stride=2, padding=1, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(c // 2), nn.ReLU())


def discriminator(c: int) -> nn.Module:
    layer = nn.Conv2d(c, 2 * c, 4, stride=2, padding=1)
    return nn.Sequential(layer, nn.InstanceNorm2d(2 * c), nn.LeakyReLU(0.2))


def local_response(c: int) -> nn.Module:
    """A layer of AlexNet."""
    layers = (nn.Conv2d(c, c, 5, padding=2), nn.ReLU(), nn.LocalResponseNorm(5))
    return nn.Sequential(*layers, nn.MaxPool2d(3, stride=2))


def head(c: int) -> nn.Module:
    pooled = (nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(rectified(c, 4 * c, 1), *pooled, nn.Linear(4 * c, 100))


class Scaled(nn.Module):
    """Squeeze and excitation by convolutions of one pixel."""

    def __init__(self, c: int) -> None:
        super().__init__()
        few = (nn.Conv2d(c, c // 4, 1), nn.ReLU(), nn.Conv2d(c // 4, c, 1), nn.Sigmoid())
        self.scale = nn.Sequential(nn.AdaptiveAvgPool2d(1), *few)

    def forward(self, x: Array) -> Array:
        return x * self.scale(x)


def squeeze_excited(c: int) -> nn.Module:
    return nn.Sequential(rectified(c, c, 3), Scaled(c))


class PatchEmbedding(nn.Module):
    """Patches of 16 × 16 pixels as rows of features."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.layer, self.norm = nn.Conv2d(c, 256, 16, stride=16), nn.LayerNorm(256)

    def forward(self, x: Array) -> Array:
        return self.norm(self.layer(x).flatten(2).transpose(1, 2))


# paths side by side ---------------------------------------------------------------


class DenseLayer(nn.Module):
    """A layer of DenseNet, which adds channels to those that it reads."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, 64, 1, bias=False))
        self.second = nn.Sequential(nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 32, 3, padding=1))

    def forward(self, x: Array) -> Array:
        return torch.cat((x, self.second(self.first(x))), dim=1)


class Fire(nn.Module):
    """The module of SqueezeNet."""

    def __init__(self, c: int) -> None:
        super().__init__()
        few = c // 4
        self.squeeze = nn.Conv2d(c, few, 1)
        self.paths = Joined(nn.Conv2d(few, c, 1), nn.Conv2d(few, c, 3, padding=1))

    def forward(self, x: Array) -> Array:
        return F.relu(self.paths(F.relu(self.squeeze(x))))


def inception(c: int) -> nn.Module:
    few = c // 4
    pooled = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), nn.Conv2d(c, few, 1))
    return Joined(nn.Conv2d(c, few, 1), rectified(c, few, 3), pooled)


class Ghost(nn.Module):
    """Half of the channels by a cheap filter of the other half."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.first, self.cheap = rectified(c, c // 2, 1), rectified(c // 2, c // 2, 3, 1, c // 2)

    def forward(self, x: Array) -> Array:
        made = self.first(x)
        return torch.cat((made, self.cheap(made)), dim=1)


def shuffle_unit(c: int) -> nn.Module:
    layers = (rectified(c, c, 1, groups=2), nn.ChannelShuffle(2), normed(c, c, 3, groups=c))
    return Residual(nn.Sequential(*layers), last=nn.ReLU())


def dilations(c: int) -> nn.Module:
    few = c // 4
    return Joined(normed(c, few, 1), *(normed(c, few, 3, dilation=n) for n in (2, 3)))


class SpatialAttention(nn.Module):
    """The half of CBAM that weighs places."""

    def __init__(self, c: int) -> None:
        super().__init__()
        del c
        self.layer = nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, x: Array) -> Array:
        found = torch.cat((x.mean(1, keepdim=True), x.amax(1, keepdim=True)), dim=1)
        return x * torch.sigmoid(self.layer(found))


# of one and three axes ------------------------------------------------------------


class TextCnn(nn.Module):
    """Filters of several widths, and the maximum of each over time."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.filters = nn.ModuleList(nn.Conv1d(c, 32, width) for width in (3, 4, 5))
        self.layer = nn.Linear(96, 10)

    def forward(self, x: Array) -> Array:
        found = [F.relu(layer(x)).amax(-1) for layer in self.filters]
        return self.layer(torch.cat(found, dim=1))


class CausalDilated(nn.Module):
    """A layer of WaveNet: gates of a dilated filter that reads no later elements."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.gates, self.out = nn.Conv1d(c, 2 * c, 2, dilation=4), nn.Conv1d(c, c, 1)

    def forward(self, x: Array) -> Array:
        signal, gate = self.gates(F.pad(x, (4, 0))).chunk(2, dim=1)
        return x + self.out(torch.tanh(signal) * torch.sigmoid(gate))


class ShortCausal(nn.Module):
    """The short filter of state-space models; the padding on the right is cut away."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.filter = nn.Conv1d(c, c, 4, padding=3, groups=c)

    def forward(self, x: Array) -> Array:
        return F.silu(self.filter(x)[..., : x.shape[-1]])


def sound_up(c: int) -> nn.Module:
    """A block of a vocoder that makes signals longer."""
    return nn.Sequential(nn.LeakyReLU(0.1), nn.ConvTranspose1d(c, c // 2, 8, stride=4, padding=2))


def video(c: int) -> nn.Module:
    return nn.Sequential(nn.Conv3d(c, c, 3, padding=1), nn.ReLU(), nn.MaxPool3d((1, 2, 2)))


def video_apart(c: int) -> nn.Module:
    """A filter along rows and columns, then one along time."""
    first = nn.Conv3d(c, c, (1, 3, 3), padding=(0, 1, 1))
    second = nn.Conv3d(c, c, (3, 1, 1), padding=(1, 0, 0))
    return nn.Sequential(first, nn.BatchNorm3d(c), nn.ReLU(), second)
