"""bind: the parallel loops that hold a whole nest become its launch grid.

before   Nest: forall m: forall l: BODY      after   Nest on the grid (M, L): BODY

Parallel loops deeper inside the nest stay loops and run their iterations one after the other. So
does a loop over a chunk of its dim, and a loop over a span, because its bounds are computed before
it. A nest without a grid is one program: it has no places that several could take.
"""

from __future__ import annotations

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import with_parts
from blockbuster.emit.tile.grid_order import grouped_dims
from blockbuster.emit.tile.program import For, Nest, Stmt, TileProgram


def outer_loop(body: tuple[Stmt, ...]) -> For | None:
    """The parallel loop that holds all of ``body``, if there is one that a grid can run."""
    loop = body[0] if len(body) == 1 else None
    if not isinstance(loop, For) or not loop.parallel or loop.within:
        return None
    return loop if loop.chunk is None else None


def bind(program: TileProgram) -> TileProgram:
    """``program`` with the outermost perfectly nested parallel loops of nests on their grids."""
    return with_parts(program, nests=tuple(map(_bound, program.nests)))


def _bound(nest: Nest) -> Nest:
    grid, body = nest.grid, nest.body
    while (loop := outer_loop(body)) is not None:
        grid, body = (*grid, loop.dim), loop.body
    last_first = tuple(dim for dim in nest.last_first if dim in grid)
    programs, stages = (nest.programs, nest.stages) if grid else (0, 0)
    bound = changed(
        nest, body=body, grid=grid, last_first=last_first, programs=programs, stages=stages
    )
    return bound if grouped_dims(bound) else with_parts(bound, group=None)
