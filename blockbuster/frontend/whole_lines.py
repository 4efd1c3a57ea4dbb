"""Blocks along the lines of arrays whose axes are computed in another order than they are stored.

    layer norm of channels: y[a,w,h,c] = x[a,c,h,w], folded along c; the last two axes are h and c

A block of the last two axes would read single elements of x, which is stored along w. So where the
innermost axis of an array that runs along all loops is in no block, values are blocked along the
innermost axes of all such arrays, and along the axes that are folded: here along w and c.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from blockbuster.frontend.interleaved import SHORT, Axes, length_of, sources
from blockbuster.frontend.layout import Layout
from blockbuster.frontend.primitives import Apply, Count, Fold, Primitive, Round, Source
from blockbuster.frontend.strips import Along, Strip, Strips
from blockbuster.ir.types import size_class

LINE = 32
"""Elements in a row of memory that a block reads, at least: a sector of two or four bytes each."""

MOST = 3
"""Axes of a block at most."""


def along_whole_lines(
    layouts: Sequence[Layout],
    primitives: Sequence[Primitive],
    live: Sequence[bool],
    outputs: Sequence[tuple[int, Strips]],
) -> tuple[list[Layout], list[Primitive]]:
    """The layouts, and the primitives with their folds, in blocks along lines of the arrays."""
    unchanged = list(layouts), list(primitives)
    of = [at for at, primitive in enumerate(primitives) if live[at]]
    kinds = Source | Apply | Round | Count | Fold
    if any(not isinstance(primitives[at].op, kinds) for at in of):
        return unchanged
    arrays = [
        (at, [along for strip in strips for along in _pieces(strip)])
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
    for _, operand, axis in _folds(primitives, of):
        chosen[operand].add(axis)
    _spread(chosen, primitives, of)
    found = [
        tuple(level._replace(blocked=level.axis in axes) for level in layout)
        for layout, axes in zip(layouts, chosen, strict=True)
    ]
    if max(len(chosen[at]) for at in of) > MOST or _meet(found, primitives, of):
        return unchanged
    made = list(primitives)
    for at, _, _ in _folds(primitives, of):
        fold = primitives[at].op
        assert isinstance(fold, Fold)
        made[at] = replace(primitives[at], op=replace(fold, in_blocks=True))
    return found, made


def _pieces(strip: Strip) -> Sequence[Along]:
    """The axes that an axis of an array is cut into; of windows, those that count windows."""
    for outer, inner in pairwise(strip.moving):
        if inner.length is None or inner.length != outer.step:
            return strip.moving[:1]
    return strip.moving


def _line(runs: Sequence[Along]) -> Iterator[int]:
    """The last axes that run along an array, with so many elements together as make a line."""
    length = 1.0
    for along in reversed(runs):
        yield along.axis
        length *= length_of(along)
        if length >= LINE:
            return


def _folds(primitives: Sequence[Primitive], of: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Each fold, the value that it folds, and the axis of that value."""
    for at in of:
        op = primitives[at].op
        if isinstance(op, Fold):
            (ref,) = primitives[at].operands
            own = ref.axes[op.axis]
            assert own is not None, "unit axes are not folded"
            yield at, ref.value, own


def _spread(chosen: Axes, primitives: Sequence[Primitive], of: Sequence[int]) -> None:
    """What is blocked in a value is blocked in its operands, and the other way around."""
    before = -1
    while before != (now := sum(map(len, chosen))):
        before = now
        for at in of:
            for axis, value, own in _pairs(primitives[at]):
                if axis in chosen[at] or own in chosen[value]:
                    chosen[at].add(axis)
                    chosen[value].add(own)


def _pairs(primitive: Primitive) -> Iterator[tuple[int, int, int]]:
    """Each axis of a result, with the operand and the axis of it that run along it."""
    op, rank = primitive.op, len(primitive.shape)
    for ref in primitive.operands:
        for axis in range(rank):
            if isinstance(op, Fold):
                own = ref.axes[axis + (axis >= op.axis)]
            else:
                own = ref.shown_at(axis, rank)
            if own is not None:
                yield axis, ref.value, own


def _meet(layouts: Sequence[Layout], primitives: Sequence[Primitive], of: Sequence[int]) -> bool:
    """True if an axis is blocked and one of its size is not: blocks would have one element."""
    blocks: dict[bool, set[str]] = {True: set(), False: set()}
    for at in of:
        for level in layouts[at]:
            blocks[level.blocked].add(size_class(level.dim))
    for at, _, _ in _folds(primitives, of):
        op = primitives[at].op
        assert isinstance(op, Fold)
        blocks[True].add(size_class(op.dim))
    return bool(blocks[True] & blocks[False])
