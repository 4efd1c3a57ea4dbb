"""Loops over spans of blocks: how often their bodies run, and which loops are parts of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from blockbuster.emit.tile.known_bounds import Numbers, PerBlock, merged
from blockbuster.emit.tile.program import For, Nest, statements
from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Walked:
    """A loop around a statement, over all blocks of ``dim`` or those from a first up to a last.

    ``span``: for each combination of iterations outside; the second bound is left out.
    """

    dim: Dim
    span: tuple[PerBlock, PerBlock] | None = None


def summed(loops: Sequence[Walked], weights: Callable[[Dim], Numbers]) -> int:
    """The sum, over all iterations of ``loops``, of the products of their blocks' weights.

    ``loops``: outermost first. ``weights``: those of all blocks of a dim.
    """
    return int(summed_outside(loops, weights).values)


def summed_outside(loops: Sequence[Walked], weights: Callable[[Dim], Numbers]) -> PerBlock:
    """The same for each combination of iterations of loops around ``loops`` that spans read."""
    inner = PerBlock((), np.asarray(1))
    for loop in reversed(loops):
        inner = _outside(loop, inner, weights(loop.dim))
    return inner


def _outside(loop: Walked, inner: PerBlock, weights: Numbers) -> PerBlock:
    """The sums over one loop, for each combination of iterations outside it."""
    others = tuple(dim for dim in inner.dims if dim != loop.dim)
    terms = weights * inner.over((*others, loop.dim))  # the loop's own blocks along the last axis
    if loop.span is None:
        return PerBlock(others, terms.sum(-1))
    begin, end = loop.span
    none = np.zeros((*terms.shape[:-1], 1), terms.dtype)
    before = np.concatenate([none, terms.cumsum(-1)], axis=-1)
    dims = merged(begin, end, PerBlock(others, np.empty(terms.shape[:-1])))
    stop = end.over(dims)
    first = np.minimum(begin.over(dims), stop)
    if not others:
        return PerBlock(dims, before[stop] - before[first])
    shape = np.broadcast_shapes(first.shape, PerBlock(others, before[..., 0]).over(dims).shape)
    spread = PerBlock((*others, ""), before).over((*dims, ""))
    spread = np.broadcast_to(spread, (*shape, spread.shape[-1]))
    at = [np.broadcast_to(bound, shape)[..., None] for bound in (first, stop)]
    low, high = (np.take_along_axis(spread, bound, axis=-1)[..., 0] for bound in at)
    return PerBlock(dims, high - low)


def parts_of(loop: For, nest: Nest) -> tuple[For, ...]:
    """The loops of ``nest`` that together are one with ``loop``, in order: itself if it is whole.

    Each begins at the block at which the one before it ends.
    """
    loops = [s for s in statements(nest.body) if isinstance(s, For) and s.dim == loop.dim]
    parts = [loop]
    while before := [one for one in loops if goes_on(one, parts[0]) and one not in parts]:
        parts.insert(0, before[0])
    while behind := [one for one in loops if goes_on(parts[-1], one) and one not in parts]:
        parts.append(behind[0])
    return tuple(parts)


def goes_on(loop: For, other: For) -> bool:
    """True if ``other`` begins at the block at which ``loop`` ends."""
    if loop.span is None or other.span is None or loop.dim != other.dim:
        return False
    return loop.span[1] is not None and loop.span[1] == other.span[0]
