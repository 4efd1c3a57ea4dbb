"""Where a search for a schedule begins: at the default schedule, and at one with wider blocks.

Both let loads of dots run one step further ahead than the default schedule, and have twice the
warps where each then has rows for two dots. The wider one has twice the lanes along results of
dots; without dots its programs take single rows, as much of each at once as ``LINE``. Where loops
have dots that wait for others, the search begins with two blocks of rows to a program, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from blockbuster.emit.schedule.block import least_lanes
from blockbuster.emit.schedule.jam import Jam
from blockbuster.emit.schedule.persist import Persist
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, loop_at
from blockbuster.emit.schedule.warps import Warps
from blockbuster.emit.tile.dataflow import defined, operands
from blockbuster.emit.tile.program import Await, For, Let, Load, TileProgram, statements
from blockbuster.emit.tile.tiling import Tiling, power_of_two, tiling_of
from blockbuster.emit.tile.trips import dims_in
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.errors import EmitError
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.decisions.default_schedule import arranged
from blockbuster.selection.decisions.own_blocks import Own
from blockbuster.selection.decisions.packed import packed
from blockbuster.selection.decisions.split_tiles import split_tiles
from blockbuster.selection.decisions.usual_settings import with_settings
from blockbuster.selection.limits import IN_TURN, times

JAM, PERSIST, WARPS = Jam(), Persist(), Warps()

STAGES = 3
"""Stages of loops of dots: two steps are on their way."""

NONE: Own = {}
APART: Own = {1: {}}
"""Lines of their own for the blocks of each kernel that one nest becomes, so that they can differ.
"""

WIDEST, LINE = 256, 1 << 14
"""Lanes of a dim of dots, and of a row, at most. 32 to a thread of the largest program leave a
processor no room for another, so rows of 256 kB that are read twice stay in the cache: RMSNorm of
256 rows of 131072 takes an H200 48.5 microseconds in such blocks, 54.5 with twice as many rows at
once; LayerNorm, which reads them three times, 57.7 and 71.6.
"""


def starts(default: Scheduled, *, in_chunks: bool) -> Iterator[Scheduled]:
    """``default``, and the schedules of the same program with which its search begins, too."""
    yield default
    bare = replace(default, draft=default.start, moves=())
    make = partial(_apart, bare, None if in_chunks else {})
    wide = _wider(default)
    rows = {let.target.axes[0] for let in _dots(bare.draft)}
    made = [make({}), make(wide)]
    tall = make({dim: lanes for dim, lanes in wide.items() if dim in rows})
    made += [_jammed(tall, site) for site in JAM.sites(tall)] if tall else []
    if default.draft.chunks and rows:
        made.append(_apart(bare, {}, {}))
    known = [one for one in made if one is not None]
    yield from (packed(with_settings(one, STAGES, described=False)) for one in known)
    if times(default).microseconds >= IN_TURN:
        yield from (packed(with_settings(one, STAGES, described=True)) for one in known)
        columns = {let.target.axes[-1] for let in _dots(bare.draft)} - rows
        wider = {dim: lanes * (1 + (dim in columns)) for dim, lanes in wide.items()}
        yield from _in_turn((make(wide), 2, 4), (make(wider), 1, 8))


def _in_turn(*asked: tuple[Scheduled | None, int, int]) -> Iterator[Scheduled]:
    """Schedules whose products have so many programs to a processor, of so many warps.

    Of a product with large tiles, one program fills a processor's memory. While it stores its
    results and waits for its first loads, its matrix units stand still, unless the loads of the
    next place run ahead meanwhile. Two programs begin at once, so both store at once, and both
    wait. If they take their places in turn, one computes while the other stores: a product of
    8192 x 256 x 4096 in tiles of 128 x 128 took an H200 37.3 microseconds by two programs to a
    processor in turn and 44.3 by one for each tile; with 128 x 256 results 39.7 by one to a
    processor in turn and 48.5 by one for each. That takes descriptors, warps and blocks at once,
    none of which is worth a step alone.
    """
    for one, side, warps in asked:
        made = with_settings(one, STAGES, described=True) if one else None
        for site in list(PERSIST.sites(made)) if made else ():
            assert made is not None
            count = side * made.target.processors
            nest = made.draft.nests[site.nest - 1]
            if least_lanes(nest, made.draft.units):
                if nest.warps != warps:
                    made = WARPS.apply(made, site, count=warps)
                made = PERSIST.apply(made, site, programs=count)
        if made is not None and any(nest.programs for nest in made.draft.nests):
            yield packed(made)


def _jammed(scheduled: Scheduled, site: Site) -> Scheduled | None:
    """``scheduled`` with two blocks to a program, where its loops have dots that wait for others.

    A program of one block waits for its dots, computes with their results, and waits again. Two
    blocks in one program read half as much and fill in for each other, but need larger blocks to be
    better. On an H200 full attention of depth 128 took 4723 microseconds for 16384 positions with a
    block of 64 rows, 252.6 for 4096; with two blocks of 128 rows 3866 and 237.
    """
    loop, nest = loop_at(scheduled.draft, site), scheduled.draft.nests[site.nest - 1]
    assert loop is not None
    tiling = tiling_of(scheduled.draft, nest)
    inner = (stmt for stmt in loop.statements if isinstance(stmt, For))
    waits = any(_has_chained_dots(one, tiling) for one in inner)
    return JAM.apply(scheduled, site) if waits else None


def _has_chained_dots(loop: For, tiling: Tiling) -> bool:
    """True if a dot of the loop's body takes what is computed there of another one. Else two blocks
    of rows are no more than one of twice the rows.
    """
    made = {defined(s) for s in loop.body if not isinstance(s, Load | Await)} - {None}
    dots = [s for s in loop.body if isinstance(s, Let) and is_matrix_dot(s, tiling)]
    return len(dots) > 1 and any(not made.isdisjoint(operands(dot)) for dot in dots)


def _apart(
    bare: Scheduled, chunks: Mapping[Dim, int] | None, wide: Mapping[Dim, int]
) -> Scheduled | None:
    """The schedule without warps and stages that has these lanes, and for other dims default ones.

    Kernels that one nest becomes have lines for their own blocks. None if lanes do not go together.
    """
    asked = dict.fromkeys((d for n in bare.draft.nests for d in dims_in(n)), 0) if wide else {}
    lanes = {**asked, **wide}
    tiles, of_dots = ({}, lanes) if _dots(bare.draft) else (lanes, {})
    for own in (APART, NONE):
        with suppress(EmitError):
            made = arranged(bare, tiles=tiles, of_dots=of_dots, chunks=chunks, own=own)
            if own is NONE or len(made.draft.nests) > 1:
                return made
    return None


def _wider(default: Scheduled) -> Mapping[Dim, int]:
    """The lanes of the wider schedule, of dims that have several blocks in the default one."""
    draft, start = default.draft, default.start
    dots = _dots(start)
    if split_tiles(draft, default.sizes, default.target.processors):
        return {}
    found = dict[Dim, int]()
    for nest in draft.nests:
        least = least_lanes(nest, draft.units)
        for block in nest.blocks if least or not dots else ():
            dim, size = block.dim, default.sizes[size_class(block.dim)]
            most = power_of_two(size, least.get(dim, 1))
            if block.whole or size_class(dim) in draft.units:
                continue
            if dots:
                wide = 2 * block.lanes if dim in _results(start) else block.lanes
                found[dim] = max(found.get(dim, 1), min(wide, most, WIDEST))
            else:
                found[dim] = min(most, LINE) if dim in _results(start) else 1
    return found


def _dots(program: TileProgram) -> list[Let]:
    tiling = Tiling({}, program.units)
    return [let for let in _lets(program) if is_matrix_dot(let, tiling)]


def _lets(program: TileProgram) -> list[Let]:
    return [s for nest in program.nests for s in statements(nest.body) if isinstance(s, Let)]


def _results(program: TileProgram) -> set[Dim]:
    """The dims of results of dots; without dots, those along rows."""
    tiling, dots = Tiling({}, program.units), _dots(program)
    if dots:
        return {dim for dot in dots for dim in tiling.lanes(dot.target)}
    return {dim for let in _lets(program) for dim in tiling.lanes(let.target)[1:]}
