"""The loop bounds of a running tile program as numbers, whatever the semantics.

A semantics may hold an index as a residue, or as the degree of a term, but a loop needs the number.
So the values from which bounds are computed are computed a second time, in floating point. The
semantics is asked only for values from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from blockbuster.emit.interpret.frame import Frame
from blockbuster.emit.interpret.memory import Hazard, Index, Path
from blockbuster.emit.interpret.scope import Scope
from blockbuster.emit.tile.chains import chain_of
from blockbuster.emit.tile.dataflow import bounding
from blockbuster.emit.tile.program import FAR, Buffer, For, Let, Tile, TileProgram, View
from blockbuster.interp.layout import Array


class Bounds:
    """The values that bounds in ``program`` depend on; ``held`` are the semantics' values of tiles.

    ``held``, and ``loaded`` for an element in memory, raise Refused where that is no number.
    """

    def __init__(
        self,
        program: TileProgram,
        held: Callable[[Tile, Frame], Array],
        loaded: Callable[[Buffer, Index, Path], Array],
    ) -> None:
        self._tiles = {tile for nest in program.nests for tile in bounding(nest.body)}
        self._held, self._loaded = held, loaded

    def note(self, tile: Tile, numbers: Array, frame: Frame) -> None:
        """Keep the numbers of ``tile``, if a bound depends on them."""
        if self._tiles and tile in self._tiles:
            frame.numbers[tile] = numbers

    def note_let(self, stmt: Let, frame: Frame, value: Callable[[list[Array]], Array]) -> None:
        """Keep what an operator makes of numbers, if a bound depends on it and they are known."""
        if not self._tiles:
            return
        if stmt.target in self._tiles and all(arg in frame.numbers for arg in stmt.args):
            frame.numbers[stmt.target] = value([frame.numbers[arg] for arg in stmt.args])

    def of(self, tile: Tile, frame: Frame) -> Array:
        """The numbers in ``tile``."""
        known = frame.numbers.get(tile)
        return self._held(tile, frame) if known is None else known

    def within(self, loop: For, steps: Sequence[int], frame: Frame) -> Sequence[int]:
        """The ``steps``, first elements of blocks, that the span or chain of ``loop`` holds."""
        if loop.span is None:
            return steps
        begin, end = (None if tile is None else self._number(tile, frame) for tile in loop.span)
        lanes = frame.scope.blocks[loop.dim]
        if (chain := chain_of(loop)) is not None:
            assert begin is not None
            assert end is not None
            return self._along(loop, chain, (begin, int(end)), frame.scope)
        return [
            step
            for step in steps
            if (begin is None or begin <= step // lanes) and (end is None or step // lanes < end)
        ]

    def _along(self, loop: For, chain: View, span: tuple[float, int], scope: Scope) -> list[int]:
        """The first elements of as many blocks as ``span`` says, from its block on."""
        number, lanes, found = span[0], scope.blocks[loop.dim], list[int]()
        for _ in range(span[1]):
            if number * lanes not in scope.steps(loop.dim):
                raise Hazard(f"the loop over {loop.dim} goes to block {number:g}, which is none")
            found.append(int(number) * lanes)
            here = scope.inside(loop.dim, found[-1], scope.path)
            position = self._loaded(chain.buffer, here.place(chain, Tile("", ())), here.path)
            number = float(blocks_at(position, lanes))
        return found

    def _number(self, tile: Tile, frame: Frame) -> float:
        if tile.axes:
            raise Hazard(f"{tile.name} is no single number")
        return float(self.of(tile, frame))


def blocks_at(positions: Array, lanes: int) -> Array:
    """The numbers of the blocks that hold ``positions``."""
    near = np.clip(np.where(np.isnan(positions), -FAR, positions), -FAR, FAR)
    return np.asarray(np.floor(near / lanes))
