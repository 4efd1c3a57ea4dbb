"""group: a grid takes the blocks of a dim in groups, for each block of the next dim.

before   forall m in range(M):          after   forall m in range(M):      # groups of 8 m
          forall n in range(N):                  forall n in range(N):
           ...                                    ...

Row by row, the programs that run at the same time share few rows of tiles and most of the columns:
between two rows, all columns pass through the cache. In groups they share about as many rows as
columns, so fewer bytes come from memory. Costs a few integer divisions at the start of a program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import Args, LoopMove
from blockbuster.emit.schedule.on_grid import body_inside_grid, not_on_the_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, with_nest
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.group import Group
from blockbuster.emit.tile.program import For, TileProgram

FEWEST = 2  # blocks of a group: with one, programs are taken row by row


class GroupBlocks(LoopMove):
    """Walk a grid in groups of blocks."""

    name: ClassVar[str] = "group"
    form: ClassVar[Form] = Form("BLOCKS")

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """Powers of two from two to sixteen."""
        yield from ({"blocks": 1 << power} for power in range(1, 5))

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """The grid runs the loop and another one in it, and has no groups yet."""
        if args["blocks"] < FEWEST:
            return f"a group has {args['blocks']} blocks, expected at least {FEWEST}"
        nest = scheduled.draft.nests[site.nest - 1]
        if reason := not_on_the_grid(loop, nest):
            return reason
        if loop is body_inside_grid(nest)[0][-1]:
            return f"the loop over {loop.dim} is the last of the grid: groups need one inside it"
        if nest.group is not None:
            return f"the grid has groups of {nest.group.blocks} blocks of {nest.group.dim} already"
        return ""

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with groups of blocks of this dim."""
        nest = scheduled.draft.nests[site.nest - 1]
        made = replace(nest, group=Group(site.loop, args["blocks"]))
        return with_nest(scheduled.draft, site, made)
