"""Cutting a sequence of statements into pieces that share nothing but global memory.

A tile that is made before a cut and read behind it crosses through the array that it is stored in
anyway, or through a workspace. A load or an index vector is repeated where it is read: that moves
the same elements and needs no workspace. The values from which loop bounds are computed are
repeated, too, so numbers of blocks stay integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from blockbuster.emit.tile.dataflow import bounding, defined, folded, operands, reads
from blockbuster.emit.tile.program import (
    WORKSPACE,
    BlockOf,
    Buffer,
    BufferAxis,
    Init,
    Iota,
    Let,
    Load,
    Stmt,
    Store,
    Tile,
    View,
    statements,
)
from blockbuster.ir.types import Dim, size_class

Body = tuple[Stmt, ...]


@dataclass
class Workspaces:
    """The workspaces that a program gets while it is being made, with ``names`` one by one."""

    units: tuple[Dim, ...]
    names: Iterator[str]
    made: list[Buffer] = field(default_factory=list)

    def axis(self, dim: Dim, axes: tuple[Dim, ...]) -> BufferAxis:
        """The axis for ``dim`` of a buffer of such items: one entry per element, or per block."""
        return BufferAxis(dim, per_block=dim not in axes and size_class(dim) not in self.units)

    def new(self, lists: Iterable[Dim], axes: tuple[Dim, ...], dtype: str = "") -> View:
        """A workspace for one item with ``axes`` per iteration of loops over ``lists``.

        Without a ``dtype`` it has none yet: ``typed.py`` gives it that of what is stored in it.
        """
        dims = tuple(dict.fromkeys((*lists, *axes)))
        shape = tuple(self.axis(dim, axes) for dim in dims)
        buffer = Buffer(next(self.names), shape, WORKSPACE, dtype)
        self.made.append(buffer)
        return View(buffer, dims)


def pieces(
    body: Sequence[Stmt], cuts: Sequence[int], *, path: tuple[Dim, ...], spaces: Workspaces
) -> tuple[Body, ...]:
    """``body`` cut before the statements at the positions ``cuts``, inside loops over ``path``.

    before   t1 = load(X[m])  t2 = exp(t1)  |  t3 = add(t2,t1)  store(t3,O[m])
    after    t1 = load(X[m])  t2 = exp(t1)  store(t2,I1[m])
             t1 = load(X[m])  t2 = load(I1[m])  t3 = add(t2,t1)  store(t3,O[m])
    """
    bounds = [0, *cuts, len(body)]
    spans = [tuple(body[start:stop]) for start, stop in pairwise(bounds)]
    homes = _homes(spans)
    again = _made_again(body)
    used = [_used(span, at, homes, again) for at, span in enumerate(spans)]
    foreign = [[t for t in tiles if homes.get(t, at) != at] for at, tiles in enumerate(used)]
    views = {
        s.value: s.view
        for at, span in enumerate(spans)
        for s in span
        if isinstance(s, Store) and homes.get(s.value) == at  # a later span's store is too late
    }
    crossing: dict[Tile, View] = {}
    for tile in dict.fromkeys(chain(*foreign)):
        if tile not in again and tile not in views:
            crossing[tile] = spaces.new(path, tile.axes)
    views.update(crossing)
    moved = set(chain(*foreign)) & set(again)
    inits = _inits(spans, homes)

    def stays(stmt: Stmt, number: int) -> bool:
        """False for what other spans make: an init they fold into, a load that only they read."""
        if isinstance(stmt, Init):
            return homes[stmt.target] == number
        tile = defined(stmt)
        return tile not in moved or tile in used[number]

    return tuple(
        (
            *_brought(foreign[number], again, views),
            *inits[number],
            *(stmt for stmt in span if stays(stmt, number)),
            *(Store(view, tile) for tile, view in crossing.items() if homes[tile] == number),
        )
        for number, span in enumerate(spans)
    )


def _made_again(body: Sequence[Stmt]) -> dict[Tile, Load | Iota | BlockOf | Let]:
    """The statements that may run again elsewhere: loads, indices, and what bounds loops."""
    again: dict[Tile, Load | Iota | BlockOf | Let] = {}
    bounds = bounding(tuple(body))
    for stmt in body:
        match stmt:
            case Load(target) | Iota(target):
                again[target] = stmt
            case BlockOf(target) if target in bounds:
                again[target] = stmt
            case Let(target, _, args) if target in bounds and all(arg in again for arg in args):
                again[target] = stmt
    return again


def _brought(
    tiles: Sequence[Tile], again: Mapping[Tile, Stmt], views: Mapping[Tile, View]
) -> Iterator[Stmt]:
    """What a span has of others: from memory, then what is computed from that, in its order."""
    made = [again.get(tile) or Load(tile, views[tile]) for tile in tiles]
    yield from (stmt for stmt in made if isinstance(stmt, Load | Iota))
    yield from (stmt for stmt in again.values() if isinstance(stmt, BlockOf | Let) and stmt in made)


def _used(
    span: Body, number: int, homes: dict[Tile, int], again: Mapping[Tile, Stmt]
) -> dict[Tile, None]:
    """The tiles that a span reads, itself or in what it makes again."""
    waiting, used = list(reads(span)), dict[Tile, None]()
    for tile in waiting:
        if tile not in used and homes.get(tile, number) != number and tile in again:
            waiting.extend(operands(again[tile]))
        used[tile] = None
    return used


def _homes(spans: Sequence[Body]) -> dict[Tile, int]:
    """The span that makes each tile of this level; an accumulator is made where it is folded."""
    homes = {
        tile: number
        for number, span in enumerate(spans)
        for stmt in span
        if (tile := defined(stmt)) is not None
    }
    for number, span in enumerate(spans):
        for stmt in statements(span):
            homes.update({tile: number for tile in folded(stmt) if tile in homes})
    return homes


def _inits(spans: Sequence[Body], homes: dict[Tile, int]) -> list[list[Stmt]]:
    """For each span, the inits from other spans whose folds are in it."""
    moved: list[list[Stmt]] = [[] for _ in spans]
    for number, span in enumerate(spans):
        for stmt in span:
            if isinstance(stmt, Init) and homes[stmt.target] != number:
                moved[homes[stmt.target]].append(stmt)
    return moved
