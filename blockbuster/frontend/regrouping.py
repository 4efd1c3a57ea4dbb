"""A reshape as splits and merges: old axes split into parts, and new axes merge from them.

Both shapes list the same elements in the same order. The outermost old axis and the outermost new
one are compared: the shorter is a part of both, and the rest of the longer is compared next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blockbuster.ir.lengths import ONE, Length


@dataclass(frozen=True)
class Part:
    """``length`` elements: a part of axis ``old`` of one shape and of axis ``new`` of the other."""

    length: Length
    old: int
    new: int


def parts_of(old: Sequence[Length], new: Sequence[Length]) -> tuple[Part, ...] | None:
    """The parts of two shapes, outermost first; None if neither of two axes divides the other.

    Axes of extent 1 have no part. A quotient has to be whole for all sizes for which the shapes
    are: it has no fractions, or it is the product of the axes that follow.

    >>> from blockbuster.ir.lengths import whole
    >>> parts = parts_of([whole(4), whole(6)], [whole(8), whole(3)])
    >>> [(str(part.length), part.old, part.new) for part in parts]
    [('4', 0, 0), ('2', 1, 0), ('3', 1, 1)]
    """
    olds, news = _longer_than_one(old), _longer_than_one(new)
    found: list[Part] = []
    while olds and news:
        (i, a), (j, b) = olds.pop(0), news.pop(0)
        left, right = _quotient(a, b, news), _quotient(b, a, olds)
        if left is None and right is None:
            return None
        found.append(Part(a if left is None else b, i, j))
        if left is not None and left != ONE:
            olds.insert(0, (i, left))
        elif left is None and right is not None:
            news.insert(0, (j, right))
    return None if olds or news else tuple(found)


def _longer_than_one(extents: Sequence[Length]) -> list[tuple[int, Length]]:
    return [(axis, extent) for axis, extent in enumerate(extents) if extent != ONE]


def _quotient(extent: Length, by: Length, following: Sequence[tuple[int, Length]]) -> Length | None:
    """``extent`` over ``by`` where it is surely whole; ``following``: the axes behind ``by``."""
    found = extent.over(by)
    if found is not None and found.is_integral:
        return found
    product = ONE
    for _, length in following:
        product = product * length
        if product * by == extent:
            return product
    return None


def exchanged(rank: int, one: int, two: int) -> list[int]:
    """The axes of an array with two of them, counted from the end, in each other's place."""
    order = [*range(rank)]
    order[one], order[two] = order[two], order[one]
    return order
