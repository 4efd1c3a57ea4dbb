"""torch's pools: folds of windows.

Windows side by side are parts of a split axis. Others are views that may overlap and reach outside;
a maximum takes -inf there, and a mean leaves out what it does not count. ``return_indices`` is
False here: torch calls other functions for them.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.frontend.functions.filled import chosen, positions
from blockbuster.frontend.functions.pointwise import abs, maximum, minimum, sign, where
from blockbuster.frontend.functions.reductions import max, mean, sum
from blockbuster.frontend.functions.row import Array, of_images
from blockbuster.frontend.functions.shapes import expand_dims, unflatten
from blockbuster.frontend.functions.spatial import check_rank, known, numbers
from blockbuster.frontend.functions.windows import windowed
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.limits import UNROLLED
from blockbuster.frontend.sizes import SizeExpr, rest
from blockbuster.frontend.source import trace_error


@dataclass(frozen=True)
class Pool:
    """Windows along one axis. ``over``: places behind the padding that the last one reaches."""

    axis: int
    size: int
    step: int
    dilation: int
    pad: int
    over: int

    def are_parts(self, x: Array) -> bool:
        """True if the windows lie side by side, and hold all elements as far as is known."""
        plain = self.step == self.size and self.dilation == 1 and not self.pad and not self.over
        return plain and not rest(x.shape[self.axis], self.size)

    def windows(self, x: Array) -> Array:
        """``x`` with the elements of each window along a new last axis."""
        pads = self.pad, self.pad + self.over
        return windowed(x, self.axis, self.size, self.step, self.dilation, pads)

    def elements(self, x: Array) -> Iterator[Array]:
        """For each element of a window: that of all windows; zeros stand outside of ``x``."""
        if self.are_parts(x) and rest(x.shape[self.axis], self.size) == 0:
            key = (slice(None),) * self.axis
            yield from (x[(*key, slice(at, None, self.size))] for at in range(self.size))
            return
        windows = self.windows(x)
        yield from (windows[..., at] for at in range(self.size))

    def is_inside(self, at: int) -> bool:
        """True if element ``at`` of all windows stands in the array."""
        first, last = at * self.dilation, (self.size - 1 - at) * self.dilation
        return first >= self.pad and last >= self.pad + self.over

    def starts(self, windows: Array) -> Array:
        """Where each window begins, for an array with an axis of windows."""
        found = positions(windows.trace, windows.shape[self.axis], self.axis, windows.ndim)
        return found * self.step - self.pad

    def holds(self, x: Array, made: Array, within: Any) -> Array:
        """Whether the elements ``within`` windows, along an axis of ``made``, are some of ``x``."""
        place = self.starts(made) + within
        return (place >= 0) & (place < x.shape[self.axis])

    def counts(self, x: Array, made: Array, *, with_pad: bool) -> Array | int:
        """How many elements of each window a mean divides by."""
        if not self.over and (with_pad or not self.pad):
            return self.size
        first, extent = self.starts(made), x.shape[self.axis]
        last = minimum(first + self.size, extent + self.pad if with_pad else extent)
        return last - (first if with_pad else maximum(first, 0))


def _pools(
    name: str, x: Array, count: int, windows: tuple[Any, ...], *, ceil_mode: bool = False
) -> list[Pool]:
    """The windows along the last ``count`` axes, of their sizes, steps, pads and dilations."""
    check_rank(name, x, count)
    size, stride, padding, dilation = windows
    sizes = numbers(name, "kernel_size", size, count, 1)
    steps = sizes if stride in (None, [], ()) else numbers(name, "stride", stride, count, 1)
    pads = numbers(name, "padding", padding, count, 0)
    dilations = numbers(name, "dilation", dilation, count, 1)
    if any(pad > size // 2 for pad, size in zip(pads, sizes, strict=True)):
        reason = f"{name} with padding={padding!r} and kernel_size={size!r}"
        raise trace_error(reason, hint="padding is at most half of a window")
    first = len(x.shape) - count
    each = enumerate(zip(sizes, steps, dilations, pads, strict=True), start=first)
    return [Pool(at, *of, _over(name, x.shape[at], *of) if ceil_mode else 0) for at, of in each]


def _over(name: str, extent: Any, size: int, step: int, dilation: int, pad: int) -> int:
    """How far the last window reaches behind the padding, if it begins in front of it."""
    spare = rest(extent + 2 * pad - dilation * (size - 1) - 1, step)
    if spare is None:
        hint = f'give it a number, "H={8 * step}"'
        raise trace_error(f"{name} with ceil_mode of {extent!r} elements", hint=hint)
    more = step - spare if spare else 0
    begins_inside = pad - dilation * (size - 1) - 1 + more < 0
    return more if begins_inside else 0


def _pooled(x: Array, pools: list[Pool], fold: Callable[..., Array], zero: float = 0.0) -> Array:
    """The fold of each window; outside of ``x``, ``zero`` stands.

    Windows of few elements are folded element by element: no axis is so short that blocks of it
    were mostly padding, and a product in front keeps its rows. Others are folded axis by axis.
    """
    pool, *others = pools
    if not others and pool.are_parts(x):
        count = x.shape[pool.axis] // pool.size
        return fold(unflatten(x, pool.axis, (count, pool.size)), pool.axis + 1)
    total = math.prod(pool.size for pool in pools)
    if total <= UNROLLED:
        each = _elements(x, pools, zero)
        x = functools.reduce(maximum if fold is max else operator.add, each)
        return x * (1.0 / total) if fold is mean else x
    if others:
        return functools.reduce(lambda x, pool: _pooled(x, [pool], fold, zero), pools, x)
    made, last = pool.windows(x), len(x.shape)
    if zero and (pool.pad or pool.over):
        within = positions(made.trace, pool.size, last, made.ndim) * pool.dilation
        made = chosen(pool.holds(x, made, within), made, zero)
    return fold(made, last)


def _elements(x: Array, pools: list[Pool], zero: float) -> Iterator[Array]:
    """For each element of a window: that of all windows, with ``zero`` outside of ``x``.

    What stands outside along one axis or another is replaced once.
    """
    masks = dict[tuple[Pool, int], Array]()
    for at, made in _along_each(x, pools):
        placed = [*zip(pools, at, strict=True)] if zero else []
        outside = [(pool, k) for pool, k in placed if not pool.is_inside(k)]
        for pool, k in outside:
            if (pool, k) not in masks:
                masks[pool, k] = pool.holds(x, made, k * pool.dilation)
        seen = functools.reduce(operator.and_, map(masks.__getitem__, outside)) if outside else None
        yield made if seen is None else chosen(seen, made, zero)


def _along_each(x: Array, pools: list[Pool]) -> Iterator[tuple[tuple[int, ...], Array]]:
    """The places in a window, along each of its axes, with the elements that stand there."""
    if not pools:
        yield (), x
        return
    first, *others = pools
    for at, made in enumerate(first.elements(x)):
        yield from (((at, *rest), one) for rest, one in _along_each(made, others))


def max_pool(
    name: str, count: int, input: Array, kernel_size: Any, stride: Any = None, padding: Any = 0,
    dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False,  # noqa: ARG001
) -> Array:  # fmt: skip
    """The maxima of windows along the last axes."""
    windows = kernel_size, stride, padding, dilation
    pools = _pools(name, input, count, windows, ceil_mode=ceil_mode)
    return _pooled(input, pools, max, -np.inf)


def avg_pool(
    name: str, count: int, input: Array, kernel_size: Any, stride: Any = None, padding: Any = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    """The means of windows along the last axes."""
    windows = kernel_size, stride, padding, 1
    pools = _pools(name, input, count, windows, ceil_mode=ceil_mode)
    if divisor_override is None:
        return _means(input, pools, count_include_pad)
    (by,) = numbers(name, "divisor_override", divisor_override, 1, -(2**63))
    if not by:
        raise trace_error(f"{name} with divisor_override=0", hint="it is not 0")
    return _pooled(input, pools, sum) / by


def _means(x: Array, pools: list[Pool], with_pad: bool) -> Array:
    """The means of windows, of which zeros outside of ``x`` are a part if padding counts."""
    if not any(pool.over or (pool.pad and not with_pad) for pool in pools):
        return _pooled(x, pools, mean)
    made = _pooled(x, pools, sum)
    for pool in pools:
        made = made / pool.counts(x, made, with_pad=with_pad)
    return made


def lp_pool(
    name: str, count: int, input: Array, norm_type: float, kernel_size: Any, stride: Any = None,
    ceil_mode: bool = False,
) -> Array:  # fmt: skip
    """The norms of windows along the last axes."""
    windows = kernel_size, stride, 0, 1
    return _norms(input, norm_type, _pools(name, input, count, windows, ceil_mode=ceil_mode))


def _norms(x: Array, norm_type: float, pools: list[Pool]) -> Array:
    if norm_type == math.inf:
        return _pooled(abs(x), pools, max, -np.inf)
    made = _pooled(x**norm_type, pools, sum)
    for pool in pools:
        if pool.over:  # as torch has it, which takes means times the size of a whole window
            made = made / pool.counts(x, made, with_pad=True) * pool.size
    return (sign(made) * abs(made)) ** (1.0 / norm_type)


# to a number of elements ----------------------------------------------------------


def _adaptive(name: str, fold: Callable[..., Array], x: Array, count: int, size: Any) -> Array:
    """The folds of ``size`` parts of each of the last axes; None keeps an axis."""
    check_rank(name, x, count)
    given = tuple(size) if isinstance(size, tuple | list) else (size,)
    each = given * count if len(given) == 1 else given
    numbers(name, "output_size", [1 if n is None else n for n in each], count, 1)
    first = len(x.shape) - count
    if set(each) == {1}:
        return fold(x, tuple(range(first, first + count)), True)
    for axis, wanted in enumerate(each, start=first):
        x = x if wanted is None else _parts(fold, x, axis, wanted)
    return x


def _parts(fold: Callable[..., Array], x: Array, axis: int, count: int) -> Array:
    """The folds of ``count`` parts of an axis, which overlap by an element where their number does
    not divide the axis: part i begins at i * extent // count, and ends where the next one begins,
    or an element later.
    """
    extent = known(x.shape[axis])
    if isinstance(extent, SizeExpr) or not extent % count:
        return fold(unflatten(x, axis, (count, x.shape[axis] // count)), axis + 1)
    if x.kind != FLOAT:
        raise trace_error(f"a pool of integers to {count} of {extent}", hint="take x.float()")
    rank, lengths = len(x.shape) - axis + 1, (count, x.shape[axis])
    part, place = (positions(x.trace, n, at, rank) for at, n in enumerate(lengths))
    first, behind = part * extent // count, -((part + 1) * -extent // count)
    inside, elements = (place >= first) & (place < behind), expand_dims(x, axis)
    if fold is max:
        return max(where(inside, elements, -np.inf), axis + 1)
    return sum(where(inside, elements, 0.0), axis + 1) / (behind - first)[:, 0]


def adaptive_avg_pool(name: str, count: int, input: Array, output_size: Any) -> Array:
    """The means of parts, a number along each of the last axes."""
    return _adaptive(name, mean, input, count, output_size)


def adaptive_max_pool(
    name: str, count: int, input: Array, output_size: Any,
    return_indices: bool = False,  # noqa: ARG001
) -> Array:  # fmt: skip
    """The maxima of parts, a number along each of the last axes."""
    return _adaptive(name, max, input, count, output_size)


_GROUP = "torch.nn.functional: pools"
_FAMILIES = (avg_pool, max_pool, lp_pool, adaptive_avg_pool, adaptive_max_pool)

ROWS = tuple(
    row
    for family in _FAMILIES
    for row in of_images(f"{family.__name__}{{}}d", family, _GROUP, "nn.functional.")
)
