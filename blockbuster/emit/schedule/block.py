"""block: cut dims into blocks of a given number of elements; a dim of one block needs no loop.

before   for n in range(N):               block N 64            for n in range(N):     (64 lanes)
          t2 = load(X[m,n])                                      t2 = load(X[m,n])
          t1 += row_sum(t2)                                      t1 += row_sum(t2)

                                          block N 128 whole     t2 = load(X[m,:])     (128 lanes)
                                                                t1 = row_sum(t2)

A kernel's tiles have this many lanes along the dims of their axes. Larger blocks mean fewer loads;
they cost registers and shared memory, and leave fewer programs. Blocks are powers of two, because
Triton's tiles are. Each nest may cut a dim in its own way, but arrays with one entry per block tie
the nests that store and load them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import NEST, Args, Move, not_a_power_of_two
from blockbuster.emit.schedule.drop_unit_loops import dropped_in, not_alone
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import EVERYWHERE, Site, nests_at, with_nests
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import defined, with_loops
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.float8_dots import LEAST_DEPTH, in_float8
from blockbuster.emit.tile.program import (
    ACCESSES,
    Block,
    BlockOf,
    Fold,
    For,
    Iota,
    Issue,
    Let,
    Load,
    Nest,
    Stmt,
    TileProgram,
    statements,
)
from blockbuster.emit.tile.tiling import Tiling, blocked, is_ragged, tiling_of
from blockbuster.emit.tile.trips import dims_in, dims_of, joined_in, pieces_in, walked_in
from blockbuster.emit.tile.uses import matrix_dots
from blockbuster.ir.ops import Relabel
from blockbuster.ir.types import Dim, size_class

LEAST = 16  # lanes along each side of a matrix dot: Triton's tl.dot takes no fewer
MOST = 1 << 20  # elements of one tile: Triton takes no more
WHOLE = "whole"


@dataclass(frozen=True)
class Cut:
    """``lanes`` elements to a block of ``dim``; ``whole``: the dim is one block."""

    dim: Dim
    lanes: int
    whole: bool = False

    def __str__(self) -> str:
        return f"{self.dim} {self.lanes}{f' {WHOLE}' if self.whole else ''}"


class BlockDims(Move):
    """Cut dims of a nest, or of all nests; dims that one access relates are cut together."""

    name: ClassVar[str] = "block"
    takes: ClassVar[str] = NEST
    looks_after: ClassVar[bool] = True

    def sites(self, scheduled: Scheduled) -> Iterator[Site]:
        """All nests, and each, where a dim is not cut yet."""
        draft = scheduled.draft
        if any(_uncut(nest, draft.units) for nest in draft.nests):
            yield EVERYWHERE
        for at, nest in enumerate(draft.nests, start=1):
            if _uncut(nest, draft.units):
                yield Site(at)

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """Every dim that is not cut yet, in all blocks that it can have, each dim by itself.

        First come those in which all dims have blocks of 16, of 32, ... elements, as far as they
        can. Dims without a loop around them are one block.
        """
        ways = {dim: tuple(ways_of(dim, scheduled, site)) for dim in _uncut_at(scheduled, site)}
        alike = [
            tuple(next((c for c in cuts if c.lanes == lanes), cuts[-1]) for cuts in ways.values())
            for lanes in (LEAST << power for power in range(MOST.bit_length()))
        ]
        for cuts in dict.fromkeys(chain(alike, product(*ways.values()))) if ways else ():
            if not self.why_not(scheduled, site, cuts=cuts):
                yield {"cuts": cuts}

    def near(self, scheduled: Scheduled, site: Site, args: Args) -> Iterator[Args]:
        """The cut of one dim with half or twice the lanes, or in one block instead of several."""
        cuts: tuple[Cut, ...] = args["cuts"]
        for at, cut in enumerate(cuts):
            for other in ways_of(cut.dim, scheduled, site):
                if other != cut and other.lanes in (cut.lanes // 2, cut.lanes, 2 * cut.lanes):
                    made = (*cuts[:at], other, *cuts[at + 1 :])
                    if not self.why_not(scheduled, site, cuts=made):
                        yield {"cuts": made}

    def not_here(
        self, scheduled: Scheduled, site: Site, nests: tuple[Nest, ...], /, **args: Any
    ) -> str:
        """Each dim is there and not cut yet, and its lanes fit it."""
        draft, cuts = scheduled.draft, args["cuts"]
        dims = [cut.dim for cut in cuts]
        for cut in cuts:
            if dims.count(cut.dim) > 1:
                return f"{cut.dim} is cut twice"
            if reason := _not_cuttable(cut, nests, scheduled):
                return reason
        whole = tuple(cut.dim for cut in cuts if cut.whole)
        for dim in whole if len(nests) == len(draft.nests) else ():
            if reason := not_alone(draft, dim, whole):
                return reason
        return ""

    def not_after(self, made: TileProgram, **args: Any) -> str:
        """The nests agree."""
        return not_agreeing(made)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The nests with their blocks, without the loops over dims that are one block."""
        draft, at = scheduled.draft, nests_at(scheduled.draft, site)
        cuts: Sequence[Cut] = args["cuts"]
        made = with_nests(draft, site, lambda nest: _with(nest, cuts, scheduled))
        if len(at) < len(draft.nests):
            return made
        whole = (*draft.whole, *(cut.dim for cut in cuts if cut.whole))
        return changed(made, whole=tuple(dict.fromkeys(whole)))

    def show(self, **args: Any) -> str:
        """``N 64, D 128 whole``."""
        return ", ".join(map(str, args["cuts"]))

    def read(self, words: Sequence[str]) -> Args:
        """Dims with their lanes, separated by commas."""
        parts = [part.split() for part in " ".join(words).split(",")]
        return {"cuts": tuple(map(_read, parts))}


def _read(words: Sequence[str]) -> Cut:
    good = len(words) in (2, 3) and words[1].isdigit() and words[2:] in ([], [WHOLE])
    if not good:
        raise ValueError(f"expected DIM LANES or DIM LANES {WHOLE}, got {' '.join(words)!r}")
    return Cut(words[0], int(words[1]), len(words) == 3)


def ways_of(dim: Dim, scheduled: Scheduled, site: Site) -> Iterator[Cut]:
    """All cuts that a dim can have: blocks of powers of two up to its size, or one of all of it."""
    draft, size = scheduled.draft, scheduled.sizes[size_class(dim)]
    nests = [draft.nests[at] for at in nests_at(draft, site)]
    here = [nest for nest in nests if dim in dims_in(nest)]
    least = max((least_lanes(nest, draft.units).get(dim, 1) for nest in here), default=1)
    whole = max(1 << max(size - 1, 0).bit_length(), least)
    if not any(dim in unlooped(nest, draft.units) for nest in here):
        powers = range(least.bit_length() - 1, whole.bit_length())
        yield from (Cut(dim, 1 << power) for power in powers)
    yield Cut(dim, whole, whole=True)
    yield Cut(dim, 2 * whole, whole=True)  # padded, as the rows of dots may be


def _uncut_at(scheduled: Scheduled, site: Site) -> tuple[Dim, ...]:
    """The dims that are not cut yet at a place."""
    draft = scheduled.draft
    nests = [draft.nests[at] for at in nests_at(draft, site)]
    return tuple(dict.fromkeys(dim for nest in nests for dim in _uncut(nest, draft.units)))


def _uncut(nest: Nest, units: tuple[Dim, ...]) -> tuple[Dim, ...]:
    cut = [block.dim for block in nest.blocks]
    cut += [pieces for pieces, *_ in pieces_in(nest)]  # their blocks follow from others
    return tuple(d for d in walked_in(nest) if d not in cut and size_class(d) not in units)


def _with(nest: Nest, cuts: Sequence[Cut], scheduled: Scheduled) -> Nest:
    here = walked_in(nest)  # of other dims only the size is read, which no block changes
    joined = joined_in(nest)  # sizes of their parts do not say whether blocks fill them
    blocks = tuple(
        Block(
            cut.dim,
            cut.lanes,
            cut.whole,
            cut.dim in joined
            or is_ragged(scheduled.sizes[size_class(cut.dim)], cut.lanes, cut.whole),
        )
        for cut in cuts
        if cut.dim in here
    )
    whole = tuple(block.dim for block in blocks if block.whole)
    lanes = {block.dim: block.lanes for block in (*nest.blocks, *blocks)}
    found = ((block, *of) for of in pieces_in(nest) for block in blocks if block.dim == of[1])
    pieces = tuple(Block(d, b.lanes // lanes[each], ragged=b.ragged) for b, d, _, each in found)
    return changed(dropped_in(nest, whole), blocks=(*nest.blocks, *blocks, *pieces))


# predicates ------------------------------------------------------------------------


def _not_cuttable(cut: Cut, nests: Sequence[Nest], scheduled: Scheduled) -> str:
    """Why a dim cannot be cut so in these nests, or ""."""
    units = scheduled.draft.units
    here = [nest for nest in nests if cut.dim in dims_in(nest)]
    if not here:
        known = dict.fromkeys(dim for nest in nests for dim in _uncut(nest, units))
        return f"no dim {cut.dim} here; not cut yet: {', '.join(known) or 'none'}"
    if size_class(cut.dim) in units:
        return f"the blocks of {cut.dim} have one element"
    if any(cut.dim == block.dim for nest in here for block in nest.blocks):
        return f"{cut.dim} is cut already"
    if any(cut.dim in spanning(nest) for nest in here):
        return f"spans of loops are of the blocks of {cut.dim} as they are: cut it before"
    for pieces, joined, _ in (found for nest in here for found in pieces_in(nest)):
        if cut.dim == pieces or (cut.dim == joined and cut.whole):
            return f"{pieces} are pieces of {joined}, which is walked in blocks of whole pieces"
    least = max(least_lanes(nest, units).get(cut.dim, 1) for nest in here)
    size = scheduled.sizes[size_class(cut.dim)]
    if cut.whole and size > cut.lanes:
        return f"{cut.dim} has {size} elements, more than one block of {cut.lanes}"
    if cut.whole and any(cut.dim in joined_in(nest) for nest in here):
        return f"{cut.dim} joins several dims: it is walked in blocks"
    for nest in here if cut.whole else ():
        if reason := not_one_iteration(nest, cut.dim):
            return reason
    if not cut.whole and any(cut.dim in unlooped(nest, units) for nest in here):
        return f"no loop runs over {cut.dim}: it is one block, {cut.dim} LANES {WHOLE}"
    return not_a_power_of_two(cut.lanes, f"the block of {cut.dim}", least)


def spanning(nest: Nest) -> dict[Dim, None]:
    """The dims on whose blocks it depends which iterations the spans of loops hold."""
    found: dict[Dim, None] = {}
    for stmt in statements(nest.body):
        match stmt:
            case BlockOf(_, dim) | Iota(_, dim, at="first" | "last"):
                found[dim] = None
            case For(dim) if stmt.span is not None:
                found[dim] = None
    return found


def not_one_iteration(nest: Nest, dim: Dim) -> str:
    """Why the loops of ``nest`` over ``dim`` are needed, however few blocks it has, or ""."""
    for loop in statements(nest.body):
        if isinstance(loop, For) and loop.dim == dim:
            if loop.chunk is not None:
                return f"the loop over {dim} runs in chunks, of which each takes its part"
            if any(isinstance(stmt, Issue) for stmt in loop.body):
                return f"the loads of the loop over {dim} run ahead of its iterations"
            if any(isinstance(stmt, Fold) and stmt.ahead for stmt in loop.body):
                return f"a maximum of the loop over {dim} is folded first: cut it before 'factor'"
    return ""


def not_agreeing(program: TileProgram) -> str:
    """Why its blocks leave a tile or an array without a place, or "".

    Dims that are one under two names have equal blocks, and nests that share an array with one
    entry per block cut its dim alike.
    """
    per_block: dict[tuple[str, int], tuple[Block | None, Dim]] = {}
    for nest in program.nests:
        blocks = {block.dim: block for block in nest.blocks}
        tiling = tiling_of(program, nest)
        for dims, pairs in _tied(Same(nest.body), program.units):
            if reason := too_large(dims, tiling):
                return reason
            for a, b in pairs:
                if a in blocks and b in blocks and blocks[a].lanes != blocks[b].lanes:
                    return (
                        f"{a} and {b} are one dim under two names, with tiles of "
                        f"{blocks[a].lanes} and {blocks[b].lanes}: give both the same tile"
                    )
        accesses = (s.view for s in statements(nest.body) if isinstance(s, ACCESSES))
        for view in accesses:
            for axis, (used, kind) in enumerate(zip(view.dims, view.buffer.axes, strict=True)):
                if kind.per_block and isinstance(used, str) and used in blocks:
                    block = changed(blocks[used], dim="")
                    known, dim = per_block.setdefault((view.buffer.name, axis), (block, used))
                    if known != block:
                        return (
                            f"{view.buffer.name} has one entry per block of {dim}, and nests "
                            f"differ in how they cut {used}"
                        )
    return ""


@lru_cache(maxsize=KEPT)
def _tied(
    body: Same[Body], units: tuple[Dim, ...]
) -> tuple[tuple[tuple[Dim, ...], tuple[tuple[Dim, Dim], ...]], ...]:
    """For each statement the dims of its tile with lanes, and pairs that are one dim, each once."""
    made = ((defined(stmt), tuple(one_dim(stmt))) for stmt in statements(body.one))
    found = ((blocked(tile.axes, units) if tile else (), pairs) for tile, pairs in made)
    return tuple(dict.fromkeys(found))


def too_large(dims: tuple[Dim, ...], tiling: Tiling) -> str:
    """Why a tile with lanes along ``dims`` has too many elements for Triton, or ""."""
    if math.prod([tiling.blocks.get(dim, 1) for dim in dims]) <= MOST:
        return ""
    shown = ", ".join(f"{dim}={tiling.blocks[dim]}" for dim in dims)
    return (
        f"a tile with {shown} has more than the {MOST} elements that Triton takes: "
        "give smaller tiles, or reduce in a loop over blocks"
    )


def one_dim(stmt: Stmt) -> Iterator[tuple[Dim, Dim]]:
    """Dims that are one under two names: their blocks have to be equal."""
    if isinstance(stmt, Load):
        for dim, axis in zip(stmt.view.dims, stmt.view.buffer.axes, strict=True):
            if axis.per_block and isinstance(dim, str) and axis.dim:
                yield dim, axis.dim
    elif isinstance(stmt, Let) and isinstance(stmt.op, Relabel):
        yield stmt.op.old, stmt.op.new


def unlooped(nest: Nest, units: tuple[Dim, ...]) -> dict[Dim, None]:
    """The dims of tiles that no loop surrounds: they are one block."""
    return dict.fromkeys(_unlooped(Same(nest.body), nest.grid, units))


@lru_cache(maxsize=KEPT)
def _unlooped(body: Same[Body], grid: tuple[Dim, ...], units: tuple[Dim, ...]) -> tuple[Dim, ...]:
    found: dict[Dim, None] = {}
    for stmt, loops in with_loops(body.one):
        if isinstance(stmt, Let | Load):
            walked = (*grid, *(loop.dim for loop in loops))
            axes = blocked(stmt.target.axes, units)
            found.update(dict.fromkeys(d for d in axes if d not in walked))
    return tuple(found)


def dims_of_dots(nest: Nest, units: tuple[Dim, ...]) -> dict[Dim, None]:
    """The dims that take part in a matrix dot of ``nest``."""
    tiling = Tiling({}, units)
    dots = matrix_dots(nest.body, tiling)
    return dict.fromkeys(dim for dot in dots for arg in dot.args for dim in tiling.lanes(arg))


def least_lanes(nest: Nest, units: tuple[Dim, ...]) -> dict[Dim, int]:
    """The fewest lanes of each dim that takes part in a matrix dot of ``nest``."""
    return dict(_least_lanes(Same(nest.body), nest.blocks, units))


@lru_cache(maxsize=KEPT)
def _least_lanes(
    body: Same[Body], blocks: tuple[Block, ...], units: tuple[Dim, ...]
) -> tuple[tuple[Dim, int], ...]:
    nest = Nest(body.one)
    found = dict.fromkeys(dims_of_dots(nest, units), LEAST)
    for _, joined, piece in pieces_in(nest):
        whole = next((block.lanes for block in blocks if block.dim == piece), 1)
        found[joined] = max(found.get(joined, 1), whole)
        found.pop(piece, None)
    for dot in matrix_dots(nest.body, Tiling({}, units)):
        if in_float8(dot):
            found[dot.args[0].axes[-1]] = LEAST_DEPTH
    return tuple(found.items())


def whole_program_cut(
    program: TileProgram, blocks: Mapping[Dim, int], whole: Sequence[Dim]
) -> tuple[Cut, ...]:
    """The cuts of all dims that the nests of ``program`` walk or hold in blocks."""
    walked = {dim: None for nest in program.nests for dim in dims_in(nest)}
    known = {block.dim for nest in program.nests for block in nest.blocks}
    known.update(pieces for nest in program.nests for pieces, *_ in pieces_in(nest))
    dims = (dim for dim in dims_of(program) if size_class(dim) not in program.units)
    dims = (dim for dim in dims if dim not in known)
    return tuple(Cut(dim, blocks[dim], dim in whole) for dim in dims if dim in walked)
