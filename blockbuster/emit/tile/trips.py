"""The numbers behind a tile program: sizes of dims (from its arrays), block sizes, trip counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from blockbuster.emit.tile.dataflow import defined, operands
from blockbuster.emit.tile.each_nest import Body, Same
from blockbuster.emit.tile.program import (
    ACCESSES,
    BlockOf,
    For,
    Iota,
    Let,
    Nest,
    Stmt,
    TileProgram,
    statements,
)
from blockbuster.ir.expr import sizes_in
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.sizes import bind_sizes
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import Strided, shares_of


@lru_cache(maxsize=512)  # sizes, blocks and names of a program each ask for it
def dims_of(program: TileProgram) -> tuple[Dim, ...]:
    """Every dim of ``program``, each once: of loops, arrays, tiles and expressions.

    The extent of an axis that is only read and written in slices, or split, is none of them.
    """
    return tuple(dict.fromkeys(_dims(program)))


def sized(program: TileProgram) -> tuple[Dim, ...]:
    """The size classes of all dims, and of those that have a size and nothing else."""
    return _sized(program, dims_of(program))


def _sized(program: TileProgram, dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
    found = dict.fromkeys(map(size_class, dims))
    for rule in program.rules:
        found.update(dict.fromkeys((rule.dim, *rule.length.dims)))
    for buffer in (*program.inputs, *program.outputs):
        found.update(dict.fromkeys(size_class(a.dim) for a in buffer.axes if a.dim is not None))
    return tuple(found)


def named(program: TileProgram) -> tuple[Dim, ...]:
    """The dims that may be given a size, as they are written and as size classes."""
    own = dims_of(program)
    dims = dict.fromkeys((*own, *_sized(program, own)))
    return tuple(dict.fromkeys((*dims, *map(size_class, dims))))


@lru_cache(maxsize=1024)
def _strided_in(body: Same[Body]) -> tuple[tuple[str, int], ...]:
    """The axes of arrays (by name and position) that some access reads strided."""
    views = (stmt.view for stmt in statements(body.one) if isinstance(stmt, ACCESSES))
    return tuple(
        (view.buffer.name, at)
        for view in views
        for at, axis in enumerate(view.dims)
        if isinstance(axis, Strided)
    )


def _dims(program: TileProgram) -> Iterator[Dim]:
    strided = {axis for nest in program.nests for axis in _strided_in(Same(nest.body))}
    for buffer in (*program.inputs, *program.outputs, *program.workspaces):
        for at, axis in enumerate(buffer.axes):
            if axis.dim is not None and (buffer.name, at) not in strided:
                yield axis.dim
    for nest in program.nests:
        yield from dims_in(nest)


def dims_in(nest: Nest) -> tuple[Dim, ...]:
    """Every dim of loops, tiles, accesses and expressions of ``nest``, each once."""
    return tuple(dict.fromkeys((*nest.grid, *_dims_in(Same(nest.body)))))


def walked_in(nest: Nest) -> tuple[Dim, ...]:
    """The same without those of which only the size is read: they need no blocks."""
    return tuple(dict.fromkeys((*nest.grid, *_walked_in(Same(nest.body)))))


def joined_in(nest: Nest) -> tuple[Dim, ...]:
    """The dims of ``nest`` that run along several axes of an array each."""
    return _joined_in(Same(nest.body))


@lru_cache(maxsize=1024)
def _joined_in(body: Same[Body]) -> tuple[Dim, ...]:
    views = (stmt.view for stmt in statements(body.one) if isinstance(stmt, ACCESSES))
    return tuple(dict.fromkeys(dim for view in views for dim, _ in shares_of(view.dims)))


@lru_cache(maxsize=1024)
def _walked_in(body: Same[Body]) -> tuple[Dim, ...]:
    return tuple(dict.fromkeys(dim for stmt in statements(body.one) for dim in _walked(stmt)))


@lru_cache(maxsize=1024)  # asked of the same bodies by several moves
def _dims_in(body: Same[Body]) -> tuple[Dim, ...]:
    found: dict[Dim, None] = {}
    for stmt in statements(body.one):
        found.update(dict.fromkeys(_walked(stmt)))
        if isinstance(stmt, Let) and isinstance(stmt.op, Pointwise):
            found.update(dict.fromkeys(sizes_in(stmt.op.expr)))
    return tuple(found)


def _walked(stmt: Stmt) -> Iterator[Dim]:
    """The dims of a statement's loop, tiles and access."""
    tile = defined(stmt)
    for used in (*operands(stmt), *((tile,) if tile else ())):
        yield from used.axes
    if isinstance(stmt, (For, Iota, BlockOf)):
        yield stmt.dim
    elif isinstance(stmt, ACCESSES):
        yield from stmt.view.runs


def bound_sizes(
    program: TileProgram,
    shapes: Mapping[str, tuple[int, ...]],
    sizes: Mapping[Dim, int] | None = None,
) -> dict[Dim, int]:
    """The size of each size class, from ``sizes`` and the shapes of the inputs, which must agree.

    Raises ValueError if they do not, or if a size shows nowhere.
    """
    arrays = [(b.name, [axis.dim for axis in b.axes]) for b in program.inputs]
    return bind_sizes(arrays, shapes, program.rules, sizes, needed=sized(program))


def bound_blocks(
    program: TileProgram, sizes: Mapping[Dim, int], block_sizes: Mapping[Dim, int] | None = None
) -> dict[Dim, int]:
    """The block size of each dim: as given for it or its class, 1 if list-only, else its size."""
    given = block_sizes or {}
    bound: dict[Dim, int] = {}
    for dim in dims_of(program):
        name = size_class(dim)
        single = name in program.units
        size = max(sizes[name], 1)
        bound[dim] = 1 if single else given.get(dim, given.get(name, size))
        if dim in program.whole:
            bound[dim] = max(bound[dim], size)
        if bound[dim] < 1:
            raise ValueError(f"block size of {dim} is {bound[dim]}, expected at least 1")
    return bound


def blocks_in(nest: Nest, blocks: Mapping[Dim, int]) -> dict[Dim, int]:
    """The block size of each dim in ``nest``: as it cuts the dim, else as ``blocks`` says.

    A dim of which each block is a number of pieces has a whole number of them, at least one.
    """
    found = {**blocks, **{block.dim: block.lanes for block in nest.blocks}}
    for pieces, joined, piece in pieces_in(nest):
        found[pieces] = max(1, found[joined] // found[piece])
        found[joined] = found[pieces] * found[piece]
    return found


def pieces_in(nest: Nest) -> tuple[tuple[Dim, Dim, Dim], ...]:
    """The dims of ``nest`` whose elements are pieces of another, that one, and that of a piece."""
    return _pieces_in(Same(nest.body))


@lru_cache(maxsize=1024)
def _pieces_in(body: Same[Body]) -> tuple[tuple[Dim, Dim, Dim], ...]:
    found: dict[tuple[Dim, Dim, Dim], None] = {}
    for loop in statements(body.one):
        if isinstance(loop, For) and loop.within:
            joined, piece = loop.within
            found[loop.dim, joined, piece] = None
    return tuple(found)
