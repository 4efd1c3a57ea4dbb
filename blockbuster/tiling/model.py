"""MCFuser's cost model: equations 2 to 5 of the source (section IV-A).

t = (t_mem + t_comp) * alpha. Every load and store takes the bytes of its tile times its trips, at
the bandwidth of global memory. Every product takes the operations of its tile times its trips, at
the peak rate of the matrix units. alpha = (blocks + processors) / blocks slows down kernels of few
blocks.

Loops on the grid count as trips: each block runs its own loads, whichever loops index them.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from blockbuster.machines import Machine
from blockbuster.tiling.candidate import Candidate
from blockbuster.tiling.chain import Chain
from blockbuster.tiling.placement import COMPUTE, placed
from blockbuster.tiling.pruning import shared_bytes


@dataclass(frozen=True)
class Estimate:
    """The estimate of the source's equations for a candidate on a machine.

    ``memory`` and ``compute``: seconds of equations 3 and 4; ``slowdown``: alpha of equation 5;
    ``moved``: bytes to and from global memory; ``operations``: of the products; ``blocks``: thread
    blocks; ``shared``: bytes of equation 1.
    """

    memory: float
    compute: float
    slowdown: float
    moved: int
    operations: int
    blocks: int
    shared: int

    @property
    def seconds(self) -> float:
        """Equation 2."""
        return (self.memory + self.compute) * self.slowdown


def estimate(chain: Chain, found: Candidate, machine: Machine) -> Estimate:
    """The source's equations for ``found``.

    Raises ValueError if the machine has no rate of its matrix units for the chain's dtype.
    """
    rate = machine.rate("matrix", chain.dtype)
    extents = found.extents(chain)
    gone = [loop for loop, extent in extents.items() if extent == 1]
    moved = operations = 0
    for statement in placed(chain, found.body.expression, grid=found.body.grid, gone=gone):
        trips = chain.batch * math.prod(extents[loop] for loop in statement.loops)
        if statement.kind == COMPUTE:
            operations += trips * tile_operations(found, statement.operator.loops)
        else:
            moved += trips * found.elements(statement.tensor) * chain.item_bytes
    blocks = found.blocks(chain)
    return Estimate(
        memory=moved / machine.memory.bandwidth,
        compute=operations / rate,
        slowdown=(blocks + machine.processors) / blocks,
        moved=moved,
        operations=operations,
        blocks=blocks,
        shared=shared_bytes(chain, found),
    )


def tile_operations(found: Candidate, loops: Collection[str]) -> int:
    """Multiplications and additions of a product of one tile."""
    return 2 * math.prod(found.tile[loop] for loop in loops)
