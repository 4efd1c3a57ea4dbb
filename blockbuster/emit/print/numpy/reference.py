"""The reference of an emitted file: a block program as a NumPy function of whole arrays.

Every dim is one block, so loops are left over list-only dims alone. An array between two loops is
the value that fills it, and a view or a transpose is written where it is read:

    t3 = q @ k.T
    t7 = np.exp(t3 * 0.125)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
from blockbuster.ir.types import size_class


def reference_text(program: Graph | TileProgram, name: str = "reference") -> str:
    """A module's source with a plain function of whole arrays, one argument per source.

    Returns one array, or a tuple of several. Dims that show in no argument are keyword arguments.
    """
    tiles = lower_to_tiles(program) if isinstance(program, Graph) else program
    dims = (dim for dim in dims_of(tiles) if size_class(dim) not in tiles.units)
    tiles = drop_unit_loops(tiles, tuple(dims))
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
    read, kept = set(re.findall(r"\w+", "\n".join(body))), list[str]()
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
        super().__init__(program, padded=False, terse=True)
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
            if not scope.loops and buffer.space == INPUT and not self.index(stmt.view, tile, scope):
                return tile, self.names[buffer] + order
        return None, ""


def _plain(text: str) -> str:
    """``text`` without transposes that undo each other."""
    return text.replace(".T.T", "")


def _filled_at_once(program: TileProgram) -> dict[Buffer, None]:
    """The arrays that one statement fills outside all loops, and others read in the same way."""
    stores: dict[Buffer, int] = {}
    parts: dict[Buffer, None] = {}
    for stmt, looped in _accesses(program):
        buffer, tile = stmt.view.buffer, stmt.value if isinstance(stmt, Store) else stmt.target
        stores[buffer] = stores.get(buffer, 0) + isinstance(stmt, Store)
        if looped or not _is_whole(stmt.view, tile):
            parts[buffer] = None
    return {b: None for b, number in stores.items() if number == 1 and b not in parts}


def _is_whole(view: View, tile: Tile) -> bool:
    """True if a tile is all of an array; an axis of extent 1 may lack if nobody else sees it."""
    inner = view.buffer.space == WORKSPACE
    axes = zip(view.dims, view.buffer.axes, strict=True)
    return all(
        inner if axis.dim is None or axis.per_block else dim in tile.axes for dim, axis in axes
    )


def _accesses(program: TileProgram) -> Iterator[tuple[Load | Store, bool]]:
    """Every load and store, and whether a loop is around it."""

    def walk(body: tuple[Stmt, ...], looped: bool) -> Iterator[tuple[Load | Store, bool]]:
        for stmt in body:
            if isinstance(stmt, For):
                yield from walk(stmt.body, True)
            elif isinstance(stmt, Load | Store):
                yield stmt, looped

    for nest in program.nests:
        yield from walk(nest.body, bool(nest.grid))
