"""Convolutional layers: blocks that people know by name, and some drawn by a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from torch import nn

from bench.outside import blocks
from bench.outside.blocks import Residual, conv
from bench.outside.making import OfModule, case
from bench.peers.case import Array, Case

Build = Callable[[int], nn.Module]
"""Makes a module from the number of channels."""

# blocks by name -------------------------------------------------------------------

IMAGE, SMALL_IMAGE = dict(B=32, C=64, H=56, W=56), dict(B=32, C=256, H=14, W=14)
WIDE_IMAGE, LARGE_IMAGE = dict(B=16, C=128, H=28, W=28), dict(B=8, C=32, H=128, W=128)
PHOTO, SOUND, VIDEO = (
    dict(B=32, C=3, H=224, W=224), dict(B=16, C=128, L=2048), dict(B=4, C=32, D=8, H=28, W=28),
)  # fmt: skip
FEW: Mapping[str, int] = dict(C=8, H=6, W=8, L=12, D=4)

NAMED: tuple[tuple[str, Build, Mapping[str, int]], ...] = (
    ("basic-block", blocks.basic, IMAGE), ("basic-block-down", blocks.basic_down, IMAGE),
    ("bottleneck", blocks.bottleneck, SMALL_IMAGE), ("pre-activated", blocks.preactivated, IMAGE),
    ("grouped-bottleneck", blocks.grouped_bottleneck, WIDE_IMAGE),
    ("inverted-residual", blocks.inverted_residual, WIDE_IMAGE),
    ("separable", blocks.separable, WIDE_IMAGE), ("convnext", blocks.ConvNext, WIDE_IMAGE),
    ("double-conv", blocks.double_conv, LARGE_IMAGE), ("up-conv", blocks.up_conv, WIDE_IMAGE),
    ("squeeze-excited-conv", blocks.squeeze_excited, IMAGE),
    ("dense-layer", blocks.DenseLayer, WIDE_IMAGE), ("vgg", blocks.vgg, IMAGE),
    ("stem", blocks.stem, PHOTO), ("patch-embedding", blocks.PatchEmbedding, PHOTO),
    ("fire", blocks.Fire, WIDE_IMAGE), ("inception", blocks.inception, SMALL_IMAGE),
    ("ghost", blocks.Ghost, WIDE_IMAGE), ("shuffle-unit", blocks.shuffle_unit, WIDE_IMAGE),
    ("pyramid-of-dilations", blocks.dilations, SMALL_IMAGE),
    ("pixel-shuffled", blocks.pixel_shuffled, LARGE_IMAGE),
    ("nearest-conv", blocks.nearest_conv, WIDE_IMAGE),
    ("diffusion-block", blocks.diffusion, WIDE_IMAGE),
    ("generator-block", blocks.generator, WIDE_IMAGE),
    ("discriminator-block", blocks.discriminator, LARGE_IMAGE),
    ("local-response", blocks.local_response, IMAGE),
    ("spatial-attention", blocks.SpatialAttention, IMAGE),
    ("classifier-head", blocks.head, SMALL_IMAGE),
    ("text-cnn", blocks.TextCnn, SOUND), ("causal-dilated", blocks.CausalDilated, SOUND),
    ("short-causal", blocks.ShortCausal, SOUND), ("sound-up", blocks.sound_up, SOUND),
    ("video", blocks.video, VIDEO), ("video-apart", blocks.video_apart, VIDEO),
)  # fmt: skip

# blocks by seed -------------------------------------------------------------------

CONVS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
INSTANCE_NORMS = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
MAX_POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)
AVG_POOLS = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
Layer = Callable[[int, int], nn.Module]
"""Makes a layer from the number of axes, less one, and the number of channels."""

PRODUCTS: Mapping[str, Layer] = {
    "conv-1": lambda at, c: CONVS[at](c, 2 * c, 1),
    "conv-3": lambda at, c: CONVS[at](c, 2 * c, 3, padding=1),
    "conv-5-to-half": lambda at, c: CONVS[at](c, c // 2, 5, padding=2),
    "conv-3-by-2": lambda at, c: CONVS[at](c, 2 * c, 3, stride=2, padding=1),
    "conv-4-by-2": lambda at, c: CONVS[at](c, c, 4, stride=2, padding=1, bias=False),
    "conv-3-dilated": lambda at, c: CONVS[at](c, c, 3, padding=2, dilation=2),
    "conv-3-in-4-groups": lambda at, c: CONVS[at](c, c, 3, padding=1, groups=4),
    "depthwise-3": lambda at, c: CONVS[at](c, c, 3, padding="same", groups=c),
    "separable-3": lambda at, c: nn.Sequential(
        CONVS[at](c, c, 3, padding=1, groups=c, bias=False), CONVS[at](c, c, 1)
    ),
    "transposed-2-by-2": lambda at, c: TRANSPOSED[at](c, c // 2, 2, stride=2),
    "transposed-4-by-2": lambda at, c: TRANSPOSED[at](c, c // 2, 4, stride=2, padding=1),
    "transposed-3-by-2": lambda at, c: TRANSPOSED[at](
        c, c, 3, stride=2, padding=1, output_padding=1
    ),
}
NORMS: Mapping[str, Layer] = {
    "batch-norm": lambda at, c: BATCH_NORMS[at](c),
    "instance-norm": lambda at, c: INSTANCE_NORMS[at](c, affine=True),
    "group-norm": lambda at, c: nn.GroupNorm(4, c),
}
ACTIVATIONS: Mapping[str, Layer] = {
    word: lambda at, c, kind=kind: kind()
    for word, kind in (
        ("relu", nn.ReLU), ("gelu", nn.GELU), ("silu", nn.SiLU), ("tanh", nn.Tanh),
        ("leaky-relu", nn.LeakyReLU), ("hardswish", nn.Hardswish), ("mish", nn.Mish),
        ("sigmoid", nn.Sigmoid), ("elu", nn.ELU), ("relu6", nn.ReLU6),
    )
}  # fmt: skip
POOLS: Mapping[str, Layer] = {
    "max-pool-2": lambda at, c: MAX_POOLS[at](2),
    "max-pool-3-by-2": lambda at, c: MAX_POOLS[at](3, stride=2, padding=1),
    "avg-pool-2": lambda at, c: AVG_POOLS[at](2),
    "avg-pool-3": lambda at, c: AVG_POOLS[at](3, stride=1, padding=1, count_include_pad=False),
}
SAME_SHAPE = ("depthwise-3", "separable-3", "conv-3-dilated", "conv-3-in-4-groups")
SHORTER = ("max-pool-2", "max-pool-3-by-2", "avg-pool-2")
PLACES = (dict(L=1024), dict(H=28, W=28), dict(D=8, H=16, W=16))
BATCHES, CHANNELS = (32, 16, 4), (32, 64, 128)
SEEDS = ("elder", "fir", "gorse", "hazel")
DRAWN = 7


def drawn(seed: str) -> tuple[Case, ...]:
    """Some cases that follow from a word: a convolution, then a norm, an activation and a pool."""
    random = Random(f"convolutions {seed}")
    return tuple(_drawn(f"{seed}{at}", random) for at in range(DRAWN))


def _drawn(name: str, random: Random) -> Case:
    at = random.choice((0, 1, 1, 1, 2))
    word = random.choice(sorted(PRODUCTS))
    picked = [random.choice(sorted(kinds)) for kinds in (NORMS, ACTIVATIONS)]
    picked += [random.choice(sorted(POOLS))] if random.random() < 0.5 else []
    random.shuffle(picked)
    if word in SAME_SHAPE and random.random() < 0.5:
        shorter = [place for place, step in enumerate(picked) if step in SHORTER]
        picked.insert(random.randint(0, min([len(picked), *shorter])), "residual")
    sizes = dict(B=BATCHES[at], C=random.choice(CHANNELS)) | PLACES[at]
    words = [word, *picked]
    dtype = "float32" if random.random() < 0.25 else "float16"
    full = "-".join((name, *words))
    return image_case("convolutions", full, lambda c: layers(words, at, c), sizes, dtype=dtype)


def layers(words: Sequence[str], at: int, channels: int) -> nn.Module:
    """The layers of these names in turn; what stands in front of ``residual`` is added to."""
    made = [PRODUCTS[words[0]](at, channels)]
    width = conv(made[0]).out_channels
    for word in words[1:]:
        if word == "residual":
            made = [Residual(nn.Sequential(*made))]
        else:
            made.append((NORMS | ACTIVATIONS | POOLS)[word](at, width))
    return nn.Sequential(*made)


def image_case(
    family: str, name: str, build: Build, sizes: Mapping[str, int], *, dtype: str = "float16"
) -> Case:
    """A case of a module for images of these sizes."""

    def of(x: Array) -> nn.Module:
        return blocks.with_statistics(build(x.shape[1]))

    few = {dim: n if dim == "C" and n < 8 else FEW[dim] for dim, n in sizes.items() if dim != "B"}
    few |= dict.fromkeys("HW", 32) if sizes == PHOTO else {}
    return case(family, OfModule(of), " ".join(sizes), sizes, name=name, few=few, dtype=dtype)


def _cases() -> Iterator[Case]:
    for at, (name, build, sizes) in enumerate(NAMED):
        dtype = "float32" if at % 7 == 3 else "float16"
        yield image_case("convolution blocks", name, build, sizes, dtype=dtype)
    for seed in SEEDS:
        yield from drawn(seed)


CASES = tuple(_cases())
