"""flatten: serial loops, each of which is all that the one around it does, are one loop of dots.

before   for r in range(R):              after   for r in range(R) flat:
           for s in range(S):                      for s in range(S) flat:
             for c in range(C):                      for c in range(C):
               t3 += dot(x, w)                         t3 += dot(x, w)

Loads run ahead within a loop: at its end they wait for each other, and the next time it begins anew
with none under way. The taps of a filter are few, and so may be the blocks of its channels. As one
loop, the first loads of the next tap are under way while the dots of this one are computed. Costs a
division for each index in every iteration.
"""

from __future__ import annotations

from blockbuster.emit.tile.dataflow import mapped, with_parts
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import For, Nest, Stmt
from blockbuster.emit.tile.tiling import Tiling, tiling_in
from blockbuster.emit.tile.uses import is_matrix_dot


@each_body()
def flatten(nest: Nest, around: Around) -> Nest:
    """A nest with its loops marked that are one loop with the loop in them."""
    tiling = tiling_in(nest, around.units)

    def change(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and not not_flat(stmt, tiling):
            return with_parts(stmt, flat=True)
        return stmt

    return with_parts(nest, body=mapped(nest.body, change))


def not_flat(loop: For, tiling: Tiling) -> str:
    """Why ``loop`` is no one loop with another, or ""."""
    if reason := not_whole(loop):
        return reason
    match loop.body:
        case (For() as inner,) if not not_whole(inner):
            return "" if ends_in_dots(inner, tiling) else "no dots are in the innermost loop"
    return f"the loop over {loop.dim} does more than another whole loop"


def not_whole(loop: For) -> str:
    """Why ``loop`` does not run over all blocks of its dim, one after the other, or ""."""
    parted = loop.span is not None or loop.chunk is not None
    if loop.parallel or parted or loop.settled or loop.down:
        return f"the loop over {loop.dim} does not run over all of it"
    return ""


def ends_in_dots(loop: For, tiling: Tiling) -> bool:
    """True if a loop, or what it is one loop with, has matrix dots and no further loops in it."""
    match loop.body:
        case (For() as inner,):
            return not not_whole(inner) and ends_in_dots(inner, tiling)
    loops = any(isinstance(stmt, For) for stmt in loop.body)
    return not loops and any(is_matrix_dot(stmt, tiling) for stmt in loop.body)
