"""What a kernel costs until a model of machines exists: elements moved, weighed by what idles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.program import Nest
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.traffic import traffic_by_nest
from blockbuster.emit.tile.uses import Uses
from blockbuster.ir.types import Dim
from blockbuster.selection.default_tiles import choose_warps

UNPIPELINED = 2
"""How many times longer a loop of dots takes whose loads wait. On an H200, LayerNorm + matmul took
49 microseconds with sums of the weights in that loop and 35 without; RMSNorm + matmul 36, and 24 by
hand with the statistics in a loop of their own: 1.4 to 1.5 times with all that is not in the loop.
"""

SHORT = 8
"""Iterations of a loop in which running ahead gains nothing that was seen: loops of 1 to 4 of them
(pairwise scores, normalized scores) beat the same dots in pipelined kernels of their own.
"""


ROWS = 16
"""Rows of a dot's result that a warp has to itself: those of a matrix instruction."""

CROWDED = 2
"""How many times longer a nest of dots takes whose warps have fewer rows each. On an H200,
attention with 64 rows to a program took 631 microseconds with 8 warps and 328 with 4: each of the
warps that share rows issues nearly as many instructions as if they were its own (589 for 639).
"""

LAUNCH = 4_000_000
"""Elements of tile traffic that one more kernel counts as. On an H200 RMSNorm + matmul of 2048 x
1024 x 1024 moves 72 million in 24 microseconds; an empty kernel takes 0.7 in a graph, 3.6 outside.
"""


@dataclass(frozen=True)
class NestCost:
    """What one nest moves, in elements, and how many programs share the work.

    ``pipelined``: loads may run ahead of the arithmetic of the iterations before. ``crowded``: it
    has more warps than usual, and its dots have fewer than ``ROWS`` rows for each.
    """

    elements: int
    programs: int
    pipelined: bool = True
    crowded: bool = False

    def weighed(self, processors: int) -> int:
        """The elements, as many times over as processors are idle for each that is busy.

        They count more often in a nest that is not pipelined, or crowded.
        """
        times = (1 if self.pipelined else UNPIPELINED) * (CROWDED if self.crowded else 1)
        return -(-self.elements * times * max(processors, self.programs) // self.programs)


def costs_of(scheduled: Scheduled, *, padded: tuple[Dim, ...] = ()) -> tuple[NestCost, ...]:
    """What each kernel costs; lanes past the end of ``padded`` dims count where they are loaded."""
    program = scheduled.program
    traffic = traffic_by_nest(program, scheduled.sizes, padded=padded)
    return tuple(
        NestCost(moved.elements, moved.programs, *_slowed(nest, tiling, scheduled.sizes))
        for moved, nest, tiling in (
            (moved, nest, tiling_of(program, nest))
            for moved, nest in zip(traffic, program.nests, strict=True)
        )
    )


def _slowed(nest: Nest, tiling: Tiling, sizes: Mapping[Dim, int]) -> tuple[bool, bool]:
    """Whether the loads of its long loops run ahead, and whether its warps are crowded."""
    uses = Uses(nest, tiling)
    crowded = 0 < uses.fewest_rows() < ROWS * nest.warps
    more = nest.warps > choose_warps(nest, tiling)
    return uses.waits(sizes) <= SHORT, more and crowded
