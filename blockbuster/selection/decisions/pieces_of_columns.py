"""Which loops over pieces of a product's columns become blocks of several pieces.

A tile of a product that is one piece wide reads its rows again for each piece. Blocks that hold
several pieces are those of the product alone, so this is done wherever it can be, unless a piece is
as wide as the widest block that a product has.
"""

from __future__ import annotations

from collections.abc import Mapping

from blockbuster.emit.schedule.regroup import Regroup, piece_of
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.decisions.wherever import wherever
from blockbuster.selection.priors import PRIORS

REGROUP = Regroup()


def columns_regrouped(scheduled: Scheduled, tiles: Mapping[Dim, int]) -> Scheduled:
    """``scheduled`` with whole pieces in blocks of a product's columns.

    ``tiles``: lanes that are asked for, by dim or size class; such pieces stay by themselves.
    """

    def pays(now: Scheduled, site: Site) -> bool:
        piece = piece_of(now.draft.nests[site.nest - 1], site.loop)
        asked = any(d in tiles or size_class(d) in tiles for d in (site.loop, piece))
        return not asked and now.sizes[size_class(piece)] <= PRIORS.longest_piece

    return wherever(REGROUP, scheduled, pays)
