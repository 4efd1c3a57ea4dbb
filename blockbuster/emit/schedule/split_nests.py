"""split-nests: a nest that loads what it has stored is split; its loops are distributed.

before   forall m in range(M):               after   forall m in range(M):
          forall n in range(N):                       forall n in range(N):
           store(t1,I1[m,n])                           store(t1,I1[m,n])
          forall l in range(L):                      forall m in range(M):
           t2 = load(I1[m,n])                         forall l in range(L):
                                                       t2 = load(I1[m,n])

A kernel may not read what another of its threads has written, because nothing orders the two. Local
tiles that cross the cut become workspaces; loads are repeated behind it. Costs a kernel launch.

A serial loop is distributed like a parallel one: its iterations pass on nothing but accumulators,
which are read only after the loop, and an array has an entry for each iteration of all loops around
it.
"""

from __future__ import annotations

from functools import lru_cache

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.cut import Workspaces, pieces
from blockbuster.emit.tile.dataflow import (
    conflicts,
    fresh_workspace_names,
    loaded,
    stored,
    workspaces_in_order,
)
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import Buffer, For, Nest, Stmt, TileProgram
from blockbuster.emit.tile.trips import walked_in
from blockbuster.ir.types import Dim

Buffers = tuple[Buffer, ...]


def split_nests(program: TileProgram) -> TileProgram:
    """``program`` whose nests load nothing that they store."""
    bodies = tuple(Same(nest.body) for nest in program.nests)
    grids = tuple(nest.grid for nest in program.nests)
    arrays = program.inputs, program.outputs, program.workspaces
    workspaces, parts = _parts(bodies, grids, arrays, program.units)
    nests = tuple(_part(program.nests[at], body) for at, body in parts)
    return changed(program, nests=nests, workspaces=workspaces)


@lru_cache(maxsize=KEPT)
def _parts(
    bodies: tuple[Same[Body], ...],
    grids: tuple[tuple[Dim, ...], ...],
    arrays: tuple[Buffers, Buffers, Buffers],
    units: tuple[Dim, ...],
) -> tuple[Buffers, tuple[tuple[int, Body], ...]]:
    """The workspaces and the bodies after the split, each with the number of its nest."""
    program = TileProgram(*arrays, nests=(), units=units)
    spaces = Workspaces(units, fresh_workspace_names(program))
    found: list[tuple[int, Body]] = []
    for at, (body, grid) in enumerate(zip(bodies, grids, strict=True)):
        assert not grid or not conflicts(body.one), "split nests before binding them"
        found += [(at, part) for part in _split(body.one, grid, spaces)]
    nests = tuple(Nest(part) for _, part in found)
    workspaces = (*program.workspaces, *spaces.made)
    split = workspaces_in_order(changed(program, nests=nests, workspaces=workspaces))
    numbers = (at for at, _ in found)
    parts = zip(numbers, (nest.body for nest in split.nests), strict=True)
    return split.workspaces, tuple(parts)


def _part(nest: Nest, body: Body) -> Nest:
    """``nest`` with a part of its statements, and blocks for the dims that these walk."""
    part = changed(nest, body=body)
    here = walked_in(part)
    return changed(part, blocks=tuple(block for block in nest.blocks if block.dim in here))


def _split(body: Body, path: tuple[Dim, ...], spaces: Workspaces) -> tuple[Body, ...]:
    """``body`` in pieces, each of which may be a kernel of its own."""
    flat: list[Stmt] = []
    cuts: list[int] = []
    written: dict[Buffer, None] = {}
    for stmt in body:
        for number, part in enumerate(_distributed(stmt, path, spaces)):
            if number or any(buffer in written for buffer in loaded((part,))):
                cuts.append(len(flat))
                written = {}
            written.update(stored((part,)))
            flat.append(part)
    return pieces(flat, cuts, path=path, spaces=spaces) if cuts else (body,)


def _distributed(stmt: Stmt, path: tuple[Dim, ...], spaces: Workspaces) -> tuple[Stmt, ...]:
    if not isinstance(stmt, For) or not conflicts(stmt.body):
        return (stmt,)
    inner = _split(stmt.body, (*path, stmt.dim), spaces)
    return tuple(changed(stmt, body=part) for part in inner)
