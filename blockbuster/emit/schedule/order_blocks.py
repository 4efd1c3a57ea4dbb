"""order: a grid takes the blocks of a dim from the last to the first.

before   forall m in range(M):            after   forall m in range(M):      # blocks last first
          for n in range(0, last(m)):              for n in range(0, last(m)):
           ...                                      ...

Programs start in the order of the grid. If later blocks have more work, as the rows of a causal
mask have, the longest programs start first and the last ones to run are short. Costs nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import LoopMove
from blockbuster.emit.schedule.on_grid import not_on_the_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, with_nest
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.program import For, TileProgram


class OrderBlocks(LoopMove):
    """Start the programs of the last block of a dim first."""

    name: ClassVar[str] = "order"
    form: ClassVar[Form] = Form("last first")

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """The loop is one of those that the grid runs."""
        nest = scheduled.draft.nests[site.nest - 1]
        if loop.dim in nest.last_first:
            return f"the blocks of {loop.dim} are taken from the last to the first already"
        return not_on_the_grid(loop, nest)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with this dim among those whose blocks are taken from the last."""
        nest = scheduled.draft.nests[site.nest - 1]
        made = replace(nest, last_first=(*nest.last_first, site.loop))
        return with_nest(scheduled.draft, site, made)
