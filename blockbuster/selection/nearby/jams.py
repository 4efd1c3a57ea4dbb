"""Kernels of dots whose programs could take two blocks of rows that share a loop's loads.

A program of one block waits for its dots, computes with their results, and waits again; others on
the processor fill in, and each loads for itself what all blocks read. Two blocks in one program
read half as much and fill in for each other. On an H200 full attention of depth 128 took 4723
microseconds for 16384 positions with a block of 64 rows, 252.6 for 4096; with two blocks of 128
rows 3866 and 237. There the power of the device is the limit, so fewer loads are more clock cycles.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.emit.schedule.jam import PAIR, Jam
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Applied, loop_at
from blockbuster.emit.tile.dataflow import defined, operands
from blockbuster.emit.tile.program import For, Let, Tile
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.lengths import share_of, size
from blockbuster.ir.types import Dim
from blockbuster.selection.cost import Cost
from blockbuster.selection.priors import PRIORS

JAM = Jam()


def jams_near(scheduled: Scheduled) -> Iterator[Applied]:
    """Two blocks to a program for each kernel with a loop of dots that wait for one another."""
    for site in JAM.sites(scheduled):
        loop, nest = loop_at(scheduled.draft, site), scheduled.draft.nests[site.nest - 1]
        tiling = tiling_of(scheduled.draft, nest)
        assert loop is not None
        if any(has_chained_dots(s, tiling) for s in loop.statements if isinstance(s, For)):
            yield JAM.line(site)


def has_chained_dots(loop: For, tiling: Tiling) -> bool:
    """True if a dot of the loop's body waits for another there. Else two blocks of rows are no more
    than one of twice the rows.
    """
    waiting: set[Tile | None] = set()  # tiles that come of dots of the body
    for stmt in loop.body:
        is_dot = isinstance(stmt, Let) and is_matrix_dot(stmt, tiling)
        waits = not waiting.isdisjoint(operands(stmt))
        if is_dot and waits:
            return True
        if is_dot or waits:
            waiting.add(defined(stmt))
    return False


def moves_too_much(without: Cost, number: int, one: Cost) -> bool:
    """True if two blocks to a program of a kernel, by number, cannot pay: of what it loads
    ``without``, half is left at least. Of a program of many kernels, few of the bytes are of one.
    """
    spared = sum(without.works[number - 1].loaded.values()) / PAIR
    return without.moved - spared >= PRIORS.jammed_bytes_part * one.moved


def pays(two: Cost, one: Cost, near: float) -> bool:
    """True if two blocks to a program are better than ``one`` for certain, and load less.

    Programs side by side overlap better than two blocks in one: with depth 64, where 128 rows are
    one block of eight warps, two blocks of 64 rows by four warps took an H200 159 microseconds for
    4096 positions instead of 154.
    """
    faster = near * two.microseconds < one.microseconds
    return faster and two.moved < PRIORS.jammed_bytes_part * one.moved


def pairs_in(scheduled: Scheduled) -> Iterator[tuple[Dim, int]]:
    """Dims whose blocks a schedule takes in pairs, and the elements of a pair: they divide them."""
    for nest in scheduled.draft.nests:
        lanes = {block.dim: block.lanes for block in nest.blocks}
        for rule in scheduled.made:
            dims = rule.length.dims
            if rule.dim in lanes and dims and rule.length == size(dims[0]) * share_of(PAIR):
                yield dims[0], PAIR * lanes[rule.dim]
