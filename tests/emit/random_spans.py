"""Random spans for loops of random tile programs: bounds of indices, sizes and constants."""

from dataclasses import replace

from blockbuster.emit.tile.dataflow import fresh_names
from blockbuster.emit.tile.program import (
    FIRST,
    LAST,
    BlockOf,
    For,
    Iota,
    Let,
    Store,
    Tile,
    statements,
)
from blockbuster.emit.tile.typed import retyped
from blockbuster.ir.expr import Arg, Size, call
from blockbuster.ir.ops import Pointwise


class Spanning:
    """Puts spans on some serial loops that store nothing: what a span leaves out may be missing."""

    def __init__(self, program, random, share=0.7):
        self.random, self.share = random, share
        self.names = fresh_names(program)
        self.made = 0

    def body(self, body, around=()):
        """``body`` with spans on some of its loops, inside loops over ``around``.

        No mask depends on the number of a chunk: inside one, its blocks are those of the dim.
        """
        out = []
        for stmt in body:
            if not isinstance(stmt, For):
                out.append(stmt)
                continue
            inside = (*(dim for dim in around if dim != stmt.chunk), stmt.dim)
            stmt = replace(stmt, body=self.body(stmt.body, inside))
            if self.fits(stmt) and self.random.random() < self.share:
                before, span = self.span(stmt.dim, around)
                out += before
                stmt = replace(stmt, span=span)
                self.made += 1
            out.append(stmt)
        return tuple(out)

    def fits(self, loop):
        stores = any(isinstance(stmt, Store) for stmt in statements(loop.body))
        return not (loop.parallel or loop.span or loop.chunk or stores)

    def span(self, dim, around):
        """Statements that make bounds, and these: of one side or of both."""
        before = []
        sides = self.random.choice(((True, False), (False, True), (True, True)))
        return before, tuple(self.bound(dim, around, before) if side else None for side in sides)

    def bound(self, dim, around, before):
        """A number of a block of ``dim``: of a position that some other dim, or its size, gives."""
        at = self.tile()
        if around and self.random.random() < 0.8:
            before.append(
                Iota(at, self.random.choice(around), at=self.random.choice((FIRST, LAST)))
            )
            if self.random.random() < 0.5:
                at = self.let(call(*self.random.choice(SHIFTS)), at, before)
        else:
            expr = call("mul", Size(dim), self.random.choice((0.0, 0.3, 0.5, 1.5)))
            before.append(Let(at, Pointwise(expr, ()), ()))
        block = self.tile()
        before.append(BlockOf(block, dim, at))
        if self.random.random() < 0.5:
            block = self.let(call("add", Arg(0), self.random.choice((-1, 1))), block, before)
        return block

    def let(self, expr, value, before):
        made = self.tile()
        before.append(Let(made, Pointwise(expr, ()), (value,)))
        return made

    def tile(self):
        return Tile(next(self.names), ())


SHIFTS = (
    ("add", Arg(0), 1), ("sub", Arg(0), 2), ("sub", 5, Arg(0)), ("maximum", Arg(0), 2),
    ("minimum", Arg(0), 3), ("mul", Arg(0), 0.5), ("mul", Arg(0), 2), ("neg", Arg(0)),
)  # fmt: skip


def with_spans(scheduled, random, share=0.7):
    """``scheduled``, whose draft has spans on some loops, as if it had been lowered so."""
    spanning = Spanning(scheduled.draft, random, share)
    nests = tuple(replace(n, body=spanning.body(n.body, n.grid)) for n in scheduled.draft.nests)
    draft = replace(scheduled.draft, nests=nests)
    return replace(scheduled, draft=retyped(draft) if draft.dtype else draft)
