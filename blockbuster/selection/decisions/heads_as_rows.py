"""Which list-only dims become rows of tiles: those beside a dim of few rows.

A matrix instruction takes 16 rows. A shorter dim, such as the positions decoded at a time, is
padded to 16. And every element of a list-only dim beside it, such as the query heads of a group,
reads the shared operands of the dots again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from blockbuster.emit.schedule.block import LEAST, dims_of_dots
from blockbuster.emit.schedule.group_heads import DOT, GroupHeads, varying
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import EVERYWHERE
from blockbuster.emit.tile.program import Let, Nest, statements
from blockbuster.emit.tile.trips import dims_in, dims_of
from blockbuster.ir.types import Dim, size_class

GROUP = GroupHeads()


def heads_grouped(scheduled: Scheduled, tiles: Mapping[Dim, int]) -> Scheduled:
    """``scheduled`` with list-only dims as rows where that leaves fewer tiles of rows.

    ``tiles``: lanes that are asked for, by dim or size class; such a dim keeps lanes.
    """
    while pairs := [pair for pair in _few_rows(scheduled) if _pays(scheduled, *pair, tiles)]:
        heads, rows = max(pairs, key=lambda pair: saving(scheduled, *pair))
        scheduled = GROUP.apply(scheduled, EVERYWHERE, heads=heads, rows=rows)
    return scheduled


def _few_rows(scheduled: Scheduled) -> Iterator[tuple[Dim, Dim]]:
    """Pairs of a list-only dim and one of few elements: by sizes alone, it pays to exchange them.

    A dim that fills the rows of a matrix instruction stays.
    """
    draft = scheduled.draft
    dims = dims_of(draft)
    for rows in (dim for dim in dims if 0 < scheduled.sizes[size_class(dim)] < LEAST):
        for heads in (dim for dim in dims if size_class(dim) in draft.units):
            if saving(scheduled, heads, rows) > 1:
                yield heads, rows


def _pays(scheduled: Scheduled, heads: Dim, rows: Dim, tiles: Mapping[Dim, int]) -> bool:
    """False if tiles do better with the rows that they have, whatever their number: no dot has
    them, what is the same for all heads would take them one by one, or their lanes are asked for.
    """
    draft = scheduled.draft
    nests = [nest for nest in draft.nests if rows in dims_in(nest)]
    asked = {dim: tiles.get(dim, tiles.get(size_class(dim), 0)) for dim in (heads, rows)}
    return (
        any(rows in dims_of_dots(nest, draft.units) for nest in nests)
        and not any(_not_for_heads(nest, heads, rows) for nest in nests)
        and asked[rows] <= 1
        and asked[heads] != 1
        and not GROUP.why_not(scheduled, EVERYWHERE, heads=heads, rows=rows)
    )


def _not_for_heads(nest: Nest, heads: Dim, rows: Dim) -> bool:
    """True if some work on rows of ``nest`` is done once for all of ``heads``."""
    if heads not in dims_in(nest):
        return True
    found = varying(nest, heads)
    lets = (stmt for stmt in statements(nest.body) if isinstance(stmt, Let) and stmt.op == DOT)
    return any(rows in let.target.axes and let.target not in found for let in lets)


def saving(scheduled: Scheduled, heads: Dim, rows: Dim) -> float:
    """How many times fewer tiles of rows there are with rows of ``heads``."""
    many, few = (scheduled.sizes[size_class(dim)] for dim in (heads, rows))
    return many * -(-few // LEAST) / max(few * -(-many // LEAST), 1)
