"""bind: the parallel loops that hold a whole nest become its launch grid.

before   Nest: forall m: forall l: BODY      after   Nest on the grid (M, L): BODY

Parallel loops further in stay where they are and run one after the other.
"""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.tile import For, Nest, TileProgram


def bind(program: TileProgram) -> TileProgram:
    """``program`` with each nest's outermost perfectly nested parallel loops on its grid."""
    return replace(program, nests=tuple(_bound(nest) for nest in program.nests))


def _bound(nest: Nest) -> Nest:
    grid, body = nest.grid, nest.body
    while len(body) == 1 and isinstance(body[0], For) and body[0].parallel:
        grid, body = (*grid, body[0].dim), body[0].body
    return Nest(body, grid)
