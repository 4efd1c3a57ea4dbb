"""Single kernels of a schedule in other forms: lines behind an arrangement of blocks.

A kernel's blocks are cut anew, because what suits one kernel of a program does not suit the next.
Fewer programs of a grid take several blocks each: what all blocks share is loaded once, and rows
arrive while others are computed. On an H200 attention by random features of 8192 positions took 48
microseconds for its last product with a program for each 128 rows, and 30 with two programs to a
processor. And a program takes two blocks of rows, which share the loads of a loop: one fills in
while the other waits for its dots. Full attention of depth 128 took 4723 microseconds for 16384
positions with a block of 64 rows, and 3866 with two blocks of 128 rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blockbuster.emit.schedule.base import Move
from blockbuster.emit.schedule.block import least_lanes
from blockbuster.emit.schedule.jam import PAIR, Jam
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.recut import Recut
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Applied, Site, loop_at
from blockbuster.emit.schedule.walk import Walk
from blockbuster.emit.tile.dataflow import defined, operands
from blockbuster.emit.tile.program import For, Let, Nest, Tile
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.lengths import share_of, size
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.decisions.combining import blocks, programs
from blockbuster.selection.priors import PRIORS

RECUT, WALK, JAM = Recut(), Walk(), Jam()

Lines = tuple[Applied, ...]
"""Moves behind an arrangement of blocks: for single kernels, as lines of a schedule."""


def edits(made: Scheduled, later: Lines, moves: Sequence[Move]) -> Iterator[Lines]:
    """The lines ``later`` with one of ``moves`` more, or in place of one. ``made``: where blocks
    are as they are before, or behind ``later``.
    """
    for move in moves:
        for site in move.sites(made):
            for lines in _lines(move, made, site):
                yield _joined((*later, *lines))


def _lines(move: Move, made: Scheduled, site: Site) -> Iterator[Lines]:
    """The ways of a move: other lanes of dims of dots; programs that fill the device
    once or twice, of as many rows and of half; two blocks whose dots wait for one another.
    """
    nest = made.draft.nests[site.nest - 1]
    lanes = {block.dim: block.lanes for block in nest.blocks}
    if move is RECUT:
        yield from _recuts(made, site)
    elif move is JAM:
        yield from [(move.line(site),)] if _has_chained_dots(made, site) else ()
    elif _is_short(made, nest):
        for rows in (lanes[site.loop], lanes[site.loop] // 2) if site.loop in lanes else ():
            cut = RECUT.line(Site(site.nest), dim=site.loop, lanes=rows)
            lines = (cut,) if rows < lanes[site.loop] else ()
            for count in _counts(made, nest, site.loop, rows):
                yield *lines, move.line(site, count=count)


def _recuts(made: Scheduled, site: Site) -> Iterator[Lines]:
    """One dim of dots with twice or half the lanes, or one with twice and another with half."""
    nest = made.draft.nests[site.nest - 1]
    dots, wider, fewer = least_lanes(nest, made.draft.units), list[Applied](), list[Applied]()
    for block in nest.blocks if dots else ():
        for found, lanes in ((wider, 2 * block.lanes), (fewer, block.lanes // 2)):
            args = {"dim": block.dim, "lanes": lanes}
            known = block.dim in dots and lanes <= PRIORS.widest_dot_lanes
            found += [RECUT.line(site, **args)] if known else []
    yield from ((line,) for line in (*wider, *fewer) if not RECUT.why_not(made, site, **line.args))
    yield from ((a, b) for a in wider for b in fewer if a.args["dim"] != b.args["dim"])


def _counts(made: Scheduled, nest: Nest, dim: Dim, lanes: int) -> Iterator[int]:
    """Powers of two that fill the device, if each program then has several blocks of ``dim``."""
    around = programs(made, nest) // max(blocks(made, nest, dim), 1)
    most = -(-made.sizes[size_class(dim)] // lanes) // 2
    for each in PRIORS.walking_programs:
        full = each * made.target.processors // max(around, 1)
        count = 1 << (full.bit_length() - 1) if full else 0
        if 2 <= count <= most:
            yield count


def _joined(lines: Lines) -> Lines:
    """The last of lines that cut the same; blocks come first."""
    known = {(line.move, line.site, line.args.get("dim")): line for line in lines}
    return tuple(sorted(known.values(), key=lambda line: line.move != Recut.name))


def _is_short(made: Scheduled, nest: Nest) -> bool:
    """True if the programs of a nest have dots, and no loop over their operands."""
    tiling, (_, body) = tiling_of(made.draft, nest), body_inside_grid(nest)
    dots = any(is_matrix_dot(stmt, tiling) for stmt in body)
    return dots and not any(isinstance(stmt, For) for stmt in body)


def _has_chained_dots(made: Scheduled, site: Site) -> bool:
    """True if a dot of a loop inside waits for another there. Else two blocks of rows are no more
    than one of twice the rows.
    """
    loop = loop_at(made.draft, site)
    assert loop is not None
    tiling = tiling_of(made.draft, made.draft.nests[site.nest - 1])
    inner = (stmt for stmt in loop.statements if isinstance(stmt, For))
    return any(_are_chained(one, tiling) for one in inner)


def _are_chained(loop: For, tiling: Tiling) -> bool:
    waiting: set[Tile | None] = set()  # tiles that come of dots of the body
    for stmt in loop.body:
        is_dot = isinstance(stmt, Let) and is_matrix_dot(stmt, tiling)
        waits = not waiting.isdisjoint(operands(stmt))
        if is_dot and waits:
            return True
        if is_dot or waits:
            waiting.add(defined(stmt))
    return False


def pairs_in(scheduled: Scheduled) -> Iterator[tuple[Dim, int]]:
    """Dims whose blocks a schedule takes in pairs, and the elements of a pair: they divide them."""
    for nest in scheduled.draft.nests:
        lanes = {block.dim: block.lanes for block in nest.blocks}
        for rule in scheduled.made:
            dims = rule.length.dims
            if rule.dim in lanes and dims and rule.length == size(dims[0]) * share_of(PAIR):
                yield dims[0], PAIR * lanes[rule.dim]
