"""The reference of an emitted file: a block program as a NumPy function of whole arrays.

Every dim is one block, so the only loops are over list-only dims, such as those of batches. An
array between two loops is replaced by the value that fills it, and a view or a transpose is written
where it is read:

    t3 = q @ k.T
    t7 = np.exp(t3 * 0.125)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from blockbuster.emit.print.numpy.merged_loops import Places, looped_axes, merged_loops
from blockbuster.emit.print.numpy.places import Scope, permuted
from blockbuster.emit.print.numpy.text import Text
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops
from blockbuster.emit.tile.dataflow import renamed
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import (
    INPUT,
    WORKSPACE,
    Buffer,
    For,
    Let,
    Load,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
)
from blockbuster.emit.tile.trips import dims_of
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import in_order
from blockbuster.ir.ops import Relabel, Transpose
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import is_padded

Scopes: TypeAlias = tuple[int, ...]
"""Which loops of a program are around a statement; empty outside all of them."""

Use: TypeAlias = tuple[Places, Scopes]
"""Along which axes an array depends on loops, and on which."""


def reference_text(program: Graph | TileProgram, name: str = "reference") -> str:
    """A module's source with a plain function of whole arrays, one argument per source.

    Returns one array, or a tuple of several. Dims that show in no argument are keyword arguments.
    """
    tiles = lower_to_tiles(program) if isinstance(program, Graph) else program
    dims = (dim for dim in dims_of(tiles) if size_class(dim) not in tiles.units)
    tiles = merged_loops(drop_unit_loops(tiles, tuple(dims)))
    printer = _WholeArrays(tiles)
    shapes, missing = printer.shapes()
    body = list(printer.body())
    arguments = [printer.names[b] for b in tiles.inputs]
    options = "".join(f", {size}" for size in missing)
    names = ", ".join(printer.names[b] for b in tiles.outputs)
    filled = (b for b in (*tiles.outputs, *tiles.workspaces) if b not in printer.values)
    body = [*(printer.allocation(b, "np.empty") for b in filled), *body]
    results = ", ".join(printer.values.get(b, printer.names[b]) for b in tiles.outputs)
    lines = [
        "@np.errstate(all='ignore')",
        f"def {name}({', '.join(arguments)}, *{options}, dtype=np.float64):",
        f'    """{names} for whole arrays {", ".join(arguments)}."""',
        *(f"    {a} = np.asarray({a}, dtype)" for a in arguments),
        *_needed(shapes, body),
        *body,
        f"    return {results}",
    ]
    return printer.module(lines)


def _needed(shapes: list[str], body: list[str]) -> list[str]:
    """The lines of ``shapes`` whose names are read by ``body`` or by a later one of them."""
    code = "\n".join(line.partition("  #")[0] for line in body)  # comments quote the user's lines
    read, kept = set(re.findall(r"\w+", code)), list[str]()
    for line in reversed(shapes):
        name, _, value = line.strip().partition(" = ")
        if name in read:
            read.update(re.findall(r"\w+", value))
            kept.insert(0, line)
    return kept


class _WholeArrays(Text):
    """``values``: the texts of arrays that one statement fills, which need no memory of their own.

    They are known when the body has been printed.
    """

    def __init__(self, program: TileProgram) -> None:
        super().__init__(program, terse=True)
        self.values: dict[Buffer, str] = {}
        self._filled = _filled_at_once(program)
        self._texts: dict[Tile, Tile] = {}

    def shapes(self) -> tuple[list[str], tuple[str, ...]]:
        """Sizes read from the arguments' shapes, block sizes of list-only dims; sizes not shown."""
        found: dict[str, str] = {}
        for buffer in self._program.inputs:
            for position, axis in enumerate(buffer.axes):
                if axis.dim is not None:
                    shape = f"{self.names[buffer]}.shape[{position}]"
                    found.setdefault(self._size(axis.dim), shape)
        lines = [f"    {name} = {text}" for name, text in found.items()]
        shown = [dim for dim, name in self._sizes.items() if name in found]
        for rule in in_order(self._program.rules, shown):
            if rule.exact and self._sizes[rule.dim] not in found:
                found[self._sizes[rule.dim]] = text = rule.length.python(self._size)
                lines.append(f"    {self._sizes[rule.dim]} = {text}")
        units = (d for d in self._dims if d not in self._program.whole)
        lines += [f"    {self._blocks[dim]} = 1" for dim in units]
        return lines, tuple(name for name in self._sizes.values() if name not in found)

    def written(self, stmt: Stmt, scope: Scope) -> list[str]:
        """The lines of a statement; none where its value is written where it is read."""
        stmt = renamed(stmt, self._texts)
        if isinstance(stmt, Store) and stmt.view.buffer in self._filled:
            order = permuted(stmt.value.axes, stmt.view.sliced(stmt.value))
            self.values[stmt.view.buffer] = _plain(stmt.value.name + order)
            return []
        target, text = self._view_of(stmt, scope)
        if target is not None:
            self._texts[target] = Tile(_plain(text), target.axes, dtype=target.dtype)
            return []
        return [_plain(line) for line in super().written(stmt, scope)]

    def _loop(self, loop: For) -> list[str]:
        return [f"for {self._at[loop.dim]} in range({self._size(loop.dim)}):"]

    def _view_of(self, stmt: Stmt, scope: Scope) -> tuple[Tile | None, str]:
        """The tile whose value is a view of another, and how that is written."""
        if isinstance(stmt, Let) and isinstance(stmt.op, Relabel | Transpose):
            (given,) = stmt.args
            order = permuted(given.axes, stmt.target.axes)
            return stmt.target, given.name + (order if isinstance(stmt.op, Transpose) else "")
        if isinstance(stmt, Load):
            buffer, tile = stmt.view.buffer, stmt.target
            order = permuted(stmt.view.sliced(tile), tile.axes)
            if buffer in self._filled:
                return tile, self.values[buffer] + order
            index = self.index(stmt.view, tile, scope)
            padded = any(map(is_padded, stmt.view.dims))
            if buffer.space == INPUT and not padded and _is_item(index):
                return tile, self.names[buffer] + re.sub(r"(, :)+\]$", "]", index) + order
        return None, ""


def _plain(text: str) -> str:
    """``text`` without transposes that undo each other."""
    return text.replace(".T.T", "")


def _is_item(index: str) -> bool:
    """True for a place in an array that is short enough to be written where it is read."""
    return re.fullmatch(r"(\[(:|[A-Za-z]\w*|0)(, (:|[A-Za-z]\w*|0))*\])?", index) is not None


def _filled_at_once(program: TileProgram) -> dict[Buffer, None]:
    """The arrays whose parts are filled by one statement, and read in the same iteration.

    Of outputs, those that are filled outside all loops.
    """
    stores: dict[Buffer, list[Use | None]] = {}
    loads: dict[Buffer, list[Use | None]] = {}
    for stmt, loops, scope in _accesses(program):
        buffer, places = stmt.view.buffer, looped_axes(stmt, loops)
        tile = stmt.value if isinstance(stmt, Store) else stmt.target
        whole = _is_whole(stmt.view, tile, loops)
        own = whole and (not scope or buffer.space == WORKSPACE)
        use = (places, scope) if own else None
        (stores if isinstance(stmt, Store) else loads).setdefault(buffer, []).append(use)
    return {
        buffer: None
        for buffer, (filled, *more) in stores.items()
        if not more and filled is not None and len(filled[0]) == len(filled[1][1:])
        if all(use and _sees(use, filled) for use in loads.get(buffer, ()))
    }


def _sees(use: Use, filled: Use) -> bool:
    """True if the value that filled an array is the one that is read."""
    return use[0] == filled[0] and filled[1] in ((), use[1])


def _is_whole(view: View, tile: Tile, loops: tuple[Dim, ...]) -> bool:
    """True if a tile is all of an array that an iteration has.

    An axis of extent 1 may lack if nobody else sees it.
    """
    inner = view.buffer.space == WORKSPACE
    axes = zip(view.dims, view.buffer.axes, strict=True)
    return all(
        inner if axis.dim is None or axis.per_block else dim in tile.axes or dim in loops
        for dim, axis in axes
    )


def _accesses(
    program: TileProgram,
) -> Iterator[tuple[Load | Store, tuple[Dim, ...], Scopes]]:
    """Every load and store, the loops around it, and which loops of the program these are.

    Outside all loops, statements of all nests are in one place.
    """
    for number, nest in enumerate(program.nests):
        yield from _within(nest.body, nest.grid, (number,))


def _within(
    body: tuple[Stmt, ...], loops: tuple[Dim, ...], scope: Scopes
) -> Iterator[tuple[Load | Store, tuple[Dim, ...], Scopes]]:
    for at, stmt in enumerate(body):
        if isinstance(stmt, For):
            yield from _within(stmt.body, (*loops, stmt.dim), (*scope, at))
        elif isinstance(stmt, Load | Store):
            yield stmt, loops, scope if loops else ()
