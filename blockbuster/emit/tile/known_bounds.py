"""Bounds of loops that follow from indices and sizes alone, for all blocks at once.

A known number has a value for each combination of blocks of the dims that it depends on: it is an
array with an axis for each of them. A bound that depends on data is unknown; its loop is assumed to
run over all its blocks, but over one if it runs from the least to the largest of a single place. If
data decide where one loop ends and the next begins, the first is assumed to run over all blocks,
and the second over none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.emit.tile.dataflow import bounding
from blockbuster.emit.tile.program import (
    END,
    LAST,
    BlockOf,
    For,
    Iota,
    Let,
    Nest,
    Span,
    Stmt,
    Tile,
    statements,
)
from blockbuster.errors import EmitError, message
from blockbuster.interp.semantics import Float64
from blockbuster.ir.expr import Arg, Const, Expr, call
from blockbuster.ir.ops import Functional, Op, Pointwise
from blockbuster.ir.types import Dim, size_class

Numbers = NDArray[Any]
LEAST, MOST = Functional("row_min"), Functional("row_max")
BEHIND = call("add", Arg(0), Const(1.0))
"""The number of the block behind one."""
MOST_BLOCKS = 1 << 24
"""The blocks of a dim that are looked at, at most: arrays of 128 MiB."""


@dataclass(frozen=True)
class PerBlock:
    """A value for each combination of blocks of ``dims``, along axes in that order."""

    dims: tuple[Dim, ...]
    values: Numbers

    def over(self, dims: Sequence[Dim]) -> Numbers:
        """The values with an axis for each of ``dims``, of extent 1 where they do not vary."""
        order = [dim for dim in dims if dim in self.dims]
        axes = [self.dims.index(dim) for dim in order]
        kept = np.transpose(self.values, axes)
        shape = iter(kept.shape)
        return kept.reshape([next(shape) if dim in self.dims else 1 for dim in dims])


def merged(*parts: PerBlock) -> tuple[Dim, ...]:
    """The dims that any of ``parts`` depends on, each once."""
    return tuple(dict.fromkeys(dim for part in parts for dim in part.dims))


def going_on(nest: Nest) -> Iterator[tuple[Dim, Span | None]]:
    """The dims and spans of loops that begin where a loop before them ends."""
    ends: dict[tuple[Dim, Tile], None] = {}
    for loop in (stmt for stmt in statements(nest.body) if isinstance(stmt, For)):
        begin, end = loop.span or (None, None)
        if begin is not None and (loop.dim, begin) in ends:
            yield loop.dim, loop.span
        if end is not None:
            ends.setdefault((loop.dim, end))


@dataclass
class KnownBounds:
    """The numbers that bound the loops of a nest, where they are known.

    ``sizes``: by size class. ``blocks``: by dim. A subclass may give expressions for the numbers.
    """

    nest: Nest
    sizes: Mapping[Dim, int]
    blocks: Mapping[Dim, int]
    known: dict[Tile, PerBlock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._going_on = dict.fromkeys(going_on(self.nest))
        wanted = bounding(self.nest.body)
        if wanted:
            self._walk(self.nest.body, self.nest.grid, wanted)

    def firsts(self, dim: Dim) -> Numbers:
        """The first element of each block of ``dim``. Raises EmitError for too many blocks."""
        if self.count(dim) > MOST_BLOCKS:
            what = f"{self.count(dim)} blocks of {dim} are too many to look at each, as masks need"
            most = MOST_BLOCKS * self.blocks[dim]
            raise EmitError(message(what, hint=f"pass a size of at most {most}, or drop the mask"))
        return np.arange(0, self.size(dim), self.blocks[dim])

    def real(self, dim: Dim) -> Numbers:
        """How many elements each block of ``dim`` has."""
        firsts = self.firsts(dim)
        return np.asarray(np.minimum(firsts + self.blocks[dim], self.size(dim)) - firsts)

    def size(self, dim: Dim) -> int:
        """The number of elements of ``dim``."""
        return self.sizes[size_class(dim)]

    def count(self, dim: Dim) -> int:
        """The number of blocks of ``dim``."""
        return -(-self.size(dim) // self.blocks[dim])

    def of(self, loop: For) -> tuple[PerBlock, PerBlock]:
        """The number of the first block that ``loop`` runs over, and that behind the last."""
        count = self.count(loop.dim)
        begin, end = loop.span or (None, None)
        if begin is not None and end is not None and self._is_one_place(begin, end):
            return self._clipped(None, 0, count), self._clipped(None, 1, count)
        unknown = count if (loop.dim, loop.span) in self._going_on else 0
        return self._clipped(begin, unknown, count), self._clipped(end, count, count)

    def trips(self, loop: For) -> float:
        """How many blocks ``loop`` runs over, on average over what is around it; 0 in no block."""
        begin, end = self.of(loop)
        dims = merged(begin, end)
        counts = np.maximum(end.over(dims) - begin.over(dims), 0)
        return float(counts.mean()) if counts.size else 0.0

    def _is_one_place(self, begin: Tile, end: Tile) -> bool:
        """True if blocks run from that of the least to that of the largest entry of one lane."""
        made = {s.target: s for s in statements(self.nest.body) if isinstance(s, BlockOf | Let)}
        match made.get(end):
            case Let(op=Pointwise(expr), args=(last,)) if expr == BEHIND:
                first, behind = (_extreme(made, *at) for at in ((begin, LEAST), (last, MOST)))
                one = first is not None and all(self.blocks.get(d, 1) == 1 for d in first.axes)
                return one and first == behind
        return False

    def _clipped(self, tile: Tile | None, usual: int, count: int) -> PerBlock:
        found = self.known.get(tile) if tile is not None else None
        if found is None:
            return PerBlock((), np.asarray(usual))
        return PerBlock(found.dims, np.clip(np.ceil(found.values), 0, count).astype(int))

    def _walk(self, body: tuple[Stmt, ...], loops: tuple[Dim, ...], wanted: Any) -> None:
        for stmt in body:
            match stmt:
                case For(dim):
                    self._walk(stmt.body, (*loops, dim), wanted)
                case Iota(target) if target in wanted and stmt.at:
                    self.known[target] = self._edge(stmt, loops)
                case BlockOf(target, dim, value) if value in self.known:
                    self.known[target] = self._block_of(self.known[value], dim)
                case Let(target, Pointwise(expr), args) if target in wanted:
                    if all(arg in self.known for arg in args):
                        self.known[target] = self._value(expr, [self.known[arg] for arg in args])

    def _block_of(self, number: PerBlock, dim: Dim) -> PerBlock:
        """The number of the block of ``dim`` in which an index lies."""
        return PerBlock(number.dims, np.floor(number.values / self.blocks[dim]))

    def _value(self, expr: Expr, args: Sequence[PerBlock]) -> PerBlock:
        dims = merged(*args)
        values = [arg.over(dims) for arg in args]
        return PerBlock(dims, np.asarray(Float64.expression(expr, values, self.size)))

    def _edge(self, stmt: Iota, loops: tuple[Dim, ...]) -> PerBlock:
        """The first or last index of each block of a dim; of the whole dim without a loop."""
        size = self.size(stmt.dim)
        if stmt.at == END:
            return PerBlock((), np.asarray(float(size)))
        firsts = self.firsts(stmt.dim) if stmt.dim in loops else np.zeros(1, int)
        lanes = self.blocks[stmt.dim] if stmt.dim in loops else size
        edges = np.minimum(firsts + lanes, size) - 1 if stmt.at == LAST else firsts
        if stmt.dim in loops:
            return PerBlock((stmt.dim,), edges.astype(float))
        return PerBlock((), np.asarray(float(edges[0])))


def _extreme(made: Mapping[Tile, Let | BlockOf], block: Tile, op: Op) -> Tile | None:
    """The tile over whose lanes ``op`` gives the position that ``block`` is the block of."""
    match made.get(block):
        case BlockOf(value=position):
            match made.get(position):
                case Let(op=found, args=(places,)) if found == op:
                    return places
    return None
