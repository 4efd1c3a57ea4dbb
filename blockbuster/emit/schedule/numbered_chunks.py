"""Chunks of a dim as a program has them: two more dims, whose sizes are the number of chunks."""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, known_loop
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.names import dim_word
from blockbuster.emit.tile.program import Chunks, For, TileProgram, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.trips import sized
from blockbuster.ir.lengths import Rule, whole
from blockbuster.ir.types import Dim, size_class


def trips_at(scheduled: Scheduled, site: Site) -> int:
    """How many blocks the loop at ``site`` runs over, a part of them or not; of a dim that is not
    cut yet, how many elements.
    """
    loop = known_loop(scheduled.draft, site)
    tiling = tiling_of(scheduled.draft, scheduled.draft.nests[site.nest - 1])
    lanes = 1 if tiling.is_unit(loop.dim) else tiling.blocks.get(loop.dim, 1)
    return -(-scheduled.sizes[size_class(loop.dim)] // lanes)


def numbered(program: TileProgram, dim: Dim, count: int) -> Chunks:
    """``count`` chunks of ``dim``: those that ``program`` has, or new ones with free names."""
    for known in program.chunks:
        if (known.dim, known.count) == (dim, count):
            return known
    taken = dict.fromkeys(sized(program))
    words = (f"{dim_word(dim)}_chunk{number}" for number in ("", *range(2, 1000)))
    word = next(word for word in words if word not in taken and f"{word}s" not in taken)
    return Chunks(dim, count, word, f"{word}s")


def with_chunks(program: TileProgram, made: Sequence[Chunks]) -> TileProgram:
    """``program`` with the dims of the chunks ``made``, as far as it lacks them."""
    new = tuple(chunks for chunks in dict.fromkeys(made) if chunks not in program.chunks)
    counts = {dim: chunks.count for chunks in new for dim in (chunks.number, chunks.lanes)}
    return changed(
        program,
        units=(*program.units, *(chunks.number for chunks in new)),
        whole=(*program.whole, *(chunks.lanes for chunks in new)),
        rules=(*program.rules, *(Rule(dim, whole(n)) for dim, n in counts.items())),
        chunks=(*program.chunks, *new),
    )


def is_walked(program: TileProgram, chunks: Chunks) -> bool:
    """True if programs take the blocks of ``chunks`` in turn and hand nothing on (walk.py)."""
    if any(axis.dim == chunks.number for one in program.workspaces for axis in one.axes):
        return False
    inside = (stmt for nest in program.nests for stmt in statements(nest.body))
    loops = (s for s in inside if isinstance(s, For) and s.chunk == chunks.number)
    return any(not loop.parallel for loop in loops)
