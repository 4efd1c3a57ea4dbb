"""How many elements items have, symbolically: the loop or list that each axis follows.

An axis that a map loops over follows the current block of that loop. An axis of the items of a list
follows the entry's place in the list. Any other axis has an extent that is a polynomial. Summed
over a loop, blocks are the whole dim, however ragged; therefore closed forms are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import blockbuster.selection.traffic.closed_forms as closed_forms
from blockbuster.ir.types import Dim, Type
from blockbuster.selection.priors import PRIORS
from blockbuster.selection.traffic.closed_forms import ONE, ClosedForm, first_block, product, size


@dataclass(frozen=True)
class OfList:
    """The extent of the entry's block in list ``level``, outermost first."""

    level: int


@dataclass(frozen=True)
class OfLoop:
    """The extent of the current block of the loop at ``depth``, outermost first."""

    depth: int


Extent = ClosedForm | OfList | OfLoop


class Loop(NamedTuple):
    """A loop over the blocks of ``dim``, the first ``start`` of them left out."""

    dim: Dim
    start: int = 0


def whole_extents(type: Type) -> tuple[Extent, ...]:
    """The extents of items cut out of a whole array of this type."""
    lists = type.lists
    return tuple(OfList(lists.index(d)) if d in lists else size(d) for d in type.axes)


def taken(extents: Sequence[Extent], entry: Extent) -> tuple[Extent, ...]:
    """The extents of an entry of a list, whose block has extent ``entry``."""
    return tuple(
        (entry if e.level == 0 else OfList(e.level - 1)) if isinstance(e, OfList) else e
        for e in extents
    )


def listed(extents: Sequence[Extent], depth: int) -> tuple[Extent, ...]:
    """The extents of what the loop at ``depth`` collects, as a list."""
    return tuple(
        OfList(e.level + 1) if isinstance(e, OfList) else OfList(0) if e == OfLoop(depth) else e
        for e in extents
    )


def folded(extents: Sequence[Extent], depth: int, dim: Dim) -> tuple[Extent, ...]:
    """The extents of what the loop at ``depth``, over ``dim``, accumulates.

    Only items of one shape can be folded, so where they follow the loop all its blocks are equal.
    """
    return tuple(first_block(dim) if e == OfLoop(depth) else e for e in extents)


@lru_cache(maxsize=PRIORS.remembered_products)
def elements(extents: tuple[Extent, ...], loops: tuple[Loop, ...]) -> ClosedForm:
    """The elements of an item of these extents, over all iterations of the loops together."""
    own = product(e for e in extents if isinstance(e, ClosedForm))
    return own * product(
        sum_of_extents(loop, sum(e == OfLoop(depth) for e in extents))
        for depth, loop in enumerate(loops)
    )


@lru_cache(maxsize=PRIORS.remembered_products)
def sum_of_extents(loop: Loop, power: int) -> ClosedForm:
    """The sum of the extents of a loop's blocks, each to ``power``.

    Power 0 counts the blocks, and power 1 gives the whole dim, less the first block where the loop
    starts at 1. A block whose two axes follow one loop (a diagonal one) has power 2.
    """
    count, first = closed_forms.blocks(loop.dim), first_block(loop.dim)
    skipped = product([first] * power) * closed_forms.number(loop.start)
    if power == 0:
        return count - skipped
    if power == 1:
        return size(loop.dim) - skipped
    full = count - ONE
    last = size(loop.dim) - full * first
    return full * product([first] * power) + product([last] * power) - skipped


@lru_cache(maxsize=PRIORS.remembered_products)
def largest(extents: tuple[Extent, ...], loops: tuple[Loop, ...]) -> ClosedForm:
    """The elements of the largest item of these extents: that of first blocks."""
    return product(
        first_block(loops[e.depth].dim) if isinstance(e, OfLoop) else e
        for e in extents
        if not isinstance(e, OfList)
    )
