"""Scans in loops: each block goes on from the fold of the blocks before it.

    t1 = init +
    for n in range(N):
      t2 = load(x[m,n])
      t3 = scan + (t2)
      t4 = t1 + t3          of the whole line
      t5 = row_sum(t2)
      t1 += t5
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.monoids import COMBINED
from blockbuster.emit.tile.program import Fold, For, Let, Nest, Stmt, Tile, statements
from blockbuster.ir.ops import Pointwise, Scan
from blockbuster.ir.types import Dim


class Carry(NamedTuple):
    """How the scans of a loop's blocks become one: ``left`` is the fold of earlier blocks."""

    left: Tile
    joined: Let
    fold: Fold


def carries(loop: For) -> Iterator[Carry]:
    """The scans that go on from block to block of a loop."""
    scans = {let.target: scan for let, scan in _scans(loop.body, loop.dim)}
    folds = {stmt.target: stmt for stmt in loop.body if isinstance(stmt, Fold) and not stmt.members}
    for stmt in loop.body:
        match stmt:
            case Let(target, Pointwise() as op, (left, own)) if own in scans and left in folds:
                joins = op == Pointwise(COMBINED[scans[own].monoid], target.axes)
                if joins and not left.per_lane:
                    yield Carry(left, stmt, folds[left])


def _scans(body: Iterable[Stmt], dim: Dim) -> Iterator[tuple[Let, Scan]]:
    """The scans along a dim."""
    for stmt in body:
        if isinstance(stmt, Let) and isinstance(stmt.op, Scan) and stmt.target.axes[-1] == dim:
            yield stmt, stmt.op


def broken_scans(nest: Nest) -> Iterator[str]:
    """Why scans of a nest do not go on from block to block."""
    for stmt in statements(nest.body):
        if isinstance(stmt, For):
            yield from _broken(stmt)
        elif any(any(_scans((stmt,), dim)) for dim in nest.grid):
            yield f"programs of the grid over {', '.join(nest.grid)} have parts of a scan"


def scans_all(loop: For) -> str:
    """Why a loop has to run over all blocks of its dim: it scans them; or ""."""
    found = any(_scans(loop.body, loop.dim))
    return f"a scan goes on from block to block of {loop.dim}" if found else ""


def why_broken(nest: Nest) -> str:
    """The first of ``broken_scans``, or ""."""
    return _why_broken(Same(nest.body), nest.grid)


@lru_cache(maxsize=KEPT)
def _why_broken(body: Same[Body], grid: tuple[Dim, ...]) -> str:
    return next(broken_scans(Nest(body.one, grid)), "")


def _broken(loop: For) -> Iterator[str]:
    found = [*_scans(loop.statements, loop.dim)]
    if not found:
        return
    if loop.parallel or loop.chunk is not None or loop.span is not None:
        yield f"the loop over {loop.dim} does not take all blocks of a scan in their order"
    if any(scan.back != loop.down for _, scan in found):
        yield f"{found[0][0].target.name} is a scan in the other direction than its loop"
    whole = {carry.joined.args[1] for carry in carries(loop)}
    if lost := [let.target.name for let, _ in found if let.target not in whole]:
        yield f"{lost[0]} is a scan of one block of {loop.dim}, without those before it"
