"""The workspaces that a tile program writes between its nests: names, shapes and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.program import Buffer, Chunks, Store, TileProgram, statements
from blockbuster.ir.types import Dim, size_class

Dims = frozenset[Dim]


@dataclass(frozen=True)
class Between:
    """Workspaces over the same dims: what some nests write and later ones read.

    ``names`` are the values' in the user's words, ``shape`` is that of the largest, ``bytes`` those
    of all. ``chunks``: the loop whose chunks left them as partial results, if one did.
    """

    dims: Dims
    names: tuple[str, ...]
    shape: tuple[int, ...]
    bytes: int
    chunks: Chunks | None = None

    @property
    def words(self) -> str:
        """The workspace and its size, in words."""
        size = " x ".join(map(str, self.shape)) or "1"
        return f"{size} ({', '.join(self.names)}; {in_bytes(self.bytes)})"

    @property
    def partial(self) -> str:
        """Why chunks write it; "" for what is no partial result."""
        if self.chunks is None:
            return ""
        return f"partial results of {self.chunks.count} chunks of {self.chunks.dim} side by side"


def in_bytes(number: int) -> str:
    """A number of bytes in words.

    >>> in_bytes(33_554_432), in_bytes(980)
    ('33.6 MB', '980 bytes')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"


def dims_between(program: TileProgram) -> dict[Dims, list[Buffer]]:
    """The workspaces of a program by their dims."""
    found: dict[Dims, list[Buffer]] = {}
    for buffer in program.workspaces:
        dims = frozenset(size_class(axis.dim) for axis in buffer.axes if axis.dim is not None)
        found.setdefault(dims, []).append(buffer)
    return found


def between(
    program: TileProgram, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int]
) -> tuple[Between, ...]:
    """The workspaces that a program with dtypes stores between its nests, the largest first.

    ``sizes`` (by size class) are complete, chunks included; ``blocks``: lanes by dim or size class.
    """
    counted = {dim: chunks for chunks in program.chunks for dim in (chunks.number, chunks.lanes)}
    words = words_of(program)
    found = []
    for dims, buffers in dims_between(program).items():
        shapes = {buffer: _shape(buffer, sizes, blocks) for buffer in buffers}
        found.append(
            Between(
                dims,
                tuple(dict.fromkeys(_name(buffer, words) for buffer in buffers)),
                max(shapes.values(), key=prod),
                sum(prod(shape) * width(buffer.dtype) for buffer, shape in shapes.items()),
                next((counted[dim] for dim in counted if dim in dims), None),
            )
        )
    return tuple(sorted(found, key=lambda one: -one.bytes))


def _shape(buffer: Buffer, sizes: Mapping[Dim, int], blocks: Mapping[Dim, int]) -> tuple[int, ...]:
    """The extents of a workspace: an axis may have one entry for each block of its dim."""
    shape = []
    for axis in buffer.axes:
        size = 1 if axis.dim is None else sizes[size_class(axis.dim)]
        if axis.dim is not None and axis.per_block:
            lanes = blocks.get(axis.dim, blocks.get(size_class(axis.dim), size))
            size = -(-size // max(lanes, 1))
        shape.append(size)
    return tuple(shape)


def width(dtype: str) -> int:
    """The bytes of an element in memory."""
    return MEMORY[dtype].bytes if dtype in MEMORY else np.dtype(dtype).itemsize


def words_of(program: TileProgram) -> dict[Buffer, str]:
    """The user's words for what is stored in arrays, where there are any."""
    found: dict[Buffer, str] = {}
    for nest in program.nests:
        for stmt in statements(nest.body):
            if isinstance(stmt, Store) and stmt.value.hint:
                found.setdefault(stmt.view.buffer, stmt.value.hint)
    return found


def _name(buffer: Buffer, words: Mapping[Buffer, str]) -> str:
    """What a workspace holds, in the user's word if there is one, with its axes."""
    axes = ", ".join(
        f"blocks of {axis.dim}" if axis.per_block else str(axis.dim or 1) for axis in buffer.axes
    )
    return f"{words.get(buffer, buffer.name)}[{axes}]"
