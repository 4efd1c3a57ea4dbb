"""chunk: a loop is cut into chunks that run side by side.

before   for n in range(N):               after   forall c in range(N_chunk):
          t2 = load(X[n])                          for n in chunk c of range(N):
          t1 += row_sum(t2)                         t2 = load(X[n])
         t3 = sqrt(t1)                              t1 += row_sum(t2)
         store(t3,O[])                             store(t1,I1[c])
                                                  t4 = load(I1[:])
                                                  t1 = row_sum(t4)
                                                  t3 = sqrt(t1)
                                                  store(t3,O[])

The accumulators of the chunks cross through a workspace and are combined in the order of the
chunks, so results are the same from run to run. Fills a device that would be idle, and adds on two
levels, which rounds less. Costs a launch. A loop inside a short serial loop can be cut into chunks,
too: then the serial loop is distributed, and its iterations run side by side as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import Args, LoopMove, not_a_power_of_two
from blockbuster.emit.schedule.block import not_agreeing
from blockbuster.emit.schedule.chunkable import (
    not_apart,
    not_chunkable,
    not_side_by_side,
    totals_of,
)
from blockbuster.emit.schedule.combine import AT_ONCE, combined, no_rows
from blockbuster.emit.schedule.numbered_chunks import numbered, trips_at, with_chunks
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, known_loop
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.cut import Body, Workspaces, pieces
from blockbuster.emit.tile.dataflow import (
    defined,
    folded,
    fresh_names,
    fresh_workspace_names,
    holds,
    needed,
    workspaces_in_order,
)
from blockbuster.emit.tile.program import (
    Block,
    BlockOf,
    Chunks,
    For,
    Init,
    Iota,
    Let,
    Load,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.trips import walked_in
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim

NAME = "chunk-loops"
"""What the comments of an emitted file call this move."""

Part = tuple[tuple[Dim, ...], Body]
"""Parallel loops, inside those of the nest, and what they hold."""


class ChunkLoop(LoopMove):
    """Run a loop in ``count`` chunks. ``at_once``: rows of partial results are reduced in one tile,
    where that can be, and with ``blocks`` blocks are, too; else they are folded chunk by chunk.
    """

    name: ClassVar[str] = "chunk"
    looks_after: ClassVar[bool] = True
    form: ClassVar[Form] = Form("COUNT")
    number: ClassVar[str] = "count"
    starts: ClassVar[tuple[int, ...]] = (4, 32)

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """Powers of two up to the number of blocks, combined in each way that there is."""
        most = trips_at(scheduled, site)
        for power in (power for power in range(1, 11) if 1 << power <= most):
            ways = ({"count": 1 << power, **_ways(words)} for words in AT_ONCE)
            yield from (args for args in ways if not self.why_not(scheduled, site, **args))

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """The loop's results can be combined, and what stands around it can run apart from it."""
        if reason := not_a_power_of_two(args["count"], "the number of chunks", 2):
            return reason
        nest = scheduled.draft.nests[site.nest - 1]
        reason = not_chunked_here(loop, body_inside_grid(nest)[1])
        if reason or not args.get("at_once"):
            return reason
        return not_at_once(loop, nest, in_words(**args))

    def not_after(self, made: TileProgram, **args: Any) -> str:
        """Blocks agree."""
        return not_agreeing(made) if args.get("at_once") else ""

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The nests that take the place of one: chunks, and what combines them."""
        draft, loop = scheduled.draft, known_loop(scheduled.draft, site)
        writer = _Writer(draft, loop, args["count"], in_words(**args))
        nests = tuple(
            made
            for number, nest in enumerate(draft.nests, start=1)
            for made in (writer.nest(nest) if number == site.nest else (nest,))
        )
        return writer.finished(nests)

    def show(self, **args: Any) -> str:
        """``8``, ``8 at once`` or ``8 all at once``."""
        return f"{self.form.show(args)} {in_words(**args)}".rstrip()

    def read(self, words: Sequence[str]) -> Args:
        """One number, and what is combined at once."""
        known = " ".join(words[1:]) in AT_ONCE
        count = self.form.read(words[:1] if known else words)
        return {**count, **_ways(" ".join(words[1:]))}


def in_words(*, at_once: bool = False, blocks: bool = False, **_: object) -> str:
    """The word of a schedule for chunks that are combined in one tile."""
    return ("all at once" if blocks else "at once") if at_once else ""


def _ways(words: str) -> dict[str, bool]:
    """The arguments that ``in_words`` gives these words for."""
    ways = ({"at_once": False}, {"at_once": True}, {"at_once": True, "blocks": True})
    return dict(zip(AT_ONCE, ways, strict=True))[words]


def not_chunked_here(loop: For, body: Body) -> str:
    """Why ``loop``, somewhere in ``body``, cannot be run in chunks, or "".

    ``body`` runs inside parallel loops. A loop around ``loop`` is distributed, so that each of its
    iterations may run apart.
    """
    at = next((i for i, stmt in enumerate(body) if holds(stmt, loop)), None)
    if at is None:
        return f"the loop over {loop.dim} is on the grid already"
    around = body[at]
    assert isinstance(around, For)
    if around is loop:
        if loop.chunk is not None:
            return f"the loop over {loop.dim} is run in chunks already"
        return not_chunkable(loop, body[:at], body[at + 1 :])
    if around.chunk is not None:
        return f"the loop over {around.dim} around it is run in chunks"
    if around.span is not None:
        return f"the loop over {around.dim} around it runs over a part of its blocks"
    inside = next(i for i, stmt in enumerate(around.body) if holds(stmt, loop))
    return (
        not_side_by_side(around)
        or not_apart(body[:at])
        or not_apart(around.body[:inside])
        or not_chunked_here(loop, around.body)
    )


def not_at_once(loop: For, nest: Nest, words: str) -> str:
    """Why no partial results of ``loop`` can be combined in one tile, or ""; ``words`` as asked."""
    totals = totals_of(loop, tuple(statements(nest.body)))
    reasons = [AT_ONCE[words](fold) for fold in totals]
    if "" in reasons:
        return ""
    return (*reasons, f"the loop over {loop.dim} accumulates nothing")[0]


@dataclass
class _Writer:
    program: TileProgram
    loop: For
    count: int
    at_once: str
    made: list[Chunks] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._spaces = Workspaces(self.program.units, fresh_workspace_names(self.program))
        self._names = fresh_names(self.program)

    def nest(self, nest: Nest) -> Iterator[Nest]:
        """The nests that take the place of one."""
        loops, body = body_inside_grid(nest)
        path = (*nest.grid, *(loop.dim for loop in loops))
        for dims, part in self._parts(body, path):
            for dim in reversed(dims):
                part = (For(dim, True, part),)
            for loop in reversed(loops):
                part = (changed(loop, body=part),)
            yield self._with_chunks(changed(nest, body=part))

    def _with_chunks(self, nest: Nest) -> Nest:
        """``nest`` with blocks for the dims that it walks: a part may walk fewer than the whole."""
        here = walked_in(nest)
        kept = tuple(block for block in nest.blocks if block.dim in here)
        known = [block.dim for block in kept]
        lanes = (c for c in self.made if c.lanes in here and c.lanes not in known)
        more = tuple(Block(c.lanes, c.count, whole=True, ragged=False) for c in lanes)
        return changed(nest, blocks=(*kept, *more))

    def finished(self, nests: tuple[Nest, ...]) -> TileProgram:
        """The whole program."""
        spaces = (*self.program.workspaces, *self._spaces.made)
        program = changed(self.program, nests=nests, workspaces=spaces)
        return workspaces_in_order(with_chunks(program, self.made))

    def _parts(self, body: Body, path: tuple[Dim, ...]) -> list[Part]:
        """``body``, which runs inside parallel loops over ``path``, in parts that run in turn."""
        at = next((i for i, stmt in enumerate(body) if holds(stmt, self.loop)), None)
        if at is None:
            return [((), body)]
        cheap = [isinstance(stmt, Load | Iota | BlockOf | Let | Init) for stmt in body[:at]]
        if not all(cheap):  # loops and stores run once, in a kernel of their own
            cut = len(cheap) - cheap[::-1].index(False)
            first, rest = pieces(body, [cut], path=path, spaces=self._spaces)
            return [((), first), *self._parts(rest, path)]
        if body[at] is self.loop:
            return self._chunked(body, at, path)
        return self._distributed(body, at, path)

    def _chunked(self, body: Body, at: int, path: tuple[Dim, ...]) -> list[Part]:
        """The chunks of the loop at ``at``, and what combines them and follows."""
        before, behind = body[:at], body[at + 1 :]
        chunks = self._chunks(self.loop.dim)
        totals = totals_of(self.loop, before)
        stores, combining = list[Stmt](), list[Stmt]()
        for fold in totals:
            origin = Origin(NAME, (fold.origin,))
            rows = bool(self.at_once) and not no_rows(fold)
            views = {
                tile: self._spaces.new(
                    in_memory(path, chunks.number, tile, rows=rows), tile.axes, tile.dtype
                )
                for tile in folded(fold)
            }
            stores += [Store(view, tile, origin) for tile, view in views.items()]
            combining += combined(fold, views, chunks, self._names, origin, at_once=self.at_once)
        part = (changed(self.loop, chunk=chunks.number), *stores)
        parts: list[Part] = [((chunks.number,), (*needed(before, part), *part))]
        inits = [tile for fold in totals for tile in folded(fold)]
        before = tuple(stmt for stmt in before if defined(stmt) not in inits)
        return [*parts, *_rest(before, (*combining, *behind))]

    def _distributed(self, body: Body, at: int, path: tuple[Dim, ...]) -> list[Part]:
        """The parts of the body of the loop at ``at``, each in a loop of its own.

        Iterations hand nothing on but accumulators, which only what is left of the body folds.
        """
        before, loop, behind = body[:at], body[at], body[at + 1 :]
        assert isinstance(loop, For)
        parts = self._parts(loop.body, (*path, loop.dim))
        left = () if parts[-1][0] else (changed(loop, body=parts.pop()[1]),)
        apart = [((loop.dim, *dims), (*needed(before, part), *part)) for dims, part in parts]
        return [*apart, *_rest(before, (*left, *behind))]

    def _chunks(self, dim: Dim) -> Chunks:
        """Chunks of ``dim``, with dims of their own."""
        self.made.append(numbered(self.program, dim, self.count))
        if self.made[-1] not in self.program.chunks:
            self._spaces.units += (self.made[-1].number,)
        return self.made[-1]


def in_memory(path: tuple[Dim, ...], chunk: Dim, tile: Tile, *, rows: bool) -> tuple[Dim, ...]:
    """The dims of partial results in the order of their axes, from the slowest.

    A chunk's tile lies together, and whoever combines chunk by chunk loads it as it was stored.
    ``rows``: the numbers of a row are combined in one tile, so they lie side by side.
    """
    own = () if rows else tuple(dim for dim in path if dim in tile.axes)
    return (*(dim for dim in path if dim not in own), chunk, *own)


def _rest(before: Body, rest: Body) -> list[Part]:
    """What runs behind a part, with what it needs of what stood ``before`` that."""
    return [((), (*needed(before, rest), *rest))] if rest else []
