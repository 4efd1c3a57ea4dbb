"""Dims whose blocks a schedule takes in pairs: programs of two blocks (emit/schedule/jam.py)."""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.emit.schedule.jam import PAIR
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.ir.lengths import share_of, size
from blockbuster.ir.types import Dim


def pairs_in(scheduled: Scheduled) -> Iterator[tuple[Dim, int]]:
    """Dims whose blocks a schedule takes in pairs, and the elements of a pair: they divide them."""
    for nest in scheduled.draft.nests:
        lanes = {block.dim: block.lanes for block in nest.blocks}
        for rule in scheduled.made:
            dims = rule.length.dims
            if rule.dim in lanes and dims and rule.length == size(dims[0]) * share_of(PAIR):
                yield dims[0], PAIR * lanes[rule.dim]
