"""Sums, extrema, norms and softmax along first, middle and last axes of ranks 1 to 5."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from bench.outside.making import case
from bench.peers.case import Array, Case

Fold = Callable[[Array], Array]
AXES = "IJKLM"


def along(name: str, axis: int) -> Fold:
    """A fold of torch along one axis."""
    function = getattr(torch, name)
    return lambda x: function(x, dim=axis)


def largest(axis: int) -> Fold:
    return lambda x: x.max(dim=axis).values


def length(axis: int) -> Fold:
    return lambda x: torch.linalg.vector_norm(x, dim=axis)


def scaled_by(p: int, axis: int) -> Fold:
    return lambda x: x / torch.norm(x, p=p, dim=axis, keepdim=True)


def unit(x: Array) -> Array:
    """Divided by the Frobenius norm of all."""
    return x / torch.norm(x, p="fro")


def rms_of_channels(x: Array) -> Array:
    return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + 1e-5)


def layer_norm_of_three(x: Array, g: Array, h: Array) -> Array:
    return F.layer_norm(x, x.shape[1:], g, h)


def group_norm(x: Array, g: Array, h: Array) -> Array:
    return F.group_norm(x, 8, g, h)


def instance_norm(x: Array) -> Array:
    return F.instance_norm(x)


def batch_norm(x: Array, mean: Array, var: Array, g: Array, h: Array) -> Array:
    return F.batch_norm(x, mean, var, g, h)


def spatial_softmax(x: Array) -> Array:
    return torch.softmax(x.flatten(2), -1).view(x.shape)


def mean_and_deviation(x: Array) -> tuple[Array, Array]:
    return x.mean(1), x.std(1, unbiased=False)


def variance_of_middle(x: Array) -> Array:
    return torch.var(x, dim=1)


def global_pool(x: Array) -> Array:
    return F.adaptive_avg_pool2d(x, 1).flatten(1)


def max_pool(x: Array) -> Array:
    return F.max_pool2d(x, 2)


def avg_pool(x: Array) -> Array:
    return F.avg_pool2d(x, 4)


def running_sum(x: Array) -> Array:
    return torch.cumsum(x, dim=1)


def running_sum_from_the_end(x: Array) -> Array:
    return torch.cumsum(x.flip(1), dim=1).flip(1)


def masked_running_sum(x: Array, sign: Array) -> Array:
    return torch.cumsum(x * (sign > 0), dim=1)


SUMS, NORMS, SOFTMAX, POOLS = "folds of axes", "norms of axes", "softmax of axes", "pools and scans"
OF_AXES: tuple[tuple[str, Fold, tuple[int, ...]], ...] = (
    ("sum-all", lambda x: torch.sum(x), (1 << 24,)),
    ("max-all", lambda x: x.max(), (5000, 1237)),
    ("length-all", lambda x: torch.linalg.vector_norm(x), (4_000_001,)),
    ("sum-first", along("sum", 0), (4099, 1031)),
    ("mean-middle", along("mean", 1), (128, 4095, 255)),
    ("sum-middle", along("sum", 1), (32, 4096, 4095)),
    ("sum-last", along("sum", -1), (64, 513, 2047)),
    ("mean-first", along("mean", 0), (77, 64, 1025)),
    ("amax-middle", along("amax", 1), (128, 1024, 513)),
    ("max-middle", largest(2), (8, 33, 257, 129)),
    ("min-first", along("amin", 0), (255, 32, 32, 31)),
    ("argmax-middle", along("argmax", 1), (64, 2048, 511)),
    ("argmin-last", along("argmin", -1), (16, 512, 1023)),
    ("prod-middle", along("prod", 1), (256, 16, 2049)),
    ("sum-two", lambda x: x.sum((1, 3)), (16, 33, 64, 129)),
    ("mean-three", lambda x: x.mean((2, 3, 4)), (8, 16, 9, 33, 65)),
    ("amax-ends", lambda x: torch.amax(x, dim=(0, 4)), (7, 8, 9, 33, 65)),
    ("logsumexp-middle", along("logsumexp", 1), (64, 1023, 257)),
    ("logsumexp-first", along("logsumexp", 0), (2049, 1000)),
    ("length-middle", length(1), (64, 769, 513)),
)
OF_NORMS: tuple[tuple[str, Fold, tuple[int, ...]], ...] = (
    ("divided-by-l1", scaled_by(1, 1), (4096, 8191)),
    ("divided-by-l2-of-channels", scaled_by(2, 1), (16, 64, 127, 129)),
    ("divided-by-length-of-all", unit, (32, 63, 65, 127)),
    ("rms-of-channels", rms_of_channels, (16, 64, 256, 257)),
    ("instance-norm", instance_norm, (16, 64, 128, 129)),
    ("mean-and-deviation", mean_and_deviation, (128, 1023, 513)),
    ("variance-of-middle", variance_of_middle, (64, 511, 2047)),
)
OF_SOFTMAX: tuple[tuple[str, Fold, tuple[int, ...]], ...] = (
    ("softmax-first", along("softmax", 0), (1025, 2049)),
    ("softmax-middle", along("softmax", 1), (64, 77, 1025)),
    ("softmax-channels", along("softmax", 1), (16, 21, 255, 257)),
    ("log-softmax-middle", along("log_softmax", 1), (32, 1000, 129)),
    ("log-softmax-last", along("log_softmax", -1), (17, 65, 4097)),
    ("spatial-softmax", spatial_softmax, (8, 64, 64, 65)),
    ("softmax-last-of-five", along("softmax", -1), (3, 5, 7, 77, 77)),
)
OF_POOLS: tuple[tuple[str, Fold, tuple[int, ...]], ...] = (
    ("global-pool", global_pool, (64, 256, 31, 33)),
    ("max-pool", max_pool, (16, 64, 112, 112)),
    ("avg-pool", avg_pool, (16, 64, 128, 128)),
    ("cumsum", running_sum, (2048, 4097)),
    ("cumsum-from-the-end", running_sum_from_the_end, (1024, 4000)),
    ("cumprod", along("cumprod", 1), (512, 1025)),
)  # fmt: skip


def of_one(
    family: str, name: str, fn: Fold, shape: tuple[int, ...], dtype: str = "float16"
) -> Case:
    """A case of one array."""
    sizes = dict(zip(AXES, shape, strict=False))
    few = {axis: n // 8 if n > 15 else n for axis, n in sizes.items() if n <= 129}
    if family == POOLS:
        few = dict.fromkeys(sizes, 8)
    return case(family, fn, " ".join(sizes), sizes, name=name, few=few, dtype=dtype)


def _cases() -> Iterator[Case]:
    families = {SUMS: OF_AXES, NORMS: OF_NORMS, SOFTMAX: OF_SOFTMAX, POOLS: OF_POOLS}
    for family, members in families.items():
        for name, fn, shape in members:
            yield of_one(family, name, fn, shape)
    yield from _with_weights()
    for name, fn, shape in (OF_AXES[4], OF_AXES[17], OF_NORMS[3], OF_SOFTMAX[1], OF_SOFTMAX[5]):
        yield of_one("folds in float32", name, fn, shape, "float32")


def _with_weights() -> Iterator[Case]:
    few = dict(C=16)
    of_three = dict(B=16, C=64, X=64, Y=65)
    yield case(NORMS, layer_norm_of_three, "B C X Y, C X Y, C X Y", of_three, few=few)
    yield case(NORMS, group_norm, "B C X Y, C, C", dict(B=32, C=64, X=63, Y=65), few=few)
    yield case(NORMS, group_norm, "B C S, C, C", dict(B=64, C=512, S=77), few=few)
    yield case(NORMS, batch_norm, "B C X Y, C, C, C, C", dict(B=32, C=64, X=127, Y=129))
    yield case(POOLS, masked_running_sum, "I J, I J", dict(I=1024, J=4001))


CASES = tuple(_cases())
