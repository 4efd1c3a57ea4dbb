"""Calls of torch's library that can stand in a program in place of a product of ours.

They are functions of whole arrays as a user's own are, comparable as copies are, and they know
their shapes: what they take is measured (machines/library.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from blockbuster.frontend.torch import (
    as_tensors,
    attended,
    convolved,
    is_tensor,
    multiplied,
    scaled_product,
)


@dataclass(frozen=True)
class LibraryProduct:
    """A matrix product, ``x`` and ``w`` with their axes in these orders: ... M K and ... K N.

    ``w`` is one matrix, or has all axes of ``x`` in front of M: a product for each of them. Beside
    one matrix there may be a row of N numbers, that is added to each row of the product.
    """

    is_library: ClassVar[bool] = True
    x_axes: tuple[int, ...]
    w_axes: tuple[int, ...]

    def __str__(self) -> str:
        return "torch.matmul"

    def __call__(self, x: Any, w: Any, *row: Any) -> Any:
        left, right, *rows = as_tensors((x, w, *row))
        made = multiplied(in_order(left, self.x_axes), in_order(right, self.w_axes), *rows)
        return made if is_tensor(x) else np.asarray(made)

    def extents(self, x: Sequence[int], w: Sequence[int]) -> tuple[int, int, int, int]:
        """How many products, and M, N and K, for operands of these shapes: by one matrix, it is one
        product of all rows.
        """
        *rows, k = (x[axis] for axis in self.x_axes)
        *batch, _, n = (w[axis] for axis in self.w_axes)
        return prod(batch), rows[-1] if batch else prod(rows), n, k


@dataclass(frozen=True)
class LibraryScaled:
    """``x @ w.T`` of arrays of float8, of which K is the last axis, times two scales: one number
    for each operand, or one for each row of both (``by_rows``), rounded once, to ``dtype``. With a
    fifth array, a row of N numbers of that dtype, that is added to each row before.
    """

    is_library: ClassVar[bool] = True
    by_rows: bool
    dtype: str

    def __str__(self) -> str:
        return "torch._scaled_mm"

    def __call__(self, x: Any, w: Any, x_scale: Any, w_scale: Any, *row: Any) -> Any:
        given = as_tensors((x, w, x_scale, w_scale, *row))
        made = scaled_product(*given, by_rows=self.by_rows, dtype=self.dtype)
        return made if is_tensor(x) else np.asarray(made)

    def extents(self, x: Sequence[int], w: Sequence[int]) -> tuple[int, int, int]:
        """M, N and K for operands of these shapes; M counts the rows of all leading axes."""
        return prod(x[:-1]), w[0], x[-1]


@dataclass(frozen=True)
class LibraryConvolution:
    """A convolution of ``x``, its axes in this order: images, channels, places; by ``w``: filters,
    channels of a group, taps; for each of these the axis of ``w``, if it has more than one element.
    The places are 1 to 3 axes; ``step``, ``dilation`` and the number of zeros ``before`` (and
    behind) are given for each.

    A transposed convolution has ``more`` for each: places behind the last that it has anyway. Its
    filters' axes are: channels, filters of a group, taps. ``made``: the result's axes, of images,
    filters and places, in the order in which they lie; those in one tuple are one axis.
    """

    is_library: ClassVar[bool] = True
    x_axes: tuple[int, ...]
    w_axes: tuple[tuple[int, ...], ...]
    step: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    groups: int
    more: tuple[int, ...]
    made: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        return f"torch.conv{'_transpose' if self.more else ''}{len(self.step)}d"

    def __call__(self, x: Any, w: Any) -> Any:
        image, filters = as_tensors((x, w))
        filters = filters.permute([axis for axes in self.w_axes for axis in axes])
        for at, axes in enumerate(self.w_axes):
            filters = filters if axes else filters.unsqueeze(at)
        if not self.channels_last:  # else torch moves the channels of ``x`` because those of ``w``
            filters = filters.contiguous()  # are last
        given = dict(stride=self.step, padding=self.before, dilation=self.dilation)
        if self.more:
            given["output_padding"] = self.more
        made = convolved(str(self), image.permute(self.x_axes), filters, self.groups, given)
        made = made.permute([axis for axes in self.made for axis in axes])
        for at, axes in enumerate(self.made):
            made = made.flatten(at, at + len(axes) - 1) if len(axes) > 1 else made
        return made if is_tensor(x) else np.asarray(made)

    def extents(
        self, x: Sequence[int], w: Sequence[int], made: int
    ) -> tuple[int, int, int, int, int, int, int, int]:
        """The places' axes, channels, filters, groups, taps, the product of strides, and elements
        of a channel given and ``made``, for operands of these shapes and so many elements.
        """
        first, second, *taps = (prod(w[axis] for axis in axes) for axes in self.w_axes)
        channels = x[self.x_axes[1]]
        filters = self.groups * second if self.more else first
        return (
            len(self.step), channels, filters, self.groups, prod(taps), prod(self.step),
            prod(x) // channels, made // filters,
        )  # fmt: skip

    @property
    def moves_filters(self) -> bool:
        """True if torch moves the channels of ``w``, which are several, because those of ``x`` are
        last.
        """
        inner = self.w_axes[1]
        return self.channels_last and bool(inner) and inner != (sum(map(len, self.w_axes)) - 1,)

    @property
    def channels_last(self) -> bool:
        """True if the channels of ``x`` lie next to each other."""
        return self.x_axes[1] == len(self.x_axes) - 1


@dataclass(frozen=True)
class LibraryAttention:
    """Attention of queries ``q`` to keys ``k`` with values ``v``: the axes of each in this order:
    at most two of batches, rows, columns. The result lies as ``q`` does.

    ``scale``: what products are multiplied with; 0: the square root of 1 / columns.
    ``is_causal``: row m sees keys 0 to m.
    """

    is_library: ClassVar[bool] = True
    q_axes: tuple[int, ...]
    k_axes: tuple[int, ...]
    v_axes: tuple[int, ...]
    scale: float
    is_causal: bool

    def __str__(self) -> str:
        return "torch.scaled_dot_product_attention"

    def __call__(self, q: Any, k: Any, v: Any) -> Any:
        axes = (self.q_axes, self.k_axes, self.v_axes)
        given = [in_order(x, order) for x, order in zip(as_tensors((q, k, v)), axes, strict=True)]
        made = attended(*given, is_causal=self.is_causal, scale=self.scale or None)
        made = in_order(made, [self.q_axes.index(axis) for axis in range(len(self.q_axes))])
        return made if is_tensor(q) else np.asarray(made)

    def extents(
        self, q: Sequence[int], k: Sequence[int], v: Sequence[int]
    ) -> tuple[int, int, int, int, int]:
        """The products of batches, the rows, the keys, the columns of keys and those of values, for
        these shapes.
        """
        *batches, rows, columns = [q[axis] for axis in self.q_axes]
        return prod(batches), rows, k[self.k_axes[-2]], columns, v[self.v_axes[-1]]


def is_library(fn: object) -> bool:
    """True for the calls of this module."""
    return bool(getattr(fn, "is_library", False))


def in_order(x: Any, axes: Sequence[int]) -> Any:
    """A tensor with its axes in this order."""
    return x if tuple(axes) == tuple(range(len(axes))) else x.permute(axes)
