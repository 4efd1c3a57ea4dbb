"""Contractions at sums of letters and at tables: convolutions, and what looks like them.

Ours is one einsum, with what stands around it; torch has its functions for them, or products one by
one. A bound is the plain product of the same M, N and K. Source: extended tensor contractions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import blockbuster as bb
from bench.peers.case import BOUND, Array, Case, Contestant, Draw
from bench.peers.contestants import called, ours, usual

SUITE = "einsum"
LAYERS = (  # images, channels, side, filters, side of a filter: the first one is the source's
    (32, 128, 56, 128, 3), (32, 64, 56, 64, 3), (32, 256, 28, 256, 3), (32, 512, 14, 512, 3),
    (32, 512, 7, 512, 3), (32, 64, 112, 128, 5),
)  # fmt: skip
SPEC = "nc(t*h+d*r)(t*v+d*s), kcrs -> nkhv"
TAPS = 13  # of a sparse filter of 5 by 5
AXES = dict(x="N C H V", w="K C R S")

Plain = Callable[..., Array]


def convolution(step: int, gap: int, pad: int) -> tuple[Plain, Plain]:
    """A convolution by einsum, and torch's."""
    pads = {"h": (pad, pad), "v": (pad, pad)}

    def mine(x: Array, w: Array) -> Array:
        return bb.einsum(SPEC, x, w, t=step, d=gap, pad=pads)

    def plain(x: Array, w: Array) -> Array:
        import torch

        return torch.nn.functional.conv2d(x, w, stride=step, dilation=gap, padding=pad)

    return mine, plain


def layer(pad: int) -> tuple[Plain, Plain]:
    """A convolution, a bias, relu, and a scale and shift for each channel."""
    (mine, plain) = convolution(1, 1, pad)

    def with_rest(convolve: Plain, maximum: Callable[..., Array]) -> Plain:
        def whole(x: Array, w: Array, b: Array, g: Array, e: Array) -> Array:
            y = maximum(convolve(x, w) + b[:, None, None])
            return y * g[:, None, None] + e[:, None, None]

        return whole

    return with_rest(mine, lambda y: bb.maximum(y, 0)), with_rest(plain, lambda y: y.relu())


def separable() -> tuple[Plain, Plain]:
    """A depthwise convolution, relu, and a pointwise one."""
    pads = {"h": (1, 1), "v": (1, 1)}

    def mine(x: Array, w: Array, u: Array) -> Array:
        y = bb.maximum(bb.einsum("nc(h+r)(v+s), crs -> nchv", x, w, pad=pads), 0)
        return bb.einsum("nchv, kc -> nkhv", y, u)

    def plain(x: Array, w: Array, u: Array) -> Array:
        import torch

        conv = torch.nn.functional.conv2d
        y = conv(x, w[:, None], padding=1, groups=w.shape[0]).relu()
        return conv(y, u[:, :, None, None])

    return mine, plain


def shifted(channels: int) -> tuple[Plain, Plain]:
    """Each channel is moved, then all are mixed."""
    rng = np.random.default_rng(0)
    moves = {name: rng.integers(0, 3, channels) for name in ("up", "left")}

    def mine(x: Array, w: Array) -> Array:
        return bb.einsum("nc(h+up[c])(v+left[c]), kc -> nkhv", x, w, **moves)

    def plain(x: Array, w: Array) -> Array:
        import torch

        up, left = (torch.as_tensor(moves[name], device=x.device) for name in moves)
        rows = up[:, None] + torch.arange(x.shape[2] - int(moves["up"].max()), device=x.device)
        columns = left[:, None] + torch.arange(x.shape[3] - int(moves["left"].max()),
                                               device=x.device)  # fmt: skip
        channel = torch.arange(x.shape[1], device=x.device)[:, None, None]
        moved = x[:, channel, rows[:, :, None], columns[:, None, :]]
        return torch.einsum("nchv,kc->nkhv", moved, w)

    return mine, plain


def sparse() -> tuple[Plain, Plain]:
    """A filter of 5 by 5 with thirteen taps, the same for all channels."""
    places = np.random.default_rng(0).permutation(25)[:TAPS]
    taps = {"down": places // 5, "right": places % 5}

    def mine(x: Array, w: Array) -> Array:
        return bb.einsum("nc(h+down[x])(v+right[x]), kcx -> nkhv", x, w, **taps)

    def plain(x: Array, w: Array) -> Array:
        import torch

        dense = w.new_zeros((*w.shape[:2], 5, 5))
        dense[:, :, taps["down"], taps["right"]] = w
        return torch.nn.functional.conv2d(x, dense)

    return mine, plain


def channels_last(plain: Plain) -> Contestant:
    """torch's function on arrays whose channels lie side by side."""

    def prepared(*arrays: Array) -> tuple[Array, ...]:
        import torch

        last = torch.channels_last
        return tuple(x.contiguous(memory_format=last) if x.ndim == 4 else x for x in arrays)

    return called("channels last", plain, prepared=prepared)


def product(m: int, n: int, k: int) -> Contestant:
    """The plain product of M by K and K by N elements."""

    def factors(x: Array, *_: Array) -> tuple[Array, ...]:
        return x.new_ones((m, k)), x.new_ones((k, n))

    return called("product of M, N, K", lambda a, b: a @ b, kind=BOUND, prepared=factors)


def filters(random: Any, shape: tuple[int, ...]) -> Array:
    """Filters whose sums stay near one."""
    import torch

    made = torch.randn(shape, generator=random, device=random.device)
    return made * (made[0].numel() or 1) ** -0.5


def _case(
    family: str, name: str, pair: tuple[Plain, Plain], inputs: Mapping[str, str],
    sizes: Mapping[str, int], few: Mapping[str, int], more: tuple[Contestant, ...] = (),
) -> Case:  # fmt: skip
    mine, plain = pair
    special: dict[str, Draw] = {name: filters for name in inputs if name in "wu"}
    return Case(
        SUITE, family, name, mine, plain, inputs, sizes, few,
        (ours(mine), *usual(plain), *more), matrices=(), special=special,
    )  # fmt: skip


def _cases() -> Iterator[Case]:
    few = dict(N=2, C=4, H=9, V=8, K=5)
    for n, c, side, k, taps in LAYERS:
        sizes = dict(N=n, C=c, H=side, V=side, K=k, R=taps, S=taps)
        own, shape = dict(few, R=taps, S=taps), f"{n}x{c}x{side}x{side}-{k}x{taps}x{taps}"
        same = product(n * side * side, k, c * taps * taps)
        plain = convolution(1, 1, taps // 2)
        more = (channels_last(plain[1]), same)
        yield _case("convolution", f"conv-{shape}", plain, AXES, sizes, own, more)
        whole = layer(taps // 2)
        rest = dict(AXES, b="K", g="K", e="K")
        last = (channels_last(whole[1]),)
        yield _case("convolution, fused", f"layer-{shape}", whole, rest, sizes, own, last)
    n, c, side, k, _ = LAYERS[0]
    sizes = dict(N=n, C=c, H=side, V=side, K=k)
    taps = dict(R=3, S=3)
    for family, step, gap in (("strided", 2, 1), ("dilated", 1, 2)):
        pair = convolution(step, gap, gap)
        more = (channels_last(pair[1]),)
        yield _case(family, f"{family}-{side}", pair, AXES, sizes | taps, few | taps, more)
    pair = separable()
    yield _case("separable", f"separable-{side}", pair, dict(x="N C H V", w="C R S", u="K C"),
                sizes | taps, few | taps, (channels_last(pair[1]),))  # fmt: skip
    axes = dict(x="N C H V", w="K C")
    yield _case("shift", f"shift-{side}", shifted(c), axes, sizes, few | {"C": c})
    pair = sparse()
    yield _case("sparse", f"sparse-{side}", pair, dict(x="N C H V", w="K C T"), sizes | {"T": TAPS},
                few | {"T": TAPS}, (channels_last(pair[1]),))  # fmt: skip


CASES = tuple(_cases())
