"""Sizes that a kernel has as constants: those of short dims that are one block.

The compiler then knows which lanes lie past the end of such a dim, and leaves out their loads,
their arithmetic and all tests: softmax over 21 channels of 255 x 257 places, in blocks of 32, has
424 instructions instead of 904 and 68 registers instead of 127 (Triton 3.6, sm_90). Each size is
compiled by itself, so long dims, whose sizes may change from call to call, are none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from blockbuster.emit.tile.dataflow import accessed
from blockbuster.emit.tile.program import ACCESSES, Nest, statements
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import Uses
from blockbuster.ir.types import Dim

SHORT = 32
"""The most lanes of such a dim: a class of plans has at most four such sizes."""


def told_sizes(nest: Nest, tiling: Tiling) -> tuple[Dim, ...]:
    """The dims of ``nest`` whose sizes are constants of its kernel.

    Dims along rows of memory are none: the lanes of a warp share such a row, and take as long for
    all of it as for a part. Nor are any where matrix units multiply, which take whole blocks.
    """
    short = [block.dim for block in nest.blocks if block.whole and block.ragged]
    short = [dim for dim in short if tiling.blocks[dim] <= SHORT]
    if not short or Uses(nest, tiling).fewest_rows():
        return ()
    around = [*_around_rows(nest)]
    return tuple(dim for dim in short if dim in around)


def with_told(nest: Nest, tiling: Tiling, size: Callable[[Dim], Any]) -> Tiling:
    """``tiling`` with as many lanes along such dims as they have elements, by ``size``."""
    told = told_sizes(nest, tiling)
    blocks = {**tiling.blocks, **{dim: size(dim) for dim in told}}
    uneven = tuple(dim for dim in tiling.uneven if dim not in told)
    return replace(tiling, blocks=blocks, uneven=uneven) if told else tiling


def _around_rows(nest: Nest) -> Iterator[Dim]:
    """The dims of tiles that are moved, but for the last of each in memory."""
    for stmt in statements(nest.body):
        if isinstance(stmt, ACCESSES):
            yield from stmt.view.sliced(accessed(stmt))[:-1]
