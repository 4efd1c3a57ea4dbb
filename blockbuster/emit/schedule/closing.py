"""What follows moves without being asked for: after each of them, and once before printing.

``tidied`` brings a draft into its normal form after every move. ``closed`` makes the program that
is printed: groups under leads that are folded first, guards where lanes past the end would count,
workspaces in the dtype of the dots that read them, and each nest's outer loops on the grid. Neither
takes a decision.
"""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.schedule.bind import bind
from blockbuster.emit.schedule.guard import guard_nests
from blockbuster.emit.schedule.hoist import hoist
from blockbuster.emit.schedule.lead_first import lead_first
from blockbuster.emit.schedule.merge_repeats import merge_repeats
from blockbuster.emit.schedule.narrow_workspaces import narrow_workspaces
from blockbuster.emit.schedule.split_nests import conflicts
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.typed import retyped

CLOSING = (lead_first, guard_nests, narrow_workspaces, bind)


def tidied(program: TileProgram) -> TileProgram:
    """``program`` with what does not change moved out of loops, and nothing made twice.

    Dtypes follow up: a move may have left a tile loaded that was computed, or read before it is
    folded, and need not say what becomes of what is computed from it.
    A nest that loads what it stores is left with its repeats: where it is split, a tile that two
    parts make again needs no workspace.
    """
    program = hoist(retyped(program))
    merged = merge_repeats(program).nests
    nests = (
        nest if conflicts(nest.body) else other
        for nest, other in zip(program.nests, merged, strict=True)
    )
    return replace(program, nests=tuple(nests))


def closed(program: TileProgram) -> TileProgram:
    """The program that is printed."""
    for closing in CLOSING:
        program = closing(program)
    return program
