"""place-waits: a nest that overlaps the nest before it waits for that nest as late as possible.

before   nest 2, overlaps:                after   nest 1: release; ...
          t1 = load(I1[m])                        nest 2:
          for k in range(K):                       for k in range(K):
           t3 = load(W[k])                          t3 = load(W[k])
           t2 += t3                                 t2 += t3
          store(t1 * t2,Y[m])                      wait
                                                   t1 = load(I1[m])
                                                   store(t1 * t2,Y[m])

All stores follow the wait, and all loads of what the nests before it in its chain store, with what
is made of them. All else goes first, loops too: a product that is scaled by what the nest before
makes is done by then. If that is nothing but totals at their start, programs that take several
places of the grid wait once, in front of the first. The first nest waits for what ran before its
program, which may have written any array, so all its loads follow the wait. A nest lets the next
one begin as soon as it has waited itself. Behind this pass a nest overlaps if it holds a wait.
Nests that are kept from call to call (``tile/constants.py``) ran before, and are passed over.
"""

from __future__ import annotations

from functools import lru_cache

from blockbuster.emit.tile.constants import kept_nests, running_nests
from blockbuster.emit.tile.dataflow import makes, reads, stored, with_parts
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import (
    Buffer,
    For,
    Init,
    Let,
    Load,
    Nest,
    Stmt,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.verify_waits import touching, unfinished
from blockbuster.emit.tile.waits import Release, Wait


def place_waits(program: TileProgram) -> TileProgram:
    """``program`` with statements that wait, instead of nests that overlap."""
    running = running_nests(program)
    following = (*(nest.overlaps for nest in running[1:]), False)
    chains = unfinished(running, lambda nest: nest.overlaps)
    placed = (
        with_parts(nest, body=_placed(nest, written, releases=releases), overlaps=False)
        for (nest, written), releases in zip(chains, following, strict=True)
    )
    kept = kept_nests(program)
    nests = (
        with_parts(nest, overlaps=False) if at in kept else next(placed)
        for at, nest in enumerate(program.nests)
    )
    return with_parts(program, nests=tuple(nests))


def _placed(nest: Nest, written: dict[Buffer, None], *, releases: bool) -> Body:
    if not nest.overlaps:
        return _released(Same(nest.body)) if releases else nest.body
    return _waiting(Same(nest.body), tuple(written), bool(nest.programs), releases)


@lru_cache(maxsize=KEPT)
def _released(body: Same[Body]) -> Body:
    """``body`` behind a statement that lets the next nest begin."""
    return (Release(), *body.one)


@lru_cache(maxsize=KEPT)
def _waiting(
    body: Same[Body], written: tuple[Buffer, ...], in_turn: bool, releases: bool
) -> Body:
    """``body`` with a wait for the nests that have ``written`` these arrays.

    ``in_turn``: a program takes several places of the grid.
    """
    release = (Release(),) if releases else ()
    stays = (Let, Load) if in_turn else (Let,)
    early, late = _parted(body.one, dict.fromkeys(written), stays)
    if in_turn and all(isinstance(stmt, Init) for stmt in early):
        early, late = (), body.one
    return (*early, Wait(), *release, *late)


def _parted(
    body: Body, written: dict[Buffer, None], stays: tuple[type[Stmt], ...]
) -> tuple[Body, Body]:
    """The statements that need not wait, and the others, each in order.

    A statement waits, too, if it reads or folds what a waiting one makes, or folds what it reads;
    and one of a kind that ``stays`` behind the last loop if that waits: load_late.py put it there.
    """
    early, late = list[Stmt](), list[Stmt]()
    made, read, arrays = dict[Tile, None](), dict[Tile, None](), dict(written)
    last = max((at for at, stmt in enumerate(body) if isinstance(stmt, For)), default=-1)
    behind = False  # the last loop, if that waits
    for at, stmt in enumerate(body):
        own_reads = tuple(reads((stmt,)))
        own = tuple(tile for inner in statements((stmt,)) for tile in makes(inner))
        free = made.keys().isdisjoint(own_reads) and {**made, **read}.keys().isdisjoint(own)
        if free and not (behind and isinstance(stmt, stays)) and not touching(stmt, arrays):
            early.append(stmt)
            continue
        late.append(stmt)
        behind = behind or at == last
        made.update(dict.fromkeys(own))
        read.update(dict.fromkeys(own_reads))
        arrays.update(stored((stmt,)))
    return tuple(early), tuple(late)
