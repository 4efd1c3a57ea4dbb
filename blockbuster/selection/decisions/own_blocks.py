"""Separate blocks for each kernel, if one loop nest becomes several kernels.

The columns of one product may be the dim over which the next one sums: as columns they are cut into
small blocks, so that there are many programs, and as summands into large ones. And features of
which one kernel needs a whole row at once are one block there, while another kernel walks them. So
only dims that are one block everywhere are cut before the nest is split; then each part is cut by
itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from blockbuster.emit.schedule.block import BlockDims, Cut
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import EVERYWHERE, Site
from blockbuster.emit.schedule.split import Split
from blockbuster.emit.tile.trips import walked_in
from blockbuster.errors import EmitError
from blockbuster.ir.types import Dim, size_class

BLOCK, SPLIT = BlockDims(), Split()

Own = Mapping[int, Mapping[Dim, int]]
"""Lanes of some dims by the number of a kernel, as they follow from splitting, before chunks."""


def wholes_cut(scheduled: Scheduled, cuts: Sequence[Cut]) -> Scheduled:
    """``scheduled``, of one nest, with those of ``cuts`` that are one block everywhere.

    Raises EmitError where no kernels are to be made of it that could differ.
    """
    whole = tuple(cut for cut in cuts if cut.whole)
    if len(scheduled.draft.nests) > 1:
        raise EmitError("kernels have blocks of their own where one nest is split")
    return BLOCK.apply(scheduled, EVERYWHERE, cuts=whole) if whole else scheduled


def cut_apart(scheduled: Scheduled, cuts: Sequence[Cut], own: Own) -> Scheduled:
    """``scheduled``, split, with the rest of ``cuts`` in every nest, or the nest's ``own`` lanes.

    A dim that has no more elements than its own lanes is one block there. Raises EmitError where
    the nests do not go together.
    """
    for number, nest in enumerate(scheduled.draft.nests, start=1):
        here, mine = walked_in(nest), own.get(number, {})
        usual = (cut for cut in cuts if cut.dim in here and not cut.whole)
        chosen = tuple(_own(cut, mine, scheduled.sizes) for cut in usual)
        scheduled = BLOCK.apply(scheduled, Site(number), cuts=chosen) if chosen else scheduled
    return scheduled


def _own(cut: Cut, mine: Mapping[Dim, int], sizes: Mapping[Dim, int]) -> Cut:
    if cut.dim not in mine:
        return cut
    lanes = mine[cut.dim]
    return replace(cut, lanes=lanes, whole=sizes[size_class(cut.dim)] <= lanes)
