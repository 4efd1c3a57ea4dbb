"""A tile program with all that is decided about its kernels."""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.emit.target.compiler import Target
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.tiling import Tiling


@dataclass(frozen=True)
class Scheduled:
    """A tile program after its passes: all that is decided about a kernel before it is printed.

    ``chosen``: the tiling of the dims that the program had before; ``tiling``: of all its dims.
    ``usual_warps``: the default for it, which ``warps`` are unless others were asked for.
    """

    program: TileProgram
    tiling: Tiling
    chosen: Tiling
    device: Target
    warps: int
    usual_warps: int
    stages: int
