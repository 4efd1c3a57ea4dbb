"""regroup: blocks of a dot's columns hold whole pieces, which are folded in the same kernel.

before   forall m in range(M):                after   forall m in range(M):
          forall a in range(A): (one piece)            forall n in range(N):     (blocks of N)
           for k in range(K):                           for k in range(K):
            t1 += dot(x, w)          [M, B]              t1 += dot(x, w)              [M, N]
           t2 = row_max(t1)          [M]                a = the pieces of n:
           store(t2,Y[m,a])                              t3 = regroup N -> A, B (t1)  [M, A, B]
                                                         t2 = row_max(t3)             [M, A]
                                                         store(t2,Y[m,a])

Columns that are folded in pieces are a loop over single pieces, so a tile of the product is as
narrow as a piece. As pieces of a block of columns, the tiles of the product are those of a product
alone. The pieces have a power of two of elements each, since tiles have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import LoopMove
from blockbuster.emit.schedule.block import not_one_iteration
from blockbuster.emit.schedule.drop_unit_loops import dropped_in, not_alone
from blockbuster.emit.schedule.group_heads import DOT, varying
from blockbuster.emit.schedule.on_grid import not_on_the_grid
from blockbuster.emit.schedule.pieces import Regrouped, pieces_of
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, known_loop, with_nest
from blockbuster.emit.schedule.two_parts import name_taken
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import fresh_names
from blockbuster.emit.tile.program import Block, For, Let, Nest, TileProgram, statements
from blockbuster.emit.tile.trips import dims_of
from blockbuster.ir.types import Dim, size_class


class Regroup(LoopMove):
    """Let blocks of columns hold whole pieces, where a loop over single pieces stands."""

    name: ClassVar[str] = "regroup"

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """The loop is over pieces of a dot's columns, and each statement has a form for many."""
        draft = scheduled.draft
        nest = draft.nests[site.nest - 1]
        piece = piece_of(nest, loop.dim)
        if reason := not_pieces(nest, loop, piece, scheduled):
            return reason
        whole = _in_one_block(nest, piece, scheduled)
        pieces = pieces_of(whole, loop.dim, piece, draft)
        made = Regrouped(whole, pieces, fresh_names(draft))
        return name_taken(draft, *pieces.rules) or made.why_not

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with one loop over blocks of columns, and the pieces of each inside."""
        draft, loop = scheduled.draft, known_loop(scheduled.draft, site)
        nest = draft.nests[site.nest - 1]
        piece = piece_of(nest, loop.dim)
        whole = _in_one_block(nest, piece, scheduled)
        pieces = pieces_of(whole, loop.dim, piece, draft)
        body = Regrouped(whole, pieces, fresh_names(draft)).body
        made = with_nest(draft, site, replace(whole, body=body))
        return changed(
            made,
            units=tuple(dim for dim in draft.units if dim != size_class(loop.dim)),
            whole=tuple(dict.fromkeys((*draft.whole, piece))),
            rules=tuple(dict.fromkeys((*draft.rules, *pieces.rules))),
        )


def piece_of(nest: Nest, dim: Dim) -> Dim:
    """The dim of the columns of a dot in a loop over ``dim``, of which those differ; "" for none,
    or for several.
    """
    differing = varying(nest, dim)
    dots = (s for s in statements(nest.body) if isinstance(s, Let) and s.op == DOT)
    found = {dot.args[1].axes[0] for dot in dots if dot.args[1] in differing}
    return found.pop() if len(found) == 1 else ""


def _in_one_block(nest: Nest, piece: Dim, scheduled: Scheduled) -> Nest:
    """``nest`` with ``piece`` as one block of all its elements."""
    made = dropped_in(nest, (piece,))
    block = Block(piece, scheduled.sizes[size_class(piece)], whole=True, ragged=False)
    return changed(made, blocks=(*made.blocks, block))


# predicates ------------------------------------------------------------------------


def not_pieces(nest: Nest, loop: For, piece: Dim, scheduled: Scheduled) -> str:
    """Why ``loop`` is no loop of the grid over pieces of ``piece`` elements, or ""."""
    draft, dim = scheduled.draft, loop.dim
    if size_class(dim) not in draft.units:
        return f"the blocks of {dim} have several elements already"
    if reason := not_on_the_grid(loop, nest):
        return reason
    if loop.span is not None or loop.chunk is not None or loop.within:
        return f"the loop over {dim} runs over a part of it already: regroup before"
    if not piece:
        return f"no dot in it has columns that differ by {dim}, or several have"
    alike = [d for d in dims_of(draft) if size_class(d) == size_class(dim) and d != dim]
    if alike:
        return f"{dim} and {alike[0]} have one size: both would have blocks of several elements"
    loops = [s for n in draft.nests for s in statements(n.body) if isinstance(s, For)]
    if sum(other.dim == dim for other in loops) > 1 or len(draft.nests) > 1:
        return f"another loop or nest needs single elements of {dim}"
    size = scheduled.sizes[size_class(piece)]
    if size < 2 or size & (size - 1):
        return f"a piece has {size} elements, and tiles have powers of two"
    if any(block.dim in (dim, piece) for block in nest.blocks):
        return f"{piece} is cut already: regroup before"
    return not_one_iteration(nest, piece) or not_alone(draft, piece, (piece,))
