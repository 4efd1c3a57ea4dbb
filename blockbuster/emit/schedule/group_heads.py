"""group-heads: elements of a list-only dim become the rows of tiles, in place of another dim.

before   forall g in range(G):                after   forall g in range(G):          (blocks of G)
          forall m in range(M):                        forall m in range(M):   (single elements)
           q = load(Q[g,m,d])   [M, D]                  q = load(Q[g,m,d])   [G, D]
           for n in range(N):                           for n in range(N):
            k = load(K[n,d])    [N, D]                   k = load(K[n,d])    [N, D]
            s = dot(q, k)       [M, N]                   s = dot(q, k)       [G, N]

The query heads of a group read the same keys and values. If M is short, as in decoding, each head
pads its few rows to those of a matrix instruction, and every head reads the keys again. As rows of
one tile, the heads read them once. Costs one program for each element of M.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import PROGRAM, Args, Move
from blockbuster.emit.schedule.block import unlooped
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.schedule.two_parts import on_tiles
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.dataflow import defined, folded, mapped, operands, with_loops
from blockbuster.emit.tile.program import (
    Fold,
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
    statements,
)
from blockbuster.emit.tile.trips import dims_of
from blockbuster.ir.ops import Functional, Pointwise
from blockbuster.ir.types import Dim, size_class

DOT = Functional("dot")
MOST_LANES = 2  # axes of a tile with lanes that printers know


class GroupHeads(Move):
    """Give tiles a list-only dim as their rows, in place of a dim that loops walk in blocks."""

    name: ClassVar[str] = "group-heads"
    takes: ClassVar[str] = PROGRAM
    form: ClassVar[Form] = Form("HEADS for ROWS")

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """Each pair of dims that can, in the order of the program."""
        dims = dims_of(scheduled.draft)
        for heads in (dim for dim in dims if size_class(dim) in scheduled.draft.units):
            for rows in dims:
                if not self.why_not(scheduled, site, heads=heads, rows=rows):
                    yield {"heads": heads, "rows": rows}

    def not_here(
        self, scheduled: Scheduled, site: Site, program: TileProgram, /, **args: Any
    ) -> str:
        """All loops over the two are parallel, and every tile has a place for its new rows."""
        change = Exchange(args["heads"], args["rows"])
        found = (not_grouped(nest, change, program.units) for nest in program.nests)
        return not_two_dims(program, change) or next(filter(None, found), "")

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The program with its tiles' rows exchanged."""
        change, draft = Exchange(args["heads"], args["rows"]), scheduled.draft
        nests = tuple(_grouped(nest, change) for nest in draft.nests)
        return replace(draft, nests=nests, units=change.units(draft.units))


@dataclass(frozen=True)
class Exchange:
    """``heads`` becomes an axis of the tiles that vary with it; ``rows`` gets single elements.

    So do other dims of its size class, of which only copies may have any.
    """

    heads: Dim
    rows: Dim

    def units(self, units: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """The size classes whose blocks have one element after the exchange."""
        left = (dim for dim in units if dim != size_class(self.heads))
        return (*left, size_class(self.rows))

    def is_row(self, dim: Dim | None) -> bool:
        """True for ``rows``, and for dims of as many elements."""
        return dim is not None and size_class(dim) == size_class(self.rows)

    def tile(self, tile: Tile) -> Tile:
        """A tile that varies with ``heads``, which takes the place of ``rows`` or comes first."""
        kept = tuple(dim for dim in tile.axes if not self.is_row(dim))
        if self.heads in tile.axes:  # single elements so far
            return replace(tile, axes=kept)
        at = next((at for at, dim in enumerate(tile.axes) if self.is_row(dim)), 0)
        return replace(tile, axes=(*kept[:at], self.heads, *kept[at:]))


def varying(nest: Nest, heads: Dim) -> dict[Tile, None]:
    """The tiles of ``nest`` with another value for each element of ``heads``."""
    found: dict[Tile, None] = {}
    while True:
        known = len(found)
        for stmt in statements(nest.body):
            made = defined(stmt)
            if made is not None and (_starts(stmt, made, heads) or _any(operands(stmt), found)):
                found[made] = None
            for target, value in _folds(stmt):
                if value in found:
                    found[target] = None
        if len(found) == known:
            return found


def _starts(stmt: Stmt, made: Tile, heads: Dim) -> bool:
    """True if ``stmt`` makes a tile of the current element of ``heads``."""
    match stmt:
        case Load(view=view):
            return heads in view.runs
        case Iota(dim=dim):
            return dim == heads
    return heads in made.axes


def _folds(stmt: Stmt) -> Iterator[tuple[Tile, Tile]]:
    """Each accumulator of a fold with what it becomes different by."""
    if isinstance(stmt, Fold):
        yield stmt.target, stmt.value
        if stmt.onto is not None:
            yield stmt.target, stmt.onto
        for member in stmt.members:
            yield member.target, member.value
            yield from ((member.target, folded(stmt)[number]) for number in member.leads)


def _any(tiles: Sequence[Tile], found: Mapping[Tile, None]) -> bool:
    return any(tile in found for tile in tiles)


def _grouped(nest: Nest, change: Exchange) -> Nest:
    new = {tile: change.tile(tile) for tile in varying(nest, change.heads)}
    return replace(nest, body=mapped(nest.body, lambda stmt: on_tiles(stmt, new)))


# predicates ------------------------------------------------------------------------


def not_two_dims(program: TileProgram, change: Exchange) -> str:
    """Why these two dims of ``program`` cannot change places, whatever its tiles hold, or ""."""
    heads, rows = change.heads, change.rows
    dims = dims_of(program)
    for dim in (heads, rows):
        if dim not in dims:
            return f"no dim {dim} here: {', '.join(dims) or 'none'}"
        same = [d for d in dims if size_class(d) == size_class(dim) and d != dim]
        if same and (dim == heads or not only_copies(program)):
            return f"{dim} and {same[0]} have one size: both would change"
    if size_class(heads) not in program.units:
        return f"{heads} is no list-only dim: its blocks have several elements already"
    if size_class(rows) in program.units:
        return f"the blocks of {rows} have one element already"
    if rows in (*program.whole, *(block.dim for nest in program.nests for block in nest.blocks)):
        return f"{rows} is cut already: group before"
    if program.chunks:
        return "loops run in chunks already: group before"
    return ""


def only_copies(program: TileProgram) -> bool:
    """True if the program computes nothing."""
    found = (stmt for nest in program.nests for stmt in statements(nest.body))
    return all(isinstance(stmt, For | Load | Store) for stmt in found)


def not_grouped(nest: Nest, change: Exchange, units: tuple[Dim, ...]) -> str:
    """Why the tiles of ``nest`` cannot have other rows, or ""."""
    heads = change.heads
    if single := next(filter(change.is_row, unlooped(nest, units)), None):
        return f"no loop runs over {single}, whose elements would be single"
    found = varying(nest, heads)
    after = change.units(units)
    for stmt in statements(nest.body):
        if reason := (
            not_parallel(stmt, change)
            or not_plain(stmt)
            or not_by_element(stmt, change)
            or not_by_rows(stmt, change, found)
        ):
            return reason
    for tile in found:
        made = change.tile(tile)
        if sum(size_class(dim) not in after for dim in made.axes) > MOST_LANES:
            return f"{tile.name} would have lanes along {', '.join(made.axes)}"
    for stmt, loops in with_loops(nest.body):
        outside = heads not in (*nest.grid, *(loop.dim for loop in loops))
        if outside and (new := defined(stmt)) is not None and new in found:
            return f"no loop runs over {heads} where {new.name} is made"
    return ""


def not_parallel(stmt: Stmt, change: Exchange) -> str:
    """Why iterations over the two dims depend on each other, or ""."""
    if not isinstance(stmt, For) or stmt.parallel:
        return ""
    if stmt.dim == change.heads or change.is_row(stmt.dim):
        return f"iterations over {stmt.dim} follow each other"
    return ""


def not_plain(stmt: Stmt) -> str:
    """Why ``stmt`` is of a program that is scheduled already, or ""."""
    if isinstance(stmt, Issue):
        return f"loads of {stmt.view.buffer.name} run ahead already: group before"
    if isinstance(stmt, For) and (stmt.span is not None or stmt.chunk is not None or stmt.within):
        return f"the loop over {stmt.dim} runs over a part of it already: group before"
    return ""


def not_by_element(stmt: Stmt, change: Exchange) -> str:
    """Why an array that ``stmt`` accesses has other entries when blocks of ``rows`` change."""
    if isinstance(stmt, Load | Store):
        for used, axis in zip(stmt.view.dims, stmt.view.buffer.axes, strict=True):
            if axis.per_block and (used == change.rows or change.is_row(axis.dim)):
                return f"{stmt.view.buffer.name} has an entry per block of {change.rows}"
    return ""


def not_by_rows(stmt: Stmt, change: Exchange, found: Mapping[Tile, None]) -> str:
    """Why ``stmt`` cannot be done for rows of ``heads`` and one element of ``rows``, or ""."""
    heads, rows = change.heads, change.rows
    match stmt:
        case Let(target, Functional(), args) if rows not in target.axes:
            if any(rows in arg.axes for arg in args):
                return f"{target.name} is made of all of {rows}"
            if stmt.op == DOT and _any(args, found):
                return f"{target.name} is a dot without rows of {rows}, and differs by {heads}"
        case Let(target, Functional("dot"), (left, right)) if left in found and right in found:
            return f"{target.name} is a dot whose operands both differ by {heads}"
        case Let(target, Functional("dot"), args) if _any(args, found):
            (one,) = (arg for arg in args if arg in found)
            if rows not in one.axes:
                return f"{target.name} is a dot with rows of {rows}, but {one.name} has none"
        case Let(target, Pointwise(), args):
            return _other_order(target, args, change, found)
        case Store(view, value) if value not in found and heads in view.runs:
            return f"{view.buffer.name} is stored for each of {heads}, and all are the same"
        case Fold(target, members=members):
            pairs = [(target, stmt.value), *((m.target, m.value) for m in members)]
            if any((total in found) != (value in found) for total, value in pairs):
                return f"{target.name} is folded with what is one for all of {heads}"
    return ""


def _other_order(
    target: Tile, args: Sequence[Tile], change: Exchange, found: Mapping[Tile, None]
) -> str:
    """Why an operand of arithmetic would have to be transposed, or ""."""
    axes = change.tile(target).axes if target in found else target.axes
    for arg in args:
        own = change.tile(arg).axes if arg in found else arg.axes
        if [dim for dim in axes if dim in own] != [dim for dim in own if dim in axes]:
            return f"{arg.name} would have its axes in another order than {target.name}"
    return ""
