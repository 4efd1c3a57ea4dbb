"""The schedule of a tile program that nobody has tuned: default tiles, then the passes in order."""

from __future__ import annotations

from collections.abc import Mapping

from blockbuster.emit.schedule.bind import bind
from blockbuster.emit.schedule.chunk_loops import chunk_loops
from blockbuster.emit.schedule.defer_lane_sums import defer_lane_sums
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops
from blockbuster.emit.schedule.finish_rows import finish_rows
from blockbuster.emit.schedule.guard import guard
from blockbuster.emit.schedule.hoist import hoist
from blockbuster.emit.schedule.lead_first import lead_first
from blockbuster.emit.schedule.merge_repeats import merge_repeats
from blockbuster.emit.schedule.narrow_workspaces import narrow_workspaces
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.split_nests import split_nests
from blockbuster.emit.target.compiler import Target
from blockbuster.emit.tile.dtypes import dtype_of
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.trips import dims_of
from blockbuster.emit.tile.typed import is_accurate
from blockbuster.ir.types import Dim
from blockbuster.selection.default_tiles import STAGES, choose_tiling, choose_warps


def schedule(
    program: TileProgram,
    sizes: Mapping[Dim, int],
    *,
    device: Target,
    tiles: Mapping[Dim, int] | None = None,
    warps: int | None = None,
    chunks: Mapping[Dim, int] | None = None,
) -> Scheduled:
    """``program``, which has dtypes, with tiles and after its passes.

    ``tiles`` and ``warps``: instead of the defaults.
    """
    chosen = choose_tiling(program, sizes, tiles or {}, dtype_of(program.dtype), device)
    program, tiling = apply_passes(
        program, chosen, device.processors, accurate=is_accurate(program), chunks=chunks
    )
    usual = choose_warps(program, tiling)
    return Scheduled(program, tiling, chosen, device, warps or usual, usual, STAGES)


def apply_passes(
    program: TileProgram,
    tiling: Tiling,
    processors: int,
    *,
    accurate: bool = False,
    chunks: Mapping[Dim, int] | None = None,
) -> tuple[TileProgram, Tiling]:
    """``program`` after the passes that a kernel needs, in order, and the tiling of its dims.

    ``processors``: what a device runs at once. ``accurate``: results are float32, which shows how
    often a value was rounded. ``chunks``: instead of as many as keep the device busy.
    """
    program = drop_unit_loops(program, tiling.whole)
    program = hoist(program)
    if accurate:
        program = finish_rows(program, tiling)
    program = merge_repeats(hoist(split_nests(program)))
    program, tiling = chunk_loops(program, tiling, processors=processors, asked=chunks)
    program = lead_first(program)
    program = defer_lane_sums(program, tiling)
    dims = [d for d in dims_of(program) if not tiling.is_unit(d) and tiling.ragged(d)]
    return bind(narrow_workspaces(guard(program, dims))), tiling
