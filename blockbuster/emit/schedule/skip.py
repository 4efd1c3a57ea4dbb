"""skip: a loop goes from block to block past those in which a mask in memory is false everywhere.

before   for n in range(N):                   after   forall m in range(M):
          t2 = load(K[n,:])                            for n in reversed(range(N)):
          t3 = dot(t1,t2)                               store(t5,I1[m,n])     the next such block
          t4 = where(mask, t3, -inf)                    t5 = min(t5, first(n) where mask is true)
          ...                                           t6 += 1 where mask is true
                                                       store(t5,I2[m])        the first one
                                                       store(t6,I3[m])        how many
                                                      ...
                                                      for n in range(t8, t9):
                                                       t2 = load(K[n,:])
                                                       ...
                                                       next n = block(n,load(I1[m,n]))

The iterations that may go are those of ``narrow``: they change nothing. A nest before finds the
others, of the mask's own truth values and of positions, for all heads that share the mask. Saves
all that empty blocks cost; costs the time to read the mask, once if it is constant, and a load
before each block, of which nothing is known ahead: so the loop cannot be cut into chunks or parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import LoopMove
from blockbuster.emit.schedule.conditions import Formulas
from blockbuster.emit.schedule.narrow import Emptying, emptying, looked_into
from blockbuster.emit.schedule.narrow import around as what_is_around
from blockbuster.emit.schedule.scan_nest import ScanWriter
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, of_body, with_body
from blockbuster.emit.tile.dataflow import fresh_names, replaced_by, workspaces_in_order
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.program import (
    FIRST,
    BlockOf,
    Fold,
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
    View,
)
from blockbuster.emit.tile.scans import scans_all
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.expr import Arg, Expr, call, substitute
from blockbuster.ir.ops import Functional, Pointwise
from blockbuster.ir.types import Dim


class Skip(LoopMove):
    """Let a loop run over the blocks only in which masks in memory are true somewhere."""

    name: ClassVar[str] = "skip"

    def not_here(self, scheduled: Scheduled, site: Site, loop: For, /, **args: Any) -> str:
        """Iterations change nothing where truth values in memory say so."""
        if loop.parallel:
            return f"the iterations over {loop.dim} are parallel: each has something to store"
        if loop.span is not None or loop.chunk is not None or loop.down:
            return f"the loop over {loop.dim} runs over other blocks than all in their order"
        if reason := scans_all(loop):
            return reason
        return _not_found(scheduled.draft, site)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The loop along a chain, and the nest before that writes the chain."""
        program, loop, formulas = looked_into(scheduled.draft, site)
        writer = _Writer.of(loop, program, formulas)
        nest, (first, count, behind) = writer.nest()
        made = writer.along(loop, first, count, behind)
        body = replaced_by(program.nests[site.nest - 1].body, loop, made)
        program, at = with_body(program, site, body), site.nest - 1
        nests = (*program.nests[:at], nest, *program.nests[at:])
        spaces = (*program.workspaces, *(view.buffer for view in (first, count, behind)))
        return workspaces_in_order(replace(program, nests=nests, workspaces=spaces))


@of_body
def _not_found(program: TileProgram, site: Site) -> str:
    """Why no nest before the loop at ``site`` can find its idle iterations, or ""."""
    program, loop, formulas = looked_into(program, site)
    found, reason = emptying(loop, formulas)
    return reason or _Writer.of(loop, program, formulas).not_in_memory(found)


def alive(found: Emptying) -> Expr:
    """Where an iteration is not idle: in each set some condition is as it has to be."""
    sets = (
        reduce(
            lambda a, b: call("or", a, b),
            (call("not", one.formula) if one.dead else one.formula for one in dead),
        )
        for dead in found
    )
    return reduce(lambda a, b: call("and", a, b), sets)


class _Writer(ScanWriter):
    """Writes a chain of the blocks in which a mask is true, and the loop that goes along it."""

    found: Emptying

    @classmethod
    def of(cls, loop: For, program: TileProgram, formulas: Formulas) -> _Writer:
        """The writer for ``loop``, a loop of the nest of ``formulas``."""
        made = what_is_around(loop, formulas.nest.body, formulas.nest.grid)
        assert made is not None
        names = fresh_names(program)
        writer = cls(formulas, loop.dim, made.loops, program.units, names, loop.origin)
        writer.found, _ = emptying(loop, formulas)
        return writer

    def not_in_memory(self, found: Emptying) -> str:
        """Why the mask is not one of truth values in memory, and positions, or ""."""
        leaves = self._leaves(alive(found))
        made = [self.formulas.made.get(leaf) for leaf in leaves]
        if not any(isinstance(stmt, Load) for stmt in made):
            return f"no truth values in memory empty iterations over {self.dim}"
        pairs = zip(leaves, made, strict=True)
        known = all(leaf.dtype == TRUTH or isinstance(stmt, Iota) for leaf, stmt in pairs)
        if not known or not _axes(leaves) or self._slice(leaves) is None:
            return f"the mask of the loop over {self.dim} depends on other data than truth values"
        return ""

    def along(self, loop: For, first: View, count: View, behind: View) -> tuple[Stmt, ...]:
        """``loop`` along the chain, behind what says where it begins and how long it is."""
        t = [Tile(next(self.names), ()) for _ in range(5)]
        body = (
            Load(t[3], behind, self.origin),
            BlockOf(t[4], self.dim, t[3], self.origin),
            *loop.body,
            Next(self.dim, t[4]),
        )
        return (
            Load(t[0], first, self.origin),
            Load(t[1], count, self.origin),
            BlockOf(t[2], self.dim, t[0], self.origin),
            replace(loop, body=body, span=(t[2], t[1])),
        )

    def nest(self) -> tuple[Nest, tuple[View, View, View]]:
        """The nest that writes the chain; the places of its first block, length and links."""
        leaves = self._leaves(alive(self.found))
        made = self._slice(leaves)
        assert made is not None
        used = {dim for s in made if isinstance(s, Load) for dim in s.view.runs}
        used |= {s.dim for s in made if isinstance(s, Iota)}
        dims = tuple(dim for dim in self.loops if dim in used)
        first, count = (View(self._buffer(dims), dims or (None,)) for _ in range(2))
        behind = View(self._buffer((*dims, self.dim)), (*dims, self.dim))
        nearest, number = (Tile(next(self.names), ()) for _ in range(2))
        body = (Store(behind, nearest, self.origin), *made, *self._links(nearest, number))
        whole: tuple[Stmt, ...] = (
            Init(nearest, "min"),
            Init(number, "+"),
            For(self.dim, False, body, self.origin, down=True),
            Store(first, nearest, self.origin),
            Store(count, number, self.origin),
        )
        return self.nest_over(dims, whole), (first, count, behind)

    def _links(self, nearest: Tile, number: Tile) -> Iterator[Stmt]:
        """A block with a true element is the nearest one from here on, and one more."""
        mask = alive(self.found)
        leaves = self._leaves(mask)
        axes = _axes(leaves)
        slots = [Arg(leaves.index(leaf) if leaf in leaves else 0) for leaf in self.formulas.leaves]
        tile = Tile(next(self.names), axes)
        chosen = call("where", substitute(mask, slots), 1.0, 0.0)
        yield Let(tile, Pointwise(chosen, axes), leaves, self.origin)
        while tile.axes:
            whole, tile = tile, Tile(next(self.names), tile.axes[:-1])
            yield Let(tile, Functional("row_max"), (whole,), self.origin)
        place, found = (Tile(next(self.names), ()) for _ in range(2))
        yield Iota(place, self.dim, self.origin, FIRST)
        here = call("where", call("gt", Arg(0), 0.0), Arg(1), math.inf)
        yield Let(found, Pointwise(here, ()), (tile, place), self.origin)
        yield Fold(nearest, "min", found, origin=self.origin)
        yield Fold(number, "+", tile, origin=self.origin)


def _axes(leaves: Sequence[Tile]) -> tuple[Dim, ...]:
    """The axes of all leaves, which have them in one order; none if they do not."""
    longest = sorted(leaves, key=lambda leaf: -len(leaf.axes))
    axes = tuple(dict.fromkeys(dim for leaf in longest for dim in leaf.axes))
    in_order = (leaf.axes == tuple(d for d in axes if d in leaf.axes) for leaf in leaves)
    return axes if all(in_order) else ()
