"""chunk-loops: a long loop of a nest with few programs is run in chunks, side by side.

before   for n in range(N):               after   forall c in range(N_chunk):
          t2 = load(X[n])                          for n in chunk c of range(N):
          t1 += row_sum(t2)                         t2 = load(X[n])
         t3 = sqrt(t1)                              t1 += row_sum(t2)
         store(t3,O[])                             store(t1,I1[c])
                                                  t4 = load(I1[:])
                                                  t1 = row_sum(t4)
                                                  t3 = sqrt(t1)
                                                  store(t3,O[])

What the chunks accumulate crosses through a workspace, and is combined in the order of the chunks,
so results are the same from run to run. Fills a device that would be idle, and adds up on two
levels, which rounds less. Costs a launch. A loop inside a short serial loop can be run in chunks,
too: then that one is distributed, and runs its iterations side by side as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from blockbuster.emit.schedule.bind import outer_loop
from blockbuster.emit.schedule.chunk_sizes import (
    ChunkSizes,
    not_apart,
    not_chunkable,
    not_side_by_side,
    totals_of,
)
from blockbuster.emit.schedule.combine import combined
from blockbuster.emit.tile.cut import Body, Workspaces, pieces
from blockbuster.emit.tile.dataflow import (
    defined,
    folded,
    fresh_names,
    operands,
    reads,
    workspaces_in_order,
)
from blockbuster.emit.tile.names import dim_word
from blockbuster.emit.tile.program import (
    Chunks,
    For,
    Init,
    Iota,
    Let,
    Load,
    Nest,
    Stmt,
    Store,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.trips import sized
from blockbuster.emit.tile.typed import retyped
from blockbuster.errors import EmitError, message
from blockbuster.ir.lengths import Rule, whole
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, size_class

NAME = "chunk-loops"
"""What the comments of an emitted file call this pass."""

Part = tuple[tuple[Dim, ...], Body]
"""Parallel loops, inside those of the nest, and what they hold."""


def chunk_loops(
    program: TileProgram,
    tiling: Tiling,
    *,
    processors: int,
    asked: Mapping[Dim, int] | None = None,
) -> tuple[TileProgram, Tiling]:
    """``program`` with loops in chunks, and the tiling with the dims that count them.

    As many chunks as keep ``processors`` busy (chunk_sizes.py), or as ``asked`` says by dim or size
    class. Raises EmitError where none of the loops that are asked for can be run in chunks.
    """
    writer = _Writer(program, tiling, ChunkSizes(tiling, processors, asked))
    nests = tuple(made for nest in program.nests for made in writer.nest(nest))
    done = {word for dim, _ in writer.made for word in (dim, size_class(dim))}
    missed = [dim for dim in asked or {} if dim not in done]
    if missed:
        reason = writer.refused.get(missed[0], "no nest has such a loop")
        raise EmitError(message(f"no loop over {missed[0]} can be run in chunks: {reason}"))
    return writer.finished(nests)


@dataclass
class _Writer:
    program: TileProgram
    tiling: Tiling
    sizes: ChunkSizes
    made: dict[tuple[Dim, int], Chunks] = field(default_factory=dict)
    refused: dict[Dim, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        arrays = (*self.program.inputs, *self.program.outputs, *self.program.workspaces)
        self._spaces = Workspaces(self.program.units, dict.fromkeys(b.name for b in arrays))
        self._names = fresh_names(self.program)
        self._taken = dict.fromkeys(sized(self.program))

    def nest(self, nest: Nest) -> Iterator[Nest]:
        """The nests that take the place of one."""
        loops, body = list[For](), nest.body
        while (loop := outer_loop(body)) is not None:
            loops.append(loop)
            body = loop.body
        path = (*nest.grid, *(loop.dim for loop in loops))
        for dims, part in self._parts(body, path):
            for dim in reversed(dims):
                part = (For(dim, True, part),)
            for loop in reversed(loops):
                part = (replace(loop, body=part),)
            yield replace(nest, body=part)

    def finished(self, nests: tuple[Nest, ...]) -> tuple[TileProgram, Tiling]:
        """The whole program, and the tiling of all its dims."""
        chunks = tuple(self.made.values())
        numbers, lanes = tuple(c.number for c in chunks), tuple(c.lanes for c in chunks)
        counts = {dim: c.count for c in chunks for dim in (c.number, c.lanes)}
        program = replace(
            self.program,
            nests=nests,
            workspaces=(*self.program.workspaces, *self._spaces.made),
            units=(*self.program.units, *numbers),
            whole=(*self.program.whole, *lanes),
            rules=(*self.program.rules, *(Rule(d, whole(n)) for d, n in counts.items())),
            chunks=chunks,
        )
        tiling = replace(
            self.tiling,
            sizes={**self.tiling.sizes, **counts},
            blocks={**self.tiling.blocks, **counts, **dict.fromkeys(numbers, 1)},
            whole=(*self.tiling.whole, *lanes),
            units=(*self.tiling.units, *numbers),
        )
        return retyped(workspaces_in_order(program)) if chunks else program, tiling

    # finding loops ---------------------------------------------------------------

    def _parts(self, body: Body, path: tuple[Dim, ...], around: int = 1) -> list[Part]:
        """``body``, which runs inside parallel loops over ``path``, in parts that run in turn.

        ``around``: how many iterations of loops that are serial now surround it.
        """
        for at, loop in enumerate(body):
            if not isinstance(loop, For):
                continue
            here, inside = self._programs(body, at, path, around)
            if not (here or inside):
                continue
            cheap = [isinstance(stmt, Load | Iota | Let | Init) for stmt in body[:at]]
            if not all(cheap):  # loops and stores run once, in a kernel of their own
                cut = len(cheap) - cheap[::-1].index(False)
                first, rest = pieces(body, [cut], path=path, spaces=self._spaces)
                return [((), first), *self._parts(rest, path, around)]
            if here:
                return self._chunked(body, at, path, around)
            return self._distributed(body, at, path, around)
        return [((), body)]

    def _programs(self, body: Body, at: int, path: tuple[Dim, ...], around: int) -> tuple[int, int]:
        """How many programs run the loop at ``at`` if it is in chunks, or a loop inside it is.

        0 for what cannot be or does not pay; only one of the two is not 0.
        """
        loop = body[at]
        if not isinstance(loop, For) or loop.dim not in self.tiling.blocks:
            return 0, 0
        count = self.sizes.chunks(loop, path, around)
        if count and (reason := not_chunkable(loop, body[:at], body[at + 1 :])):
            self.refused |= dict.fromkeys((loop.dim, size_class(loop.dim)), reason)
            count = 0
        here = self.sizes.programs(path) * count
        if here and (self.sizes.asked is not None or 2 * here > self.sizes.processors):
            return here, 0
        trips = self.sizes.trips(loop.dim)
        inner = (
            max(self._programs(loop.body, i, (*path, loop.dim), around * trips))
            for i in range(len(loop.body))
            if not (not_side_by_side(loop) or not_apart(body[:at]) or not_apart(loop.body[:i]))
        )
        inside = max(inner, default=0)
        return (0, inside) if inside > here else (here, 0)

    # rewriting them --------------------------------------------------------------

    def _chunked(self, body: Body, at: int, path: tuple[Dim, ...], around: int) -> list[Part]:
        """The chunks of the loop at ``at``, and what combines them and follows."""
        before, loop, behind = body[:at], body[at], body[at + 1 :]
        assert isinstance(loop, For)
        chunks = self._chunks(loop.dim, self.sizes.chunks(loop, path, around))
        totals = totals_of(loop, before)
        stores, combining = list[Stmt](), list[Stmt]()
        for fold in totals:
            origin = Origin(NAME, (fold.origin,))
            views = {
                tile: self._spaces.new((*path, chunks.number), tile.axes, tile.dtype)
                for tile in folded(fold)
            }
            stores += [Store(view, tile, origin) for tile, view in views.items()]
            combining += combined(fold, views, chunks, self.tiling, self._names, origin)
        part = (replace(loop, chunk=chunks.number), *stores)
        parts: list[Part] = [((chunks.number,), (*_needed(before, part), *part))]
        inits = [tile for fold in totals for tile in folded(fold)]
        before = tuple(stmt for stmt in before if defined(stmt) not in inits)
        return [*parts, *self._rest(before, (*combining, *behind), path, around)]

    def _distributed(self, body: Body, at: int, path: tuple[Dim, ...], around: int) -> list[Part]:
        """The parts of the body of the loop at ``at``, each in a loop of its own.

        Iterations hand nothing on but accumulators, which only what is left of the body folds.
        """
        before, loop, behind = body[:at], body[at], body[at + 1 :]
        assert isinstance(loop, For)
        trips = self.sizes.trips(loop.dim)
        parts = self._parts(loop.body, (*path, loop.dim), around * trips)
        left = () if parts[-1][0] else (replace(loop, body=parts.pop()[1]),)
        apart = [((loop.dim, *dims), (*_needed(before, part), *part)) for dims, part in parts]
        return [*apart, *self._rest(before, (*left, *behind), path, around)]

    def _rest(self, before: Body, rest: Body, path: tuple[Dim, ...], around: int) -> list[Part]:
        """What runs behind a part, with what it needs of what stood ``before`` that."""
        return self._parts((*_needed(before, rest), *rest), path, around) if rest else []

    def _chunks(self, dim: Dim, count: int) -> Chunks:
        """Chunks of ``dim``, with dims of their own."""
        if (dim, count) not in self.made:
            words = (f"{dim_word(dim)}_chunk{number}" for number in ("", *range(2, 1000)))
            word = next(w for w in words if w not in self._taken and f"{w}s" not in self._taken)
            self.made[dim, count] = Chunks(dim, count, word, f"{word}s")
            self._taken.update(dict.fromkeys((word, f"{word}s")))
            self._spaces.units += (word,)
        return self.made[dim, count]


def _needed(before: Body, part: Body) -> Body:
    """The statements of ``before``, which hold no loop, that make what ``part`` reads or folds."""
    used = dict.fromkeys((*reads(part), *(t for s in statements(part) for t in folded(s))))
    kept: list[Stmt] = []
    for stmt in reversed(before):
        if defined(stmt) in used:
            kept.append(stmt)
            used.update(dict.fromkeys(operands(stmt)))
    return tuple(reversed(kept))
