"""pack: arrays of the caller are copied before a nest that reads them again and again.

before   forall m in range(M):              after   forall d in range(D):
          forall k in range(K):                      forall k in range(K):
           for d in range(D):                         t9 = load(W[d,k])
            t1 = load(X[m,d])                         store(t9,I1[d,k])
            t2 = load(W[d,k])                       forall m in range(M):
            t3 += dot(t1,t2)                         forall k in range(K):
           store(t3,Y[m,k])                           for d in range(D):
                                                       t1 = load(X[m,d])
                                                       t2 = load(I1[d,k])
                                                       t3 += dot(t1,t2)
                                                      store(t3,Y[m,k])

A caller's array has the strides that it has: where its rows do not begin at multiples of 16 bytes,
every load of a tile takes its elements one by one. The rows of the copy begin where wide copies can
(``closing/pad_pitches.py``). Costs a kernel and twice the array's memory traffic, once.

The place is a load. Arrays that are loaded beside it, with the same dims, are copied by the same
nest; the nests behind read the copies, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import STATEMENT, Move
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, statement_at, statements_of
from blockbuster.emit.tile.dataflow import (
    fresh_names,
    fresh_workspace_names,
    level_of,
    with_buffers,
)
from blockbuster.emit.tile.program import (
    INPUT,
    WORKSPACE,
    Buffer,
    For,
    Issue,
    Load,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
)
from blockbuster.ir.types import Dim, size_class


class Pack(Move):
    """Copy the array of a load, and those loaded beside it, in a nest of their own."""

    name: ClassVar[str] = "pack"
    takes: ClassVar[str] = STATEMENT

    def sites(self, scheduled: Scheduled) -> Iterator[Site]:
        """Loads of matrices of the caller, the first of those that would be copied together."""
        seen: set[tuple[int, Buffer]] = set()
        for site, _ in statements_of(scheduled.draft):
            if self.why_not(scheduled, site):
                continue
            found = _beside(scheduled.draft, site)
            if seen.isdisjoint((site.nest, view.buffer) for view in found):
                yield site
            seen.update((site.nest, view.buffer) for view in found)

    def not_here(self, scheduled: Scheduled, site: Site, stmt: Stmt, /, **args: Any) -> str:
        """The statement loads blocks of two axes of an array that the program is given."""
        if not isinstance(stmt, Load | Issue):
            return "it loads nothing"
        return not_a_matrix(stmt.view, scheduled.draft.units)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with a nest that copies, and loads of the copies behind it."""
        draft, at = scheduled.draft, site.nest - 1
        tiles, arrays = fresh_names(draft), fresh_workspace_names(draft)
        copies = {
            view.buffer: replace(view.buffer, name=next(arrays), space=WORKSPACE)
            for view in _beside(draft, site)
        }
        dims = next(iter(_beside(draft, site))).runs
        body: tuple[Stmt, ...] = ()
        for buffer, copy in copies.items():
            tile = Tile(next(tiles), dims, buffer.name.lower(), dtype=buffer.dtype)
            body += (Load(tile, View(buffer, dims)), Store(View(copy, dims), tile))
        for dim in reversed(dims):
            body = body if dim in draft.whole else (For(dim, True, body),)
        behind = tuple(replace(n, body=with_buffers(n.body, copies)) for n in draft.nests[at:])
        nests = (*draft.nests[:at], Nest(body), *behind)
        return replace(draft, nests=nests, workspaces=(*draft.workspaces, *copies.values()))


def _beside(program: TileProgram, site: Site) -> tuple[View, ...]:
    """How the arrays that are copied together are read in the nest of a load."""
    nest, stmt = program.nests[site.nest - 1], statement_at(program, site)
    assert isinstance(stmt, Load | Issue)
    level = level_of(nest.body, stmt)
    loads = (s.view for s in level if isinstance(s, Load | Issue))
    same = (v for v in loads if v.dims == stmt.view.dims and not not_a_matrix(v, program.units))
    found = {view.buffer: view for view in same}
    return tuple(found.values())


def not_a_matrix(view: View, units: tuple[Dim, ...]) -> str:
    """Why ``view`` does not read a matrix of the caller in blocks of both its axes, or ""."""
    buffer, dims = view.buffer, view.dims
    if buffer.space != INPUT:
        return f"{buffer.name} is no array of the caller"
    if len(dims) != 2 or not all(isinstance(d, str) and size_class(d) not in units for d in dims):
        return f"{buffer.name} is not read in blocks of two axes"
    if dims[0] == dims[1]:
        return f"{buffer.name} is read along a diagonal"
    return ""
