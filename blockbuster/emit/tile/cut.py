"""Cutting a sequence of statements into pieces that share nothing but global memory.

Where a tile made before a cut is read behind it, it crosses through the array that it is stored in
anyway, or through a workspace. A load or an index vector is made again where it is read: that moves
the same elements and needs no workspace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from blockbuster.emit.tile.dataflow import defined, folded, reads
from blockbuster.emit.tile.program import (
    WORKSPACE,
    Buffer,
    BufferAxis,
    Init,
    Iota,
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
    """Names and shapes of workspaces while a program is being made."""

    units: tuple[Dim, ...]
    taken: dict[str, None]
    made: list[Buffer] = field(default_factory=list)

    def axis(self, dim: Dim, axes: tuple[Dim, ...]) -> BufferAxis:
        """The axis for ``dim`` of a buffer of such items: one entry per element, or per block."""
        return BufferAxis(dim, per_block=dim not in axes and size_class(dim) not in self.units)

    def new(self, lists: Iterable[Dim], axes: tuple[Dim, ...], dtype: str = "") -> View:
        """A workspace for one item with ``axes`` per iteration of loops over ``lists``.

        Without a ``dtype`` it has none yet: ``typed.py`` gives it that of what is stored in it.
        """
        number = len(self.made) + 1
        while f"I{number}" in self.taken:
            number += 1
        dims = tuple(dict.fromkeys((*lists, *axes)))
        shape = tuple(self.axis(dim, axes) for dim in dims)
        buffer = Buffer(f"I{number}", shape, WORKSPACE, dtype)
        self.taken[buffer.name] = None
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
    used = [dict.fromkeys(reads(span)) for span in spans]
    foreign = [[t for t in tiles if homes.get(t, at) != at] for at, tiles in enumerate(used)]
    again = {s.target: s for s in body if isinstance(s, Load | Iota)}
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
            *(again.get(tile) or Load(tile, views[tile]) for tile in foreign[number]),
            *inits[number],
            *(stmt for stmt in span if stays(stmt, number)),
            *(Store(view, tile) for tile, view in crossing.items() if homes[tile] == number),
        )
        for number, span in enumerate(spans)
    )


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
