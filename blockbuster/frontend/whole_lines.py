"""Blocks along the lines of arrays whose axes are computed in another order than they are stored.

    layer norm of channels: y[a,w,h,c] = x[a,c,h,w], folded along c; the last two axes are h and c

A block of the last two axes would read single elements of x, which is stored along w. So where the
innermost axis of an array that runs along all loops is in no block, values are blocked along the
innermost axes of all such arrays, and along the axes that are folded: here along w and c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from blockbuster.frontend.interleaved import (
    SHORT,
    Axes,
    blocked_along,
    length_of,
    meet,
    sources,
    spread,
)
from blockbuster.frontend.layout import Layout
from blockbuster.frontend.primitives import Apply, Count, Fold, Primitive, Round, Source
from blockbuster.frontend.program import Shape
from blockbuster.frontend.strips import Along, Strip, Strips
from blockbuster.ir.lengths import whole
from blockbuster.ir.types import Dim, size_class

LINE = 32
"""Elements in a row of memory that a block reads, at least: a sector of two or four bytes each."""

KINDS = Source | Apply | Round | Count | Fold
"""The operators of programs whose values may be blocked along lines."""

MOST = 3
"""Axes of a block at most, beside those that are known to be short."""


def along_whole_lines(
    layouts: Sequence[Layout],
    primitives: Sequence[Primitive],
    live: Sequence[bool],
    outputs: Sequence[tuple[int, Strips]],
    fixed: Mapping[Dim, int],
) -> tuple[list[Layout], list[Primitive]]:
    """The layouts, and the primitives with their folds, in blocks along lines of the arrays.

    ``fixed``: sizes that are known, by which more axes make a line where nothing is folded.
    """
    unchanged = list(layouts), list(primitives)
    of = [at for at, primitive in enumerate(primitives) if live[at]]
    if any(not isinstance(primitives[at].op, KINDS) for at in of):
        return unchanged
    folds = {at: op for at in of if isinstance(op := primitives[at].op, Fold)}
    fixed = {} if folds else fixed
    arrays = [
        (at, [*_runs(strips, primitives[at].shape, fixed)])
        for at, strips in (*sources(primitives, of), *outputs)
    ]
    most = max((len(runs) for _, runs in arrays), default=0)
    full = [(at, runs) for at, runs in arrays if len(runs) == most]
    blocked = [{level.axis for level in layout if level.blocked} for layout in layouts]
    if most < MOST or not any(
        runs[-1].axis not in blocked[at] and length_of(runs[-1]) > SHORT for at, runs in full
    ):
        return unchanged
    chosen: Axes = [set() for _ in primitives]
    for at, runs in full:
        chosen[at].update(_line(runs))
    for at, fold in folds.items():
        (ref,) = primitives[at].operands
        own = ref.axes[fold.axis]
        assert own is not None, "unit axes are not folded"
        chosen[ref.value].add(own)
    spread(chosen, primitives, of)
    found = blocked_along(chosen, layouts)
    if _has_many(found, of, fixed) or meet(found, of, [fold.dim for fold in folds.values()]):
        return unchanged
    return found, [
        replace(one, op=replace(folds[at], in_blocks=True)) if at in folds else one
        for at, one in enumerate(primitives)
    ]


def _pieces(strip: Strip) -> Sequence[Along]:
    """The axes that an axis of an array is cut into; of windows, those that count windows."""
    for outer, inner in pairwise(strip.moving):
        if inner.length is None or inner.length != outer.step:
            return strip.moving[:1]
    return strip.moving


def _has_many(layouts: Sequence[Layout], of: Sequence[int], fixed: Mapping[Dim, int]) -> bool:
    """True if a value is blocked along more axes than blocks have."""
    short = {dim for dim, size in fixed.items() if size <= SHORT}
    return any(
        sum(size_class(level.dim) not in short for level in layouts[at] if level.blocked) > MOST
        for at in of
    )


def _runs(strips: Strips, shape: Shape, fixed: Mapping[Dim, int]) -> Iterator[Along]:
    """The axes of a value that run along an array, those of known sizes with their length."""
    for along in (one for strip in strips for one in _pieces(strip)):
        dim = shape[along.axis]
        known = fixed.get(size_class(dim)) if isinstance(dim, str) else None
        if along.length is None and known is not None:
            along = replace(along, length=whole(known))
        yield along


def _line(runs: Sequence[Along]) -> Iterator[int]:
    """The last axes that run along an array, with so many elements together as make a line."""
    length = 1.0
    for along in reversed(runs):
        yield along.axis
        length *= length_of(along)
        if length >= LINE:
            return
