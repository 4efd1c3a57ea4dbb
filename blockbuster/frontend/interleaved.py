"""Which axes are blocked where arrays interleave: where one axis of an array is several of a value.

    pixel shuffle: O[a,e,c*4*D+f*2*D+d*2+g] = x[a,e*4+f*2+g,c,d]

A block of the last two axes of the value, f and g or c and d, lies in pieces of one element in one
of the arrays. So values of programs that compute element by element are blocked along the innermost
axes of every array: here c and d for x, and f, d and g for O. All of them move whole lines then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blockbuster.frontend.layout import Layout
from blockbuster.frontend.primitives import Apply, Count, Primitive, Round, Source
from blockbuster.frontend.strips import Strips, strips_of

SHORT = 16
"""An axis that is known to be so short is blocked in addition to others."""

Axes = list[set[int]]
"""By the position of a value: some of its axes."""


def with_lines(
    layouts: Sequence[Layout],
    primitives: Sequence[Primitive],
    live: Sequence[bool],
    outputs: Sequence[tuple[int, Strips]],
) -> list[Layout]:
    """The layouts with blocks along the innermost axes of all arrays, if an array interleaves.

    ``outputs``: the values that are stored, and how.
    """
    of = [at for at, primitive in enumerate(primitives) if live[at]]
    arrays = [*_sources(primitives, of), *outputs]
    if any(not isinstance(primitives[at].op, Source | Apply | Round | Count) for at in of):
        return list(layouts)
    if not any(len(strip.along) > 1 for _, strips in arrays for strip in strips):
        return list(layouts)
    chosen: Axes = [set() for _ in primitives]
    for at, strips in arrays:
        chosen[at].update(_innermost(strips))
    _spread(chosen, primitives, of)
    return [
        tuple(level._replace(blocked=level.axis in axes) for level in layout)
        for layout, axes in zip(layouts, chosen, strict=True)
    ]


def _sources(primitives: Sequence[Primitive], of: Sequence[int]) -> Iterator[tuple[int, Strips]]:
    """The inputs that are read, and how values lie in them."""
    for at in of:
        op, shape = primitives[at].op, primitives[at].shape
        if isinstance(op, Source):
            yield at, op.strips or strips_of(tuple(range(len(shape))), shape)


def _innermost(strips: Strips) -> Iterator[int]:
    """The last two axes of a value that run along an array, and short ones between or behind."""
    left = 2
    for along in reversed([along for strip in strips for along in strip.along]):
        length = along.length.constant if along.length is not None else None
        left -= length is None or length > SHORT
        yield along.axis
        if not left:
            return


def _spread(chosen: Axes, primitives: Sequence[Primitive], of: Sequence[int]) -> None:
    """What is blocked in a value is blocked in its operands, and the other way around."""
    before = -1
    while before != (now := sum(map(len, chosen))):
        before = now
        for at in of:
            rank = len(primitives[at].shape)
            for ref in primitives[at].operands:
                for axis in range(rank):
                    own = ref.shown_at(axis, rank)
                    if own is not None and (axis in chosen[at] or own in chosen[ref.value]):
                        chosen[at].add(axis)
                        chosen[ref.value].add(own)
