"""Scans of many items at once, those of all iterations of a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from blockbuster.interp.columns import Column, Columns, Places, Shape
from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Semantics
from blockbuster.ir.ops import Scan

Chosen = Callable[..., Places]
"""Places of a column, made once for each key."""


def scanned(
    op: Scan, semantics: Semantics, columns: Columns, column: Column, count: int, chosen: Chosen
) -> Column:
    """The items of ``column`` scanned, each ``count`` successive ones going on from each other."""
    loops = len(column) // count if count else 0

    def part(of: int) -> Callable[[Sequence[Array], Shape], Array]:
        def make(items: Sequence[Array], _: Shape) -> Array:
            made, left = semantics.scan_last(op, *items)
            return left if of and left is not None else made

        return make

    made: list[Column] = []
    left: tuple[Column, ...] = ()
    for at in reversed(range(count)) if op.back else range(count):
        places = chosen(
            "entry", loops, count, at, make=lambda at=at: np.arange(at, loops * count, count)
        )
        given = (columns.taken(column, places), *left)
        made.append(columns.mapped(given, part(0)))
        left = (columns.mapped(given, part(1)),)
    if not made:
        return column
    joined = columns.joined(made[::-1] if op.back else made)
    by_iteration = chosen(
        "by iteration", loops, count,
        make=lambda: np.arange(loops * count).reshape(count, loops).T.ravel(),
    )  # fmt: skip
    return columns.taken(joined, by_iteration)
