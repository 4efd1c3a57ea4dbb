"""The default schedule of an untuned program: its moves, their places and their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from blockbuster.emit.schedule.base import Args
from blockbuster.emit.schedule.block import (
    BlockDims,
    Cut,
    dims_of_dots,
    unlooped,
    whole_program_cut,
)
from blockbuster.emit.schedule.finish_rows import FinishRows, beside_a_dot
from blockbuster.emit.schedule.keep import Keep
from blockbuster.emit.schedule.narrow import Narrow
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.site import EVERYWHERE, Site, loops_of, statement_at
from blockbuster.emit.schedule.split import Split
from blockbuster.emit.schedule.spread import Spread, needs_all
from blockbuster.emit.target.targets import Target
from blockbuster.emit.tile.dataflow import loaded, stored
from blockbuster.emit.tile.dtypes import dtype_of
from blockbuster.emit.tile.each_nest import Same
from blockbuster.emit.tile.program import For, Let, Nest, TileProgram, statements
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.trips import dims_in
from blockbuster.emit.tile.typed import is_accurate
from blockbuster.ir.types import Dim
from blockbuster.selection.decisions.base_two import in_base_two
from blockbuster.selection.decisions.chunk_sizes import in_chunks
from blockbuster.selection.decisions.combining import blocks, combined_finely
from blockbuster.selection.decisions.dead_tiles import filled
from blockbuster.selection.decisions.default_tiles import choose_tiling
from blockbuster.selection.decisions.deferral import deferred
from blockbuster.selection.decisions.empty_blocks import past_empty_blocks
from blockbuster.selection.decisions.full_tiles import parted
from blockbuster.selection.decisions.heads_as_rows import heads_grouped
from blockbuster.selection.decisions.inlined import inlined
from blockbuster.selection.decisions.joined_rows import rows_joined
from blockbuster.selection.decisions.lanes_of_copies import dense_copies
from blockbuster.selection.decisions.longest_first import longest_first
from blockbuster.selection.decisions.own_blocks import Own, cut_apart, wholes_cut
from blockbuster.selection.decisions.pieces_of_columns import columns_regrouped
from blockbuster.selection.decisions.split_floats import split_floats
from blockbuster.selection.decisions.taps_written_out import taps_written_out
from blockbuster.selection.decisions.turned import turned
from blockbuster.selection.decisions.usual_settings import with_usual_settings
from blockbuster.selection.decisions.wherever import wherever
from blockbuster.selection.priors import PRIORS

BLOCK, FINISH, KEEP, NARROW = BlockDims(), FinishRows(), Keep(), Narrow()
SPLIT, SPREAD = Split(), Spread()


def default_schedule(
    program: TileProgram,
    sizes: Mapping[Dim, int],
    *,
    device: Target,
    tiles: Mapping[Dim, int] | None = None,
    warps: int | None = None,
    chunks: Mapping[Dim, int] | None = None,
) -> Scheduled:
    """``program``, which has dtypes, with the default schedule for these sizes (by size class).

    ``tiles``, ``warps`` and ``chunks``: instead of the defaults.
    """
    if tiles:
        begun = _begun_with(unscheduled(program, sizes, device), tiles)
    else:
        begun = begun_of(program, sizes, device)
    return with_usual_settings(arranged(begun, tiles=tiles or {}, chunks=chunks), warps)


def begun_of(program: TileProgram, sizes: Mapping[Dim, int], device: Target) -> Scheduled:
    """``program`` after the moves that come before its dims are cut into blocks.

    The same object for the same program and sizes: what is asked of no lanes or chunks is
    remembered of it, since a search for schedules begins where the default one did.
    """
    return _begun(Same(program), tuple(sizes.items()), Same(device))


@lru_cache(maxsize=64)  # programs of a few parts
def _begun(
    program: Same[TileProgram], sizes: tuple[tuple[Dim, int], ...], device: Same[Target]
) -> Scheduled:
    return _begun_with(unscheduled(program.one, dict(sizes), device.one), {})


def _begun_with(bare: Scheduled, tiles: Mapping[Dim, int]) -> Scheduled:
    return taps_written_out(columns_regrouped(rows_joined(bare, tiles), tiles))


def arranged(
    scheduled: Scheduled,
    *,
    tiles: Mapping[Dim, int],
    of_dots: Mapping[Dim, int] | None = None,
    chunks: Mapping[Dim, int] | None = None,
    own: Own | None = None,
) -> Scheduled:
    """``scheduled`` after all moves of the default schedule but warps and stages.

    ``tiles``: lanes instead of the defaults; ``of_dots``: the same in nests with dots alone;
    ``own``: lanes of kernels that one nest becomes.
    """
    return completed(divided(scheduled, tiles, of_dots or {}, own or {}), chunks)


def completed(scheduled: Scheduled, chunks: Mapping[Dim, int] | None) -> Scheduled:
    """``scheduled``, which is divided, after the moves behind that."""
    return _completed(scheduled, chunks) if chunks is not None else _as_usual(Same(scheduled))


@lru_cache(maxsize=64)  # programs of a few parts
def _as_usual(scheduled: Same[Scheduled]) -> Scheduled:
    return _completed(scheduled.one, None)


def _completed(scheduled: Scheduled, chunks: Mapping[Dim, int] | None) -> Scheduled:
    scheduled = filled(narrowed(past_empty_blocks(scheduled, chunks)))
    scheduled = parted(deferred(in_chunks(scheduled, asked=chunks)))
    return inlined(longest_first(combined_finely(in_base_two(scheduled))))


def divided(
    scheduled: Scheduled, tiles: Mapping[Dim, int], of_dots: Mapping[Dim, int], own: Own
) -> Scheduled:
    """The same up to where there is a nest for each kernel, but for those that combine chunks."""
    asked = tiles or of_dots or own
    return _divided(scheduled, tiles, of_dots, own) if asked else _by_default(Same(scheduled))


@lru_cache(maxsize=64)  # programs of a few parts
def _by_default(scheduled: Same[Scheduled]) -> Scheduled:
    return _divided(scheduled.one, {}, {}, {})


def _divided(
    scheduled: Scheduled, tiles: Mapping[Dim, int], of_dots: Mapping[Dim, int], own: Own
) -> Scheduled:
    lanes = {**of_dots, **tiles}
    scheduled = heads_grouped(split_floats(scheduled), lanes)
    scheduled = dense_copies(scheduled, lanes)
    scheduled = spread_out(scheduled)
    cuts = _cuts(scheduled, scheduled.draft, lanes) if own else ()
    scheduled = wholes_cut(scheduled, cuts) if own else cut(scheduled, tiles, of_dots)
    if is_accurate(scheduled.start):
        scheduled = finished(scheduled)
    scheduled = wherever(KEEP, scheduled)  # what an iteration stores and loads again
    if not SPLIT.why_not(scheduled, EVERYWHERE):
        scheduled = SPLIT.apply(scheduled, EVERYWHERE)
    return turned(cut_apart(scheduled, cuts, own) if own else scheduled)


def spread_out(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with loops over whole dims in nests that would be one program each.

    So only where another nest needs all of such a dim, which is then one block there alone.
    """
    for site in list(SPREAD.sites(scheduled)):
        nest = scheduled.draft.nests[site.nest - 1]
        if body_inside_grid(nest)[0]:
            continue
        for dim in unlooped(nest, scheduled.draft.units):
            elsewhere = any(needs_all(nest, dim) for nest in scheduled.draft.nests)
            if elsewhere and not SPREAD.why_not(scheduled, site, dim=dim):
                scheduled = SPREAD.apply(scheduled, site, dim=dim)
    return scheduled


def cut(scheduled: Scheduled, tiles: Mapping[Dim, int], of_dots: Mapping[Dim, int]) -> Scheduled:
    """``scheduled`` with default tiles: one for all nests, but where some hold dots, others not.

    The tiles of dots suit no sum of a row: it would be read in many short pieces. So a nest without
    dots beside others is cut in its own way, unless it shares an array with an entry per block.
    Likewise where a dim is one block in some nests, and others loop over it.
    """
    start, program = scheduled, scheduled.draft
    cuts = _cuts(scheduled, program, {**of_dots, **tiles})
    dots = [bool(dims_of_dots(nest, program.units)) for nest in program.nests]
    own = [
        cuts if dot or is_tied(nest) else _cuts(scheduled, replace(program, nests=(nest,)), tiles)
        for nest, dot in zip(program.nests, dots, strict=True)
    ]
    if not (any(dots) or _in_part(program)) or all(set(mine) <= set(cuts) for mine in own):
        return BLOCK.apply(scheduled, EVERYWHERE, cuts=cuts) if cuts else scheduled
    for at in sorted(range(len(own)), key=lambda at: not dots[at]):
        site, here = Site(at + 1), dims_in(program.nests[at])
        usual = tuple(cut for cut in cuts if cut.dim in here)
        mine = tuple(cut for cut in own[at] if cut.dim in here)
        chosen = usual if BLOCK.why_not(scheduled, site, cuts=mine) else mine
        if chosen is usual and usual and BLOCK.why_not(scheduled, site, cuts=usual):
            return BLOCK.apply(start, EVERYWHERE, cuts=cuts)
        scheduled = BLOCK.apply(scheduled, site, cuts=chosen) if chosen else scheduled
    return scheduled


def _in_part(program: TileProgram) -> bool:
    """Whether some nests loop over a dim that others hold whole."""
    whole = {dim for nest in program.nests for dim in unlooped(nest, program.units)}
    looped = (s.dim for n in program.nests for s in statements(n.body) if isinstance(s, For))
    return not whole.isdisjoint(looped)


def is_tied(nest: Nest) -> bool:
    """True if ``nest`` stores or loads an array with an entry per block of a dim."""
    arrays = (*stored(nest.body), *loaded(nest.body))
    return any(axis.per_block for buffer in arrays for axis in buffer.axes)


def _cuts(scheduled: Scheduled, program: TileProgram, tiles: Mapping[Dim, int]) -> tuple[Cut, ...]:
    dtype = dtype_of(program.dtype)
    tiling = choose_tiling(program, scheduled.sizes, tiles, dtype, scheduled.target)
    return whole_program_cut(program, tiling.blocks, tiling.whole)


def finished(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with rows finished in the order that rounds least, but beside dots.

    Only results in float32 show how often a value was rounded; in a loop that holds a dot a
    division per element costs more than it is worth.
    """
    units = Tiling({}, scheduled.draft.units)

    def pays(now: Scheduled, site: Site) -> bool:
        let = statement_at(now.draft, site)
        assert isinstance(let, Let)
        return not beside_a_dot(let, now.draft, units)

    return wherever(FINISH, scheduled, pays)


def narrowed(scheduled: Scheduled) -> Scheduled:
    """``scheduled`` with loops over the blocks only in which their masks are true somewhere.

    A nest that looks through data before is worth its launch only for a loop of many blocks.
    """
    while True:  # such a nest changes the places of others
        found = (
            (site, args)
            for site, loop in loops_of(scheduled.draft)
            if (args := _narrowing(scheduled, site, loop.dim)) is not None
        )
        site, args = next(found, (None, None))
        if site is None or args is None:
            return scheduled
        scheduled = NARROW.apply(scheduled, site, **args)


def _narrowing(scheduled: Scheduled, site: Site, dim: Dim) -> Args | None:
    """How the loop over ``dim`` at ``site`` is narrowed, if it is."""
    if NARROW.why_not(scheduled, site):
        return None
    nests = NARROW.rewritten(scheduled, site).nests
    scans = len(nests) > len(scheduled.draft.nests)
    nest = scheduled.draft.nests[site.nest - 1]
    if not scans or blocks(scheduled, nest, dim) >= PRIORS.scanned_blocks:
        return {}
    return None if NARROW.why_not(scheduled, site, alone=True) else {"alone": True}
