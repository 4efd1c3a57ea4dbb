"""warps: sets how many warps run each program of a nest's grid.

More warps share the rows of a tile, so that each holds fewer of its registers; fewer warps issue
fewer instructions for the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import NEST, Args, Move, not_a_power_of_two
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, with_nests
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.program import TileProgram

MOST = 32  # warps of a thread block of 1024 threads


class Warps(Move):
    """Give the programs of a nest, or of all nests, a number of warps."""

    name: ClassVar[str] = "warps"
    takes: ClassVar[str] = NEST
    form: ClassVar[Form] = Form("COUNT")

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """Powers of two."""
        yield from ({"count": 1 << power} for power in range(MOST.bit_length()))

    def not_here(self, scheduled: Scheduled, site: Site, found: object, /, **args: Any) -> str:
        """The count is a power of two up to ``MOST``."""
        count: int = args["count"]
        if count > MOST:
            return f"the number of warps is {count}, more than {MOST}"
        return not_a_power_of_two(count, "the number of warps")

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with this number of warps on the chosen nests."""
        return with_nests(scheduled.draft, site, lambda nest: changed(nest, warps=args["count"]))
