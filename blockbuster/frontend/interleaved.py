"""Which axes are blocked where some are known to be short: those along which arrays have lines.

    pixel shuffle: O[a,e,c*4*D+f*2*D+d*2+g] = x[a,e*4+f*2+g,c,d]    F and G are 2

A block of C and D takes every other element of O, and one of F and G few elements of x. So values
of programs that compute element by element are blocked along the innermost axes of every array:
here C and D for x, and C, D and G for O. Lines of both are moved whole then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from blockbuster.frontend.layout import Layout
from blockbuster.frontend.primitives import Apply, Count, Fold, Primitive, Round, Source
from blockbuster.frontend.strips import Along, Strips, strips_of
from blockbuster.ir.types import Dim, size_class

SHORT = 16
"""An axis that is known to be so short makes no lines by itself."""

Axes = list[set[int]]
"""By the position of a value: some of its axes."""


def with_lines(
    layouts: Sequence[Layout],
    primitives: Sequence[Primitive],
    live: Sequence[bool],
    outputs: Sequence[tuple[int, Strips]],
) -> list[Layout]:
    """The layouts with blocks along the innermost axes of all arrays, where short axes are blocked,
    or are innermost. ``outputs``: the values that are stored, and how.
    """
    of = [at for at, primitive in enumerate(primitives) if live[at]]
    if any(not isinstance(primitives[at].op, Source | Apply | Round | Count) for at in of):
        return list(layouts)
    arrays = [
        (at, [along for strip in strips for along in strip.moving])
        for at, strips in (*sources(primitives, of), *outputs)
    ]
    short: Axes = [set() for _ in primitives]
    for at, runs in arrays:
        short[at].update(along.axis for along in runs if length_of(along) <= SHORT)
    spread(short, primitives, of)
    blocked = ({level.axis for level in layout if level.blocked} for layout in layouts)
    innermost = (short[at] & {along.axis for along in runs[-1:]} for at, runs in arrays)
    if not any(map(set.intersection, short, blocked)) and not any(innermost):
        return list(layouts)
    chosen: Axes = [set() for _ in primitives]
    for at, runs in arrays:
        chosen[at].update(_innermost(runs))
    spread(chosen, primitives, of)
    found = blocked_along(chosen, layouts)
    return list(layouts) if meet(found, of) else found


def blocked_along(chosen: Axes, layouts: Sequence[Layout]) -> list[Layout]:
    """The layouts with blocks along the chosen axes alone."""
    return [
        tuple(level._replace(blocked=level.axis in axes) for level in layout)
        for layout, axes in zip(layouts, chosen, strict=True)
    ]


def meet(layouts: Sequence[Layout], of: Sequence[int], folded: Iterable[Dim] = ()) -> bool:
    """True if an axis is in blocks, as those that are ``folded``, and one of its size is not: one
    size has blocks of one element everywhere.
    """
    levels = [level for at in of for level in layouts[at]]
    blocks, loops = (
        {size_class(level.dim) for level in levels if level.blocked is blocked}
        for blocked in (True, False)
    )
    return bool(blocks.union(map(size_class, folded)) & loops)


def sources(primitives: Sequence[Primitive], of: Sequence[int]) -> Iterator[tuple[int, Strips]]:
    """The inputs that are read, and how values lie in them."""
    for at in of:
        op, shape = primitives[at].op, primitives[at].shape
        if isinstance(op, Source):
            yield at, op.strips or strips_of(tuple(range(len(shape))), shape)


def length_of(along: Along) -> float:
    """How many elements run along an axis; infinite if that is not known."""
    length = along.length.constant if along.length is not None else None
    return inf if length is None else float(length)


def _innermost(runs: Sequence[Along]) -> Iterator[int]:
    """Of the axes that run along an array the last ones, which make a line together, and those
    before them that would make another one.
    """
    lines, length = 0, 1.0
    for along in reversed(runs):
        yield along.axis
        length *= length_of(along)
        if length > SHORT:
            lines, length = lines + 1, 1.0
        if lines == 2:
            return


def spread(chosen: Axes, primitives: Sequence[Primitive], of: Sequence[int]) -> None:
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
