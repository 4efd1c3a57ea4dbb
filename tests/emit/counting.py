"""What a running tile program moves and computes: the oracle of all counts by trip counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field

import numpy as np

from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.observer import Real, TileObserver
from blockbuster.emit.tile.dataflow import accessed
from blockbuster.emit.tile.extents import extents_of
from blockbuster.emit.tile.program import ACCESSES, Fold, Let, Store, TileProgram, View
from blockbuster.interp.layout import Array
from blockbuster.ir.expr import calls
from blockbuster.ir.ops import Functional, Pointwise
from blockbuster.ir.types import Dim, size_class


@dataclass(frozen=True)
class Moved:
    """Traffic between global memory and tiles: elements, and the number of tiles."""

    elements_loaded: int = 0
    elements_stored: int = 0
    tiles_loaded: int = 0
    tiles_stored: int = 0

    def __add__(self, other: Moved) -> Moved:
        return Moved(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


WIDTHS = {"bfloat16": 2}  # bytes of dtypes that NumPy does not have


@dataclass
class TileCounts(TileObserver):
    """Loads and stores per array, by name; dots, and flops as ``GraphTraffic`` counts them.

    ``bytes``: loaded and stored, of the arrays whose elements have a dtype.
    """

    moved: dict[str, Moved] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    dots: int = 0
    flops: dict[str, int] = field(default_factory=lambda: {"matrix": 0, "vector": 0})

    def load(self, view: View, elements: Array) -> None:
        self._move(view, elements, Moved(elements_loaded=elements.size, tiles_loaded=1))

    def store(self, view: View, elements: Array) -> None:
        self._move(view, elements, Moved(elements_stored=elements.size, tiles_stored=1))

    def _move(self, view: View, elements: Array, more: Moved) -> None:
        name, dtype = view.buffer.name, view.buffer.dtype
        self.moved[name] = self.moved.get(name, Moved()) + more
        if dtype:
            width = WIDTHS.get(dtype) or np.dtype(dtype).itemsize
            self.bytes[name] = self.bytes.get(name, 0) + elements.size * width

    def let(self, stmt: Let, args: Sequence[Array], made: Array, real: Real) -> None:
        match stmt.op:
            case Functional("dot"):
                self.dots += 1
                self.flops["matrix"] += 2 * args[0].size * args[1].shape[0]
            case Functional():
                self.flops["vector"] += args[0].size
            case Pointwise(expr):
                self.flops["vector"] += calls(expr) * made.size

    def fold(self, stmt: Fold, values: Sequence[Array], real: Real) -> None:
        self.flops["vector"] += 0 if stmt.ahead else values[0].size
        for member, value in zip(stmt.members, values[1:], strict=True):
            rescaled = calls(member.factor) * (1 if stmt.ahead else 2)
            self.flops["vector"] += (1 + rescaled) * value.size


def count_run(
    program: TileProgram, sizes: Mapping[Dim, int], block_sizes: Mapping[Dim, int] | None = None
) -> TileCounts:
    """The counts of a run at these sizes (by size class), on inputs of ones."""
    counts = TileCounts()
    inputs = {}
    for buffer in program.inputs:
        shape = [1 if axis.dim is None else sizes[size_class(axis.dim)] for axis in buffer.axes]
        inputs[buffer.name] = np.ones(shape)
    run_tiles(program, inputs, sizes, block_sizes, observer=counts)
    counts.moved = {**nothing_moved(program), **counts.moved}
    return counts


def nothing_moved(program: TileProgram) -> dict[str, Moved]:
    arrays = (*program.inputs, *program.outputs, *program.workspaces)
    return {buffer.name: Moved() for buffer in arrays}


def tile_traffic(
    program: TileProgram, sizes: Mapping[Dim, int], block_sizes: Mapping[Dim, int] | None = None
) -> dict[str, Moved]:
    """The same moves by trip counts; views of one array count as one array."""
    moved = nothing_moved(program)
    for extents in extents_of(program, sizes, block_sizes):
        for stmt, loops in extents.walk():
            if isinstance(stmt, ACCESSES):
                tiles = extents.tiles(loops)
                elements = extents.elements(stmt.view.sliced(accessed(stmt)), loops)
                moved[stmt.view.buffer.name] += (
                    Moved(elements_stored=elements, tiles_stored=tiles)
                    if isinstance(stmt, Store)
                    else Moved(elements_loaded=elements, tiles_loaded=tiles)
                )
    return moved
