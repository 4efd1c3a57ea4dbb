"""place-waits: a nest that overlaps the nest before it waits for that nest as late as possible.

before   nest 2, overlaps:                after   nest 1: release; ...
          t1 = load(I1[m])                        nest 2:
          t2 = load(W[:])                          t2 = load(W[:])
          ...                                      wait
                                                   t1 = load(I1[m])
                                                   ...

The wait comes before all stores, and before all loads of arrays that earlier nests of its chain
store. Loads of other arrays at the nest's beginning come before the wait, so that memory works
meanwhile. A nest lets the next one begin as soon as it has waited itself. After this pass, a nest
overlaps if and only if it holds a wait.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from blockbuster.emit.tile.program import Buffer, Iota, Load, Nest, Stmt, TileProgram
from blockbuster.emit.tile.verify_waits import touching, unfinished
from blockbuster.emit.tile.waits import Release, Wait

STRAIGHT = (Load, Iota)
"""What may run ahead of other statements of its body: it reads no tile."""


def place_waits(program: TileProgram) -> TileProgram:
    """``program`` with statements that wait, instead of nests that overlap."""
    following = (*(nest.overlaps for nest in program.nests[1:]), False)
    chains = unfinished(program.nests, lambda nest: nest.overlaps)
    nests = (
        _placed(nest, written, releases=releases)
        for (nest, written), releases in zip(chains, following, strict=True)
    )
    return replace(program, nests=tuple(nests))


def _placed(nest: Nest, written: dict[Buffer, None], *, releases: bool) -> Nest:
    release = (Release(),) if releases else ()
    if not nest.overlaps:
        return replace(nest, body=(*release, *nest.body))
    early = tuple(takewhile(lambda stmt: not touching(stmt, written), nest.body))
    late = nest.body[len(early) :]
    ahead = tuple(_ahead(late, written))
    late = tuple(stmt for stmt in late if stmt not in ahead)
    return replace(nest, body=(*early, *ahead, Wait(), *release, *late), overlaps=False)


def _ahead(body: tuple[Stmt, ...], written: dict[Buffer, None]) -> tuple[Stmt, ...]:
    """The loads at the beginning of ``body`` that need not wait."""
    straight = takewhile(lambda stmt: isinstance(stmt, STRAIGHT), body)
    return tuple(stmt for stmt in straight if not touching(stmt, written))
