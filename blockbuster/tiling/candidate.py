"""A point of the search space: loops on the grid, loops of one thread block, and tile sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from blockbuster.errors import message
from blockbuster.tiling.chain import Chain, Tensor
from blockbuster.tiling.expression import Expression
from blockbuster.tiling.placement import pseudocode


@dataclass(frozen=True)
class Body:
    """The program of one thread block: ``grid`` holds the loops that are bound to thread blocks."""

    grid: tuple[str, ...]
    expression: Expression

    def __str__(self) -> str:
        return str(self.expression)


def bound(chain: Chain, expression: Expression) -> Body:
    """The spatial loops of ``expression`` on the grid, the others in the block.

    Those loops index the output, so that no two blocks add to one tile of it. A loop inside a
    branch stays: it runs behind another one, and has no blocks of its own.
    """
    grid = tuple(loop for loop in chain.output.axes if loop in expression.loops)
    return Body(grid, expression.without(grid))


@dataclass(frozen=True)
class Candidate:
    """A body with the tile size of every loop of the chain, in the order of the chain's loops."""

    body: Body
    tiles: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        tiles = ", ".join(f"{loop} {tile}" for loop, tile in self.tiles)
        return f"{','.join(self.body.grid)}: {self.body}  {tiles}"

    @cached_property
    def tile(self) -> dict[str, int]:
        """The tile size by loop."""
        return dict(self.tiles)

    def extents(self, chain: Chain) -> dict[str, int]:
        """The trip count of every loop; the last tile of a dim may be padded."""
        return {loop: -(-chain.sizes[loop] // tile) for loop, tile in self.tiles}

    def elements(self, tensor: Tensor) -> int:
        """Elements of one tile of ``tensor``."""
        return math.prod(self.tile[axis] for axis in tensor.axes)

    def blocks(self, chain: Chain) -> int:
        """How many thread blocks run."""
        extents = self.extents(chain)
        return chain.batch * math.prod(extents[loop] for loop in self.body.grid)

    def pseudocode(self, chain: Chain) -> str:
        """Its loops and statements as text."""
        grid, expression = self.body.grid, self.body.expression
        return pseudocode(chain, expression, grid=grid, extents=self.extents(chain))


def candidate(chain: Chain, expression: Expression, tiles: Sequence[int]) -> Candidate:
    """``expression`` with a tile size for each loop of the chain, in the chain's order.

    Raises ValueError for other loops than the chain's, or tiles that are not one for each of them.
    """
    if reason := _not_a_candidate(chain, expression, tiles):
        raise ValueError(message(reason, value=expression))
    return Candidate(bound(chain, expression), tuple(zip(chain.loops, tiles, strict=True)))


def _not_a_candidate(chain: Chain, expression: Expression, tiles: Sequence[int]) -> str:
    """Why loops or tiles are not those of ``chain``, or ""."""
    loops = ", ".join(chain.loops)
    if sorted(expression.all) != sorted(chain.loops):
        return f"the chain has the loops {loops}: an expression has each of them once"
    if len(tiles) != len(chain.loops):
        return f"{len(tiles)} tiles for the {len(chain.loops)} loops {loops}"
    for loop, tile in zip(chain.loops, tiles, strict=True):
        if not isinstance(tile, int) or tile < 1:
            return f"the tile of {loop} is {tile!r}, expected a whole number of at least 1"
    return ""
