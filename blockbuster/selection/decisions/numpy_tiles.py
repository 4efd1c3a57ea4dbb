"""Block sizes for NumPy text: as few blocks as keep the tiles in a processor's cache.

A block costs an iteration of a Python loop, so blocks are large; a tile that outgrows the cache
costs memory traffic. The dim to cut is the one whose cutting adds least: elements that are moved
again, statements that run more often, and rows that are cut, so that memory is read in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from blockbuster.emit.closing.hoist import hoist
from blockbuster.emit.closing.lead_first import lead_first
from blockbuster.emit.closing.merge_repeats import merge_repeats
from blockbuster.emit.closing.wide_sums import wide_sums
from blockbuster.emit.closing.wide_tiles import wide_tiles
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops
from blockbuster.emit.schedule.finish_rows import finish_rows
from blockbuster.emit.schedule.narrow import all_narrowed
from blockbuster.emit.tile.dataflow import accessed, defined
from blockbuster.emit.tile.extents import Extents, extents_of
from blockbuster.emit.tile.program import For, Load, Stmt, Store, Tile, TileProgram, View
from blockbuster.emit.tile.trips import dims_of
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.priors import PRIORS

Blocks = dict[Dim, int]


def numpy_tiling(program: TileProgram, sizes: Mapping[Dim, int]) -> Blocks:
    """The block size of each size class; ``sizes`` has them all.

    >>> from blockbuster.emit.tile.lower import lower_to_tiles
    >>> from blockbuster.ir.parse import parse
    >>> graph = parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x)  yield y } return Y }")
    >>> numpy_tiling(lower_to_tiles(graph), {"M": 1_000_000})
    {'M': 250000}
    """
    program = hoist(program)
    found = [entry for nest in program.nests for entry in _tiles(nest.body, nest.grid)]
    fixed = {size_class(d) for tile, loops in found for d in tile.axes if d not in loops}
    tiles = [tile for tile, _ in found]
    blocks = {size_class(d): max(sizes[size_class(d)], 1) for d in dims_of(program)}
    blocks |= dict.fromkeys(program.units, 1)
    while True:
        largest = max(tiles, key=lambda tile: elements(tile, blocks), default=Tile("", ()))
        classes = dict.fromkeys(map(size_class, largest.axes))
        free = [d for d in classes if blocks[d] > 1 and d not in fixed]
        if elements(largest, blocks) <= PRIORS.numpy_tile_elements or not free:
            return blocks
        cuts = [{**blocks, dim: -(-blocks[dim] // 2)} for dim in free]
        blocks = min(cuts, key=lambda cut: (_cost(program, sizes, cut), max(cut.values())))


def numpy_schedule(
    program: TileProgram, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int]
) -> TileProgram:
    """``program`` without the loops over dims that are one block, and what they repeated.

    Loops leave out what masks empty. Rows are finished and leads go first, as in a kernel with
    float32 results: on the CPU arithmetic is float32 or float64 whatever the results are. Where all
    tiles are small, they may be float64 (wide_tiles.py).
    """
    program = hoist(_without_unit_loops(program, sizes, blocks))
    program = all_narrowed(finish_rows(program, program.units))
    program = wide_sums(lead_first(merge_repeats(hoist(program))))
    tiles = (tile for nest in program.nests for tile, _ in _tiles(nest.body, ()))
    few = all(elements(tile, blocks) <= PRIORS.numpy_few_elements for tile in tiles)
    return wide_tiles(program) if few else program


def _without_unit_loops(
    program: TileProgram, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int]
) -> TileProgram:
    dims = (d for d in dims_of(program) if size_class(d) not in program.units)
    whole = tuple(d for d in dims if 0 < sizes[size_class(d)] <= blocks[size_class(d)])
    return drop_unit_loops(program, whole)


def _cost(program: TileProgram, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int]) -> int:
    """What depends on the blocks, in elements: moved and computed, in pieces, by statements."""
    program = merge_repeats(_without_unit_loops(program, sizes, blocks))
    total = 0
    for extents in extents_of(program, sizes, blocks):
        for stmt, loops in extents.walk():
            if isinstance(stmt, For):
                continue
            made = defined(stmt)
            total += PRIORS.numpy_statement_elements * extents.tiles(loops)
            total += extents.elements(made.axes, loops) if made else 0
            if isinstance(stmt, Load | Store):
                tile = accessed(stmt)
                moved = extents.elements(stmt.view.sliced(tile), loops)
                pieces = moved // _piece(stmt.view, tile, extents)
                total += moved + PRIORS.numpy_piece_elements * pieces
    return total


def _piece(view: View, tile: Tile, extents: Extents) -> int:
    """How many elements without gaps a tile has in an array, whose last axis is the fastest."""
    piece = 1
    for dim, axis in zip(reversed(view.dims), reversed(view.buffer.axes), strict=True):
        if dim is None:
            continue
        if not isinstance(dim, str) or axis.per_block or dim not in tile.axes:
            break
        size, block = extents.size(dim), extents.blocks[dim]
        piece *= max(min(size, block), 1)
        if block < size:
            break
    return piece


def elements(tile: Tile, blocks: Mapping[Dim, int]) -> int:
    """The number of elements of a tile."""
    return math.prod(blocks[size_class(dim)] for dim in tile.axes)


def _tiles(
    body: tuple[Stmt, ...], loops: tuple[Dim, ...]
) -> Iterator[tuple[Tile, tuple[Dim, ...]]]:
    """Every tile with the loops around it."""
    for stmt in body:
        tile = defined(stmt)
        if tile is not None:
            yield tile, loops
        if isinstance(stmt, For):
            yield from _tiles(stmt.body, (*loops, stmt.dim))
