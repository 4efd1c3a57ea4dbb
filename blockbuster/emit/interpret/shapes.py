"""The shapes of the arrays that a running tile program allocates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blockbuster.emit.interpret.scope import Scope
from blockbuster.emit.tile.dataflow import views
from blockbuster.emit.tile.program import Buffer, Nest, TileProgram
from blockbuster.emit.tile.trips import blocks_in
from blockbuster.ir.types import Dim


def shape_of(
    program: TileProgram, buffer: Buffer, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int]
) -> tuple[int, ...]:
    """The shape of an array; ``sizes`` by size class, ``blocks`` by dim.

    Raises ValueError if nests differ in how many blocks they make of a dim whose blocks it has.
    """
    scope = Scope(sizes, blocks)
    return tuple(
        _entries(program, buffer, at, scope)
        if axis.per_block
        else 1
        if axis.dim is None
        else scope.size(axis.dim)
        for at, axis in enumerate(buffer.axes)
    )


def _entries(program: TileProgram, buffer: Buffer, at: int, scope: Scope) -> int:
    """How many blocks the nests that access ``buffer`` make of the dim of an axis."""
    found = {
        _trips(program, nest, dim, scope)
        for nest in program.nests
        for view in views(replace(program, nests=(nest,)))
        if view.buffer == buffer and isinstance(dim := view.dims[at], str)
    }
    if len(found) > 1:
        raise ValueError(f"nests differ in how many blocks axis {at} of {buffer.name} has")
    return found.pop() if found else 1


def _trips(program: TileProgram, nest: Nest, dim: Dim, scope: Scope) -> int:
    if dim in program.whole or any(b.dim == dim and b.whole for b in nest.blocks):
        return 1
    return len(replace(scope, blocks=blocks_in(nest, scope.blocks)).steps(dim))
