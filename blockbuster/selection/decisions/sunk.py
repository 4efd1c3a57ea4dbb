"""Which parallel loops the grid runs though a few values are made before them: cheap ones.

What is loaded before such a loop are entries of rows, as statistics or their partial sums: to make
them in every program is nothing beside a product. On an H200 a gated network of 2048 rows takes
1283 microseconds with its first product in chunks of columns and 1098 with a program for each tile,
in groups; of 128 rows, each program finishes its product before it waits for the statistics.

What is made of positions and sizes alone, such as masks of rows, reads no memory at all: to make it
again costs a few instructions, and a loop that stays inside its program runs one block at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.sink import Sink
from blockbuster.emit.schedule.site import loops_of
from blockbuster.emit.tile.dataflow import defined
from blockbuster.emit.tile.program import For, Load, Stmt, statements
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import matrix_dots

SINK = Sink()


def sunk(scheduled: Scheduled, number: int) -> Scheduled:
    """``scheduled`` with nest ``number`` sunk into its loops, where that is cheap."""
    while True:
        sites = (site for site, _ in loops_of(scheduled.draft) if site.nest == number)
        legal = (site for site in sites if not SINK.why_not(scheduled, site))
        site = next((site for site in legal if _pays(scheduled, number)), None)
        if site is None:
            return scheduled
        scheduled = SINK.apply(scheduled, site)


def _pays(scheduled: Scheduled, number: int) -> bool:
    """True if it costs little to make in each program what stands before the last loop: narrow
    values, or entries of rows before a dot.
    """
    nest = scheduled.draft.nests[number - 1]
    tiling = tiling_of(scheduled.draft, nest)
    around, (*before, loop) = body_inside_grid(nest)
    assert isinstance(loop, For)
    if _is_narrow(before, loop, tiling):
        return True
    if not matrix_dots(loop.body, tiling):  # it waits for memory
        return False
    counted = {chunks.lanes for chunks in scheduled.draft.chunks}
    rows = {*counted, *(outer.dim for outer in around), *nest.grid}
    return all(rows.issuperset(tiling.lanes(s.target)) for s in before if isinstance(s, Load))


def _is_narrow(before: Sequence[Stmt], loop: For, tiling: Tiling) -> bool:
    """True if nothing is loaded before a loop, and all that is made there has fewer axes than what
    the loop makes.
    """
    if any(isinstance(stmt, Load) for stmt in before):
        return False
    made, inside = _widest(before, tiling), _widest(statements((loop,)), tiling)
    return made < inside


def _widest(body: Iterable[Stmt], tiling: Tiling) -> int:
    """The most axes of a tile that a statement of ``body`` makes."""
    tiles = map(defined, body)
    return max((len(tiling.lanes(tile)) for tile in tiles if tile is not None), default=0)
