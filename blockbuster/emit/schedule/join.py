"""join: two loops of the grid become one, so that rows of tiles run over several axes.

before   forall h in range(H):                    after   forall h_v in range(H_V):
          forall v in range(V):    (blocks of V)           (blocks of H_V)
           x = load(X[h+r,v,c])    [V, C]                  x = load(X[h_v//V+r,h_v%V,c])  [H_V, C]
           y += dot(x,w)           [V, K]                  y += dot(x,w)                  [H_V, K]
           store(y,Y[h,v,k])                               store(y,Y[h_v//V,h_v%V,k])

A block of a short axis leaves lanes of its tile idle, and matrix units take 64 rows at once. Axes
that nothing tells apart are one axis before a program is lowered; windows along one of them keep
them apart. A joined loop has blocks of any length over both: the index of each axis is a share of
its own, computed once for each block. Costs wide loads and stores along the axes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import LoopMove
from blockbuster.emit.schedule.group_heads import varying
from blockbuster.emit.schedule.on_grid import not_on_the_grid
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, known_loop, with_body
from blockbuster.emit.schedule.two_parts import name_taken, named_in, on_tiles, with_rules
from blockbuster.emit.tile.dataflow import mapped
from blockbuster.emit.tile.names import dim_word
from blockbuster.emit.tile.program import (
    ACCESSES,
    BlockOf,
    BufferAxis,
    For,
    Iota,
    Issue,
    Let,
    Load,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.ir.lengths import Rule, product_of, size
from blockbuster.ir.ops import Relabel
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import AxisView, Run, Share, Strided, shares_of


class Join(LoopMove):
    """Run a loop and the one right inside it as one, whose blocks are rows of tiles."""

    name: ClassVar[str] = "join"

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """Nothing but rows of tiles depends on either of the two dims."""
        draft, outer = scheduled.draft, loop
        nest = draft.nests[site.nest - 1]
        if reason := not_two_loops(outer, nest, draft):
            return reason
        pair = pair_at(nest, outer)
        differing = varying(nest, outer.dim)
        found = (not_by_rows(stmt, pair) for stmt in statements(nest.body))
        without = (
            f"{tile.name} differs by {pair.outer}, and has no rows of {pair.inner}"
            for tile in differing
            if pair.inner not in tile.axes
        )
        return name_taken(draft, pair.rule) or next(filter(None, found), "") or next(without, "")

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with one loop over the joined dim."""
        draft, outer = scheduled.draft, known_loop(scheduled.draft, site)
        nest = draft.nests[site.nest - 1]
        pair = pair_at(nest, outer)

        def change(stmt: Stmt) -> Stmt:
            if stmt is outer:
                (inner,) = outer.body
                assert isinstance(inner, For)
                return replace(inner, dim=pair.dim)
            return pair.stmt(stmt)

        made = with_body(draft, site, mapped(nest.body, change))
        return with_rules(made, pair.rule)


@dataclass(frozen=True)
class Pair:
    """Two dims to be joined; each may be joined of others already, which ``dims`` has in order."""

    outer: Dim
    inner: Dim
    dims: tuple[Dim, ...]

    @property
    def dim(self) -> Dim:
        """The dim that joins them."""
        return "_".join(map(dim_word, self.dims))

    @property
    def rule(self) -> Rule:
        """Its size."""
        return Rule(self.dim, product_of(size(size_class(dim)) for dim in self.dims))

    def stmt(self, stmt: Stmt) -> Stmt:
        """``stmt`` under the joined dim; the bodies of loops are left alone."""
        return on_tiles(stmt, {tile: self.tile(tile) for tile in named_in(stmt)}, self.view)

    def tile(self, tile: Tile) -> Tile:
        """A tile with rows of the joined dim."""
        axes = tuple(self.dim if dim == self.inner else dim for dim in tile.axes)
        return tile if axes == tile.axes else replace(tile, axes=axes)

    def view(self, view: View) -> View:
        """An access under the joined dim."""
        axes = zip(view.dims, view.buffer.axes, strict=True)
        return replace(view, dims=tuple(self._axis(dim, axis) for dim, axis in axes))

    def _axis(self, used: AxisView, axis: BufferAxis) -> AxisView:
        if isinstance(used, Strided):
            return replace(used, runs=tuple(map(self._run, used.runs)))
        if used not in (self.outer, self.inner):
            return used
        assert used is not None
        assert axis.dim is not None
        return Strided(axis.dim, (self._run(Run(used)),))

    def _run(self, run: Run) -> Run:
        if run.dim not in (self.outer, self.inner):
            return run
        own = self.dims.index(run.own)
        return Run(self.dim, None, run.step, Share(self.dims, own))


def pair_at(nest: Nest, outer: For) -> Pair:
    """A loop and the one right inside it."""
    (inner,) = outer.body
    assert isinstance(inner, For)
    views = (stmt.view for stmt in statements(nest.body) if isinstance(stmt, ACCESSES))
    joined = {dim: share.dims for view in views for dim, share in shares_of(view.dims)}
    parts = (joined.get(dim, (dim,)) for dim in (outer.dim, inner.dim))
    return Pair(outer.dim, inner.dim, tuple(dim for part in parts for dim in part))


# predicates ------------------------------------------------------------------------


def not_two_loops(outer: For, nest: Nest, program: TileProgram) -> str:
    """Why ``outer`` and the loop right inside it are no loops over single elements and rows."""
    if reason := not_on_the_grid(outer, nest):
        return reason
    match outer.body:
        case (For(parallel=True, span=None, chunk=None) as inner,):
            pass
        case _:
            return f"no loop of the grid stands right inside that over {outer.dim}, and alone"
    if outer.span is not None or outer.chunk is not None:
        return f"the loop over {outer.dim} runs over a part of it already: join before"
    if size_class(outer.dim) not in program.units:
        return f"the blocks of {outer.dim} have several elements already"
    if size_class(inner.dim) in program.units:
        return f"the blocks of {inner.dim} have one element: they are no rows"
    both = (outer.dim, inner.dim)
    if any(block.dim in both for block in nest.blocks):
        return f"{inner.dim} is cut already: join before"
    walked = [s.dim for s in statements(nest.body) if isinstance(s, For) and s.dim in both]
    return "" if len(walked) == len(both) else f"another loop of the nest runs over {walked[0]}"


def not_by_rows(stmt: Stmt, pair: Pair) -> str:
    """Why ``stmt`` does not do the same for each row of ``pair.inner`` by itself, or ""."""
    both = (pair.outer, pair.inner)
    match stmt:
        case Issue(view=view):
            return f"loads of {view.buffer.name} run ahead already: join before"
        case Load(view=view) | Store(view=view):
            for used, axis in zip(view.dims, view.buffer.axes, strict=True):
                if axis.per_block and (used in both or axis.dim in both):
                    return f"{view.buffer.name} has an entry per block of {axis.dim}"
            if pair.inner in view.runs and pair.inner not in named_in(stmt)[-1].axes:
                return f"{view.buffer.name} has one entry for a block of {pair.inner}"
        case Iota(target, dim) | BlockOf(target, dim) if dim in both:
            return f"{target.name} holds positions along {dim}"
        case Let(target, op, args) if any(pair.inner in arg.axes for arg in args):
            if isinstance(op, Relabel):
                return f"{target.name} has {op.old} under another name"
            if pair.inner not in target.axes:
                return f"{target.name} is made of all rows of {pair.inner}"
    lanes = next((tile for tile in named_in(stmt) if pair.inner in tile.per_lane), None)
    return "" if lanes is None else f"{lanes.name} has an entry per lane of {pair.inner}"
