"""inline: what a nest stores is made again by every nest that loads it, and the nest is removed.

before   forall h in range(H):            after   forall h in range(H):
          t1 = load(I1[h,:])                       forall n in range(N):
          t2 = row_max(t1)                          t1 = load(I1[h,:])
          store(t2,I2[h])                           t2 = row_max(t1)
         forall h in range(H):                      t4 = load(X[h,n])
          forall n in range(N):                     store(t4 * t2,Y[h,n])
           t3 = load(I2[h])
           t4 = load(X[h,n])
           store(t4 * t3,Y[h,n])

Saves a launch, and the store and the loads of what the nest made. Costs its work once in each
iteration of its readers: little, if it combines the partial results of a few chunks. The tiles are
not rounded to the dtype of the array, as the loaded ones were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import NestMove
from blockbuster.emit.schedule.block import not_agreeing
from blockbuster.emit.schedule.keep import converted
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import (
    accessed,
    conflicts,
    defined,
    folded,
    fresh_names,
    loaded,
    makes,
    mapped,
    operands,
    rebound,
    renamed,
    retargeted,
    same_or,
    stored,
    with_loops,
    with_parts,
    workspaces_in_order,
)
from blockbuster.emit.tile.program import (
    READS,
    WORKSPACE,
    Await,
    Buffer,
    For,
    Issue,
    Load,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.trips import walked_in
from blockbuster.ir.types import Dim

Body = tuple[Stmt, ...]


class Inline(NestMove):
    """Make what a nest stores in each nest that loads it, without the nest."""

    name: ClassVar[str] = "inline"
    looks_after: ClassVar[bool] = True

    def not_here(self, scheduled: Scheduled, site: Site, nest: Nest, /, **args: Any) -> str:
        """The nest can be repeated, and each reader makes what it loads in its own iteration."""
        draft, at = scheduled.draft, site.nest - 1
        return not_repeatable(draft, at) or _not_read(draft, at)

    def not_after(self, made: TileProgram, **args: Any) -> str:
        """Blocks agree."""
        return not_agreeing(made)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft without the nest, whose readers make what it stored."""
        draft, at = scheduled.draft, site.nest - 1
        writer = _Writer(Made.of(draft.nests[at]), fresh_names(draft))
        later = tuple(map(writer.nest, draft.nests[at + 1 :]))
        return workspaces_in_order(changed(draft, nests=(*draft.nests[:at], *later)))


@dataclass(frozen=True)
class Made:
    """What one iteration of a nest's parallel loops makes, and what it stores of that.

    ``around``: the dims of these loops. ``stores``: the store of each array.
    """

    nest: Nest
    around: tuple[Dim, ...]
    body: Body
    stores: Mapping[Buffer, Store]

    @staticmethod
    def of(nest: Nest) -> Made:
        """Of a nest whose stores stand in no other loop."""
        loops, body = body_inside_grid(nest)
        stores = {stmt.view.buffer: stmt for stmt in body if isinstance(stmt, Store)}
        return Made(nest, (*nest.grid, *(loop.dim for loop in loops)), body, stores)

    def part(self, arrays: Iterable[Buffer]) -> Body:
        """The statements that make what is stored in ``arrays``, in order."""
        return _needed(self.body, [self.stores[array].value for array in arrays])

    def walked(self, array: Buffer) -> tuple[Dim, ...]:
        """The dims of loops, tiles and accesses that make what is stored in ``array``."""
        return walked_in(changed(self.nest, body=(*self.part((array,)), self.stores[array])))


# predicates: the nest --------------------------------------------------------------


def not_repeatable(program: TileProgram, at: int) -> str:
    """Why what the nest at position ``at`` makes cannot be made elsewhere, or ""."""
    nest = program.nests[at]
    return (
        of_a_result(nest)
        or in_a_loop(nest)
        or ahead(nest)
        or loaded_again(nest)
        or folded_since(nest)
        or stored_twice(program, nest)
    )


def of_a_result(nest: Nest) -> str:
    """It stores nothing that the caller gets."""
    results = (buffer.name for buffer in stored(nest.body) if buffer.space != WORKSPACE)
    return next((f"it stores {name}, which is a result" for name in results), "")


def in_a_loop(nest: Nest) -> str:
    """Each iteration of its parallel loops stores once what it makes, and not piece by piece."""
    for stmt in body_inside_grid(nest)[1]:
        if isinstance(stmt, For) and (inside := stored(stmt.body)):
            return f"it stores {next(iter(inside)).name} in a loop over {stmt.dim}"
    return ""


def ahead(nest: Nest) -> str:
    """Its loads do not run ahead: rings of two nests in one could have the same name."""
    if any(isinstance(stmt, Issue | Await) for stmt in statements(nest.body)):
        return "its loads run ahead: inline it before 'stage'"
    return ""


def loaded_again(nest: Nest) -> str:
    """It loads nothing that it stores, which would be stored no more."""
    return next((f"it loads {buffer.name}, which it stores" for buffer in conflicts(nest.body)), "")


def folded_since(nest: Nest) -> str:
    """What it stores is complete when it is stored."""
    body = body_inside_grid(nest)[1]
    for at, stmt in enumerate(body):
        again = {tile for after in statements(body[at:]) for tile in folded(after)}
        if isinstance(stmt, Store) and stmt.value in again:
            return f"{stmt.value.name} is folded again behind its store"
    return ""


def stored_twice(program: TileProgram, nest: Nest) -> str:
    """Nothing else is stored in its arrays."""
    stores = [s for one in program.nests for s in statements(one.body) if isinstance(s, Store)]
    for buffer in stored(nest.body):
        if sum(store.view.buffer == buffer for store in stores) > 1:
            return f"{buffer.name} is stored at two places"
    return ""


# predicates: a reader ---------------------------------------------------------------


def _not_read(program: TileProgram, at: int) -> str:
    """Why a later nest cannot make what it loads of the nest at position ``at``, or ""."""
    made = Made.of(program.nests[at])
    for number, nest in enumerate(program.nests[at + 1 :], start=at + 2):
        for read in reads_of(nest, made.stores):
            reason = (
                read_ahead(read, nest)
                or another_part(read, made)
                or of_another_iteration(read, made)
                or walked_around(read, made)
                or cut_otherwise(read, nest, made)
                or stored_since(program.nests[at + 1 : number], made)
            )
            if reason:
                return f"nest {number} loads {read.buffer.name}: {reason}"
    return ""


@dataclass(frozen=True)
class Read:
    """A statement that loads what another nest stores, and the loops around it, with the grid."""

    stmt: Load | Issue
    loops: tuple[For, ...]
    grid: tuple[Dim, ...]

    @property
    def buffer(self) -> Buffer:
        """The array that it loads."""
        return self.stmt.view.buffer

    @property
    def around(self) -> tuple[Dim, ...]:
        """The dims that are walked around it."""
        return (*self.grid, *(loop.dim for loop in self.loops))


def reads_of(nest: Nest, arrays: Mapping[Buffer, Store]) -> Iterator[Read]:
    """The statements of ``nest`` that load one of ``arrays``, in order."""
    for stmt, loops in with_loops(nest.body):
        if isinstance(stmt, READS) and stmt.view.buffer in arrays:
            yield Read(stmt, loops, nest.grid)


def read_ahead(read: Read, nest: Nest) -> str:
    """Neither it nor other loads of its loop, or of its places, run ahead: the compiler's pipeliner
    takes no loop beside them, and no dot.
    """
    if nest.stages:
        return "loads of its places run ahead: inline before 'persist'"
    if any(isinstance(stmt, Issue) for loop in read.loops for stmt in loop.body):
        return "loads of the loop around it run ahead: inline before 'stage'"
    return ""


def another_part(read: Read, made: Made) -> str:
    """It loads what was stored: the same axes under the same dims, in one order, of one kind."""
    store, target = made.stores[read.buffer], accessed(read.stmt)
    if read.stmt.view.dims != store.view.dims:
        return "under other dims than it is stored"
    if target.axes != store.value.axes:
        return "as a tile of other axes than is stored"
    return converted(store.value, target)


def of_another_iteration(read: Read, made: Made) -> str:
    """It is in an iteration over the same dims as the store."""
    missing = (dim for dim in made.around if dim not in read.around)
    return next((f"of all iterations over {dim} at once" for dim in missing), "")


def walked_around(read: Read, made: Made) -> str:
    """No loop around it walks what the nest holds whole or walks itself."""
    inner = [dim for dim in made.walked(read.buffer) if dim not in made.around]
    walked = (dim for dim in read.around if dim in inner)
    return next((f"in a loop over {dim}, all of which the value is made of" for dim in walked), "")


def cut_otherwise(read: Read, nest: Nest, made: Made) -> str:
    """Both cut the dims that they share in the same blocks."""
    mine, theirs = ({block.dim: block for block in one.blocks} for one in (made.nest, nest))
    shared = (d for d in made.walked(read.buffer) if d in theirs or d in walked_in(nest))
    other = (dim for dim in shared if mine.get(dim) != theirs.get(dim))
    return next((f"its blocks of {dim} are others" for dim in other), "")


def stored_since(nests: Iterable[Nest], made: Made) -> str:
    """What the nest loads is the same for the reader: no nest up to it stores there."""
    written = {buffer for nest in nests for buffer in stored(nest.body)}
    changing = (buffer.name for buffer in loaded(made.nest.body) if buffer in written)
    return next((f"{name}, of which it is made, is stored again by then" for name in changing), "")


# rewriting -------------------------------------------------------------------------


@dataclass
class _Writer:
    """Writes the readers of what a nest made. ``names``: of tiles that are made again."""

    made: Made
    names: Iterator[str]

    def nest(self, nest: Nest) -> Nest:
        """``nest`` with what it loaded made in it, and with blocks for that."""
        body = self._body(nest.body, {}, {})
        if body is nest.body:
            return nest
        nest = changed(nest, body=body)
        known, here = [block.dim for block in nest.blocks], walked_in(nest)
        more = (b for b in self.made.nest.blocks if b.dim in here and b.dim not in known)
        return changed(nest, blocks=(*nest.blocks, *more))

    def _body(self, body: Body, known: Mapping[Buffer, Tile], alias: dict[Tile, Tile]) -> Body:
        """``body`` without loads of the nest's arrays; the tiles of ``known`` ones are made before.

        In place of the first load stands what makes all that is loaded from there on.
        """
        known, out = dict(known), list[Stmt]()
        for at, stmt in enumerate(body):
            if isinstance(stmt, For):
                loop = rebound(stmt, alias)
                out.append(with_parts(loop, body=self._body(stmt.body, known, alias)))
            elif isinstance(stmt, Load) and stmt.view.buffer in self.made.stores:
                if stmt.view.buffer not in known:
                    out += self._again(body[at:], known)
                alias[stmt.target] = known[stmt.view.buffer]
            else:
                out.append(renamed(stmt, alias))
        return same_or(body, tuple(out))

    def _again(self, rest: Body, known: dict[Buffer, Tile]) -> Body:
        """What makes the tiles of the arrays that ``rest`` loads; they become ``known``."""
        stores = self.made.stores
        arrays = [buffer for buffer in loaded(rest) if buffer in stores and buffer not in known]
        part = self.made.part(arrays)
        tiles = (tile for stmt in statements(part) if (tile := defined(stmt)) is not None)
        new = {tile: changed(tile, name=next(self.names)) for tile in tiles}
        known.update({buffer: new[stores[buffer].value] for buffer in arrays})
        return mapped(part, lambda stmt: retargeted(stmt, new))


def _needed(body: Body, values: Iterable[Tile]) -> Body:
    """The statements of ``body`` that make or fold ``values``, or what these are made of."""
    used = dict.fromkeys(values)
    while True:
        kept, before = _kept(body, used), len(used)
        for stmt in statements(kept):
            used.update(dict.fromkeys((*operands(stmt), *folded(stmt))))
        if len(used) == before:
            return kept


def _kept(body: Body, used: Mapping[Tile, None]) -> Body:
    """The statements of ``body`` that make or fold ``used`` tiles, and the loops around them."""
    out = list[Stmt]()
    for stmt in body:
        if isinstance(stmt, For):
            if inside := _kept(stmt.body, used):
                out.append(with_parts(stmt, body=inside))
        elif any(tile in used for tile in makes(stmt)):
            out.append(stmt)
    return tuple(out)
