"""Random calls of torch's convolutions and pools: a function, and the shapes of its arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import Tensor

LONGEST = (7, 6, 4)  # an axis of images of one, two and three axes


@dataclass(frozen=True)
class Call:
    """A call of ``torch.nn.functional.name`` of arrays, with other arguments by their names."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    given: Mapping[str, Any]

    @property
    def function(self) -> Callable[..., Tensor]:
        """The function of the arrays."""
        called = getattr(F, self.name)
        return lambda *arrays: called(*arrays, **self.given)

    def tensors(self) -> list[Tensor]:
        """Reproducible tensors in float64."""
        drawn = torch.Generator().manual_seed(3)
        return [torch.randn(shape, generator=drawn, dtype=torch.float64) for shape in self.shapes]


def each(draw: Any, count: int, least: int, most: int) -> int | tuple[int, ...]:
    """A number, or one for each axis."""
    if draw(st.booleans()):
        return draw(st.integers(least, most))
    return tuple(draw(st.integers(least, most)) for _ in range(count))


def images(draw: Any, count: int, channels: int) -> tuple[int, ...]:
    """The shape of images, of which some have no batch axis, and some batches are empty."""
    places = tuple(draw(st.integers(1, LONGEST[count - 1])) for _ in range(count))
    batch = draw(st.sampled_from(((2,), (1,), (), (0,))))
    return (*batch, channels, *places)


@st.composite
def convolutions(draw: Any) -> Call:
    """Strided, dilated, grouped and padded, in one to three axes."""
    count = draw(st.integers(1, 3))
    groups, taken, made = (draw(st.integers(1, 3)) for _ in range(3))
    taps = tuple(draw(st.integers(1, 4 if count < 3 else 2)) for _ in range(count))
    shapes = [images(draw, count, groups * taken), (groups * made, taken, *taps)]
    shapes += [(groups * made,)] if draw(st.booleans()) else []
    padding = draw(st.sampled_from(("same", "valid", *[None] * 4)))
    given = {
        "stride": 1 if padding == "same" else each(draw, count, 1, 3),
        "padding": padding or each(draw, count, 0, 3),
        "dilation": each(draw, count, 1, 2),
        "groups": groups,
    }
    return Call(f"conv{count}d", tuple(shapes), given)


@st.composite
def transposed(draw: Any) -> Call:
    """Transposed convolutions, with every remainder of the result's size by the stride."""
    count = draw(st.integers(1, 3))
    groups, taken, made = (draw(st.integers(1, 3)) for _ in range(3))
    taps = tuple(draw(st.integers(1, 4 if count < 3 else 2)) for _ in range(count))
    shapes = [images(draw, count, groups * taken), (groups * taken, made, *taps)]
    shapes += [(groups * made,)] if draw(st.booleans()) else []
    stride, dilation = each(draw, count, 1, 3), each(draw, count, 1, 2)
    both = (n if isinstance(n, tuple) else (n,) * count for n in (stride, dilation))
    least = min(max(pair) for pair in zip(*both, strict=True))
    given = {
        "stride": stride,
        "padding": each(draw, count, 0, 2),
        "output_padding": each(draw, count, 0, least - 1),
        "dilation": dilation,
        "groups": groups,
    }
    return Call(f"conv_transpose{count}d", tuple(shapes), given)


@st.composite
def pools(draw: Any) -> Call:
    """Maxima, means and norms of windows."""
    count = draw(st.integers(1, 3))
    kind = draw(st.sampled_from(("max", "avg", "lp")))
    size = each(draw, count, 1, 4)
    given: dict[str, Any] = {
        "kernel_size": size[0] if isinstance(size, tuple) and count == 1 else size,
        "stride": None if draw(st.booleans()) else each(draw, count, 1, 3),
        "ceil_mode": draw(st.booleans()),
    }
    if kind == "lp":
        given["norm_type"] = draw(st.sampled_from((2.0, 4, float("inf"))))
    else:
        given["padding"] = each(draw, count, 0, 2)
    if kind == "max":
        given["dilation"] = each(draw, count, 1, 2)
    if kind == "avg":
        given["count_include_pad"] = draw(st.booleans())
    if kind == "avg" and count > 1:
        given["divisor_override"] = draw(st.sampled_from((None, None, 3)))
    return Call(f"{kind}_pool{count}d", (images(draw, count, 2),), given)
