"""What one program takes of its processor, and how many programs run there side by side.

Both figures are estimates of what a compiler makes of a nest: bytes of shared memory
(``emit/tile/shared_memory.py``) and registers of a thread, from the tiles that live at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from blockbuster.costs.operands import LANES
from blockbuster.emit.tile.dataflow import defined, folded, operands
from blockbuster.emit.tile.program import For, Nest, Stmt, Tile, TileProgram
from blockbuster.emit.tile.rings import arrivals
from blockbuster.emit.tile.shared_memory import shared_bytes
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.uses import Uses
from blockbuster.errors import message
from blockbuster.machines.machine import Machine

BASE = 40
"""Registers for addresses, indices and the like."""

WORDS = {"float16": 0.5, "bfloat16": 0.5, "bool": 0.25, "float64": 2.0}
"""Registers of 32 bits for an element; one for dtypes that are not here."""

GRAIN = 8
"""Registers of a thread are given out in multiples of this."""

FEWEST, MOST = 24, 255


@dataclass(frozen=True)
class Footprint:
    """``shared``: bytes of shared memory. ``registers``: of a thread. ``warps``: of a program."""

    shared: int
    registers: int
    warps: int

    def resident(self, machine: Machine) -> int:
        """How many programs a processor runs side by side.

        Raises ValueError if it has not enough shared memory, registers or threads for one.
        """
        limits, threads = machine.limits, self.warps * machine.limits.warp
        if self.shared > limits.shared_per_program:
            raise ValueError(
                message(
                    f"a program needs {self.shared:,} bytes of shared memory, "
                    f"{machine.name} has {limits.shared_per_program:,}",
                    hint="choose smaller blocks or fewer stages",
                )
            )
        registers = -(-min(self.registers, limits.registers_per_thread) // GRAIN) * GRAIN
        found = min(
            limits.programs_per_processor,
            limits.threads_per_processor // threads,
            limits.registers_per_processor // (registers * threads),
            limits.shared_per_processor // max(self.shared + limits.reserved, 1),
        )
        if found < 1:
            raise ValueError(
                message(
                    f"a program of {self.warps} warps with {registers} registers each thread does "
                    f"not fit a processor of {machine.name}",
                    hint="choose fewer warps or smaller blocks",
                )
            )
        return found


def footprint(program: TileProgram, nest: Nest, target: str) -> Footprint:
    """The footprint of a program of the grid of ``nest``, compiled for ``target``."""
    return Footprint(shared_bytes(program, nest, target), registers(program, nest), nest.warps)


def registers(program: TileProgram, nest: Nest) -> int:
    """Registers of a thread: the most words that live at once, and some for addresses.

    What a loop reads of tiles made outside lives until it ends. An operand that dies where a tile
    of its axes is made gives its registers to that tile. What only dots read is in shared memory.
    """
    tiling = tiling_of(program, nest)
    uses, threads = Uses(nest, tiling), nest.warps * LANES
    live = _Lives(nest)
    arrived = {tile for tile, _ in arrivals(nest.body) if uses.only_in_dots(tile)}
    words = {tile: 0.0 if tile in arrived else _words(tile, tiling) for tile in live.made}
    most = max((sum(map(words.__getitem__, held)) for held in live.held()), default=0.0)
    return int(max(FEWEST, min(MOST, BASE + most / threads)))


def _words(tile: Tile, tiling: Tiling) -> float:
    return WORDS.get(tile.dtype, 1.0) * prod(tiling.block(dim) for dim in tile.axes)


class _Lives:
    """From which statement up to which the tiles of a nest live, in the order of its text."""

    def __init__(self, nest: Nest) -> None:
        self.order: list[tuple[Stmt, tuple[int, ...]]] = []
        self.ends: dict[int, int] = {}
        self._number(nest.body, ())
        self.made: dict[Tile, int] = {}
        self.last: dict[Tile, int] = {}
        for at, (stmt, loops) in enumerate(self.order):
            for tile in (*operands(stmt), *folded(stmt)):
                self._read(tile, at, loops)
            made = defined(stmt)
            if made is not None:
                self.made[made] = self.last[made] = at

    def _number(self, body: tuple[Stmt, ...], loops: tuple[int, ...]) -> None:
        for stmt in body:
            at = len(self.order)
            self.order.append((stmt, loops))
            if isinstance(stmt, For):
                self._number(stmt.body, (*loops, at))
                self.ends[at] = len(self.order)

    def _read(self, tile: Tile, at: int, loops: tuple[int, ...]) -> None:
        outside = [loop for loop in loops if loop > self.made.get(tile, at)]
        self.last[tile] = max(self.last.get(tile, 0), self.ends[outside[0]] if outside else at)

    def held(self) -> Iterator[list[Tile]]:
        """The tiles that are held at each statement."""
        for at, (stmt, _) in enumerate(self.order):
            made = defined(stmt)
            axes = set(made.axes) if made else None
            yield [
                tile
                for tile, first in self.made.items()
                if first <= at < self.last[tile]
                or tile == made
                or (self.last[tile] == at and first < at and set(tile.axes) != axes)
            ]
