"""Loops that go from block to block along a chain in memory, past blocks that change nothing.

    t1 = load I1[m]             the position of the first block
    t2 = load I2[m]             how many blocks there are
    t3 = block N of t1
    for N from t3 to t2
      t4 = load I3[m, n]        the position of the block behind this one
      t5 = block N of t4
      ...
      next N at t5

The span of such a loop is the number of its first block, and how many blocks it runs over.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.program import BlockOf, For, Nest, Tile, View, statements
from blockbuster.emit.tile.rings import arrivals


def next_of(loop: For) -> Next | None:
    """The statement that says how ``loop`` goes on, if it does so along a chain."""
    last = loop.body[-1] if loop.body else None
    return last if isinstance(last, Next) else None


def chain_of(loop: For) -> View | None:
    """Where ``loop`` finds the position of its next block; None if it goes along no chain."""
    end = next_of(loop)
    if end is None:
        return None
    made = {s.target: s.value for s in loop.body if isinstance(s, BlockOf)}
    read: dict[Tile | None, View] = dict(arrivals(loop.body))
    return read.get(made.get(end.value))


def chained(loop: For) -> str:
    """Why the blocks of ``loop`` cannot be told apart before it runs, or ""."""
    return f"the loop over {loop.dim} goes from block to block by a chain" if next_of(loop) else ""


def chains_are_whole(nest: Nest) -> Iterator[str]:
    """A chain is read at the current block of a serial loop, whose body it ends."""
    loops = [s for s in statements(nest.body) if isinstance(s, For)]
    ends = [next_of(loop) for loop in loops]
    inside = (stmt for stmt in statements(nest.body) if isinstance(stmt, Next))
    yield from (f"next {s.dim} ends no loop" for s in inside if s not in ends)
    for loop, end in zip(loops, ends, strict=True):
        if end is None:
            continue
        if loop.dim != end.dim or loop.parallel or loop.down or loop.chunk is not None:
            yield f"next {end.dim} ends a loop of another order"
        if loop.span is None or None in loop.span:
            yield f"the chain of {loop.dim} lacks its first block, or its length"
        if (view := chain_of(loop)) is None or loop.dim not in view.dims:
            yield f"{end.value.name} is read from no chain of {loop.dim}"
