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

from collections.abc import Callable, Iterator, Mapping, Sequence

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
    """The lines ``later`` with those of one of ``moves`` more, or in place of some.

    ``made``: a schedule before warps and stages, which tells what there is to edit. Some lines may
    not apply behind others.
    """
    for move in moves:
        for site in move.sites(made):
            for lines in WAYS[move.name](made, site):
                yield _joined((*later, *lines))


def _recuts(made: Scheduled, site: Site) -> Iterator[Lines]:
    """One dim of dots with twice or half the lanes, or one with twice and another with half."""
    nest = made.draft.nests[site.nest - 1]
    dots, most = least_lanes(nest, made.draft.units), PRIORS.widest_dot_lanes
    cut = [block for block in nest.blocks if block.dim in dots and not block.whole]
    wider = [_cut(site, b.dim, 2 * b.lanes) for b in cut if 2 * b.lanes <= most]
    fewer = [_cut(site, b.dim, b.lanes // 2) for b in cut if b.lanes // 2 >= dots[b.dim]]
    yield from ((line,) for line in (*wider, *fewer))
    yield from ((a, b) for a in wider for b in fewer if a.args["dim"] != b.args["dim"])


def _walks(made: Scheduled, site: Site) -> Iterator[Lines]:
    """Programs that fill the device once or twice, of as many rows and of half."""
    nest = made.draft.nests[site.nest - 1]
    lanes = next((block.lanes for block in nest.blocks if block.dim == site.loop), 0)
    for rows in (lanes, lanes // 2) if lanes and _is_short(made, nest) else ():
        before = (_cut(site, site.loop, rows),) if rows < lanes else ()
        for count in _counts(made, nest, site.loop, rows):
            yield *before, WALK.line(site, count=count)


def _jams(made: Scheduled, site: Site) -> Iterator[Lines]:
    """Two blocks, if their dots wait for one another."""
    if _has_chained_dots(made, site):
        yield (JAM.line(site),)


WAYS: Mapping[str, Callable[[Scheduled, Site], Iterator[Lines]]] = {
    RECUT.name: _recuts, WALK.name: _walks, JAM.name: _jams
}  # fmt: skip


def _cut(site: Site, dim: Dim, lanes: int) -> Applied:
    return RECUT.line(Site(site.nest), dim=dim, lanes=lanes)


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
