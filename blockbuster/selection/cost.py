"""What a kernel costs until a model of machines exists: elements moved, weighed by what idles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.arithmetic import Arithmetic, arithmetic
from blockbuster.emit.tile.dtypes import MEMORY, dtype_of
from blockbuster.emit.tile.program import Buffer, Nest, TileProgram
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.traffic import traffic_by_nest
from blockbuster.emit.tile.uses import Uses
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import choice_weights
from blockbuster.selection.default_tiles import ROWS, choose_warps

UNPIPELINED = 2
"""How many times longer a loop of dots takes whose loads wait. On an H200, LayerNorm + matmul took
49 microseconds with sums of the weights in that loop and 35 without; RMSNorm + matmul 36, and 24 by
hand with the statistics in a loop of their own: 1.4 to 1.5 times with all that is not in the loop.
"""

SHORT = 8
"""Iterations of a loop in which running ahead gains nothing that was seen: loops of 1 to 4 of them
(pairwise scores, normalized scores) beat the same dots in pipelined kernels of their own.
"""


CROWDED = 2
"""How many times longer a nest of dots takes whose warps have fewer rows each. On an H200,
attention with 64 rows to a program took 631 microseconds with 8 warps and 328 with 4: each of the
warps that share rows issues nearly as many instructions as if they were its own (589 for 639).
"""

WEIGHTS = choice_weights()
MATRIX, EXACT, VECTOR = WEIGHTS.matrix, WEIGHTS.exact, WEIGHTS.vector
"""Operations that take as long as moving one element: on matrix units, in dots of float32, which no
matrix unit takes, and of other units."""

LAUNCH = WEIGHTS.launch
"""Elements of tile traffic that one more kernel counts as."""


LARGE = 2
"""How many times an element counts of a workspace that is larger than every input and output, but
for those of chunks, of which there are few. It grows with the product of two sizes: beyond the
cache an H200 moves 2.1e12 elements of float16 in a second, and before long its memory is full.
"""


@dataclass(frozen=True)
class NestCost:
    """What one nest moves, in elements, and how many programs share the work.

    ``pipelined``: loads may run ahead of the arithmetic of the iterations before. ``crowded``: it
    has more warps than usual, and its dots have fewer than ``ROWS`` rows for each. ``heavy``: what
    elements count more that are wider than those of the program or of large workspaces,
    ``computed``: the elements that could be moved while it computes; both are 0 unless they were
    asked for.
    """

    elements: int
    programs: int
    pipelined: bool = True
    crowded: bool = False
    heavy: int = 0
    computed: int = 0

    def weighed(self, processors: int) -> int:
        """The elements, as many times over as processors are idle for each that is busy.

        They count more often in a nest that is not pipelined, or crowded. What is moved and what is
        computed take place at the same time.
        """
        times = (1 if self.pipelined else UNPIPELINED) * (CROWDED if self.crowded else 1)
        elements = max(self.elements + self.heavy, self.computed)
        return -(-elements * times * max(processors, self.programs) // self.programs)


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


def with_arithmetic(costs: tuple[NestCost, ...], scheduled: Scheduled) -> tuple[NestCost, ...]:
    """``costs``, those of ``scheduled``, in which arithmetic and what is stored between them count.

    For the choice between programs that store and others that compute again.
    """
    program, sizes = scheduled.program, scheduled.sizes
    weights, traffic = _weights(program, sizes), traffic_by_nest(program, sizes)
    found = []
    for cost, nest, moved in zip(costs, program.nests, traffic, strict=True):
        work = arithmetic(replace(program, nests=(nest,)), sizes)
        computed = in_elements(work, exact=program.dtype == FLOAT)
        heavy = sum(count * (weights[name] - 1) for name, count in moved.arrays.items())
        found.append(replace(cost, heavy=int(heavy), computed=computed))
    return tuple(found)


def _weights(program: TileProgram, sizes: Mapping[Dim, int]) -> dict[str, float]:
    """How many elements of the program's dtype an element of each array counts as, by name."""

    def size(buffer: Buffer) -> int:
        return prod(sizes[size_class(axis.dim)] for axis in buffer.axes if axis.dim is not None)

    given = max(map(size, (*program.inputs, *program.outputs)))
    usual = dtype_of(program.dtype).bytes
    weights = {buffer.name: 1.0 for buffer in (*program.inputs, *program.outputs)}
    parts = {dim for chunks in program.chunks for dim in (chunks.number, chunks.lanes)}
    for buffer in program.workspaces:
        width = max(MEMORY[buffer.dtype].bytes / usual, 1.0)
        grows = size(buffer) > given and parts.isdisjoint(axis.dim for axis in buffer.axes)
        weights[buffer.name] = width * (LARGE if grows else 1)
    return weights


def in_elements(work: Arithmetic, *, exact: bool) -> int:
    """The elements that are moved in the time that ``work`` takes; ``exact``: dots of float32."""
    return work.matrix // (EXACT if exact else MATRIX) + work.vector // VECTOR


def _slowed(nest: Nest, tiling: Tiling, sizes: Mapping[Dim, int]) -> tuple[bool, bool]:
    """Whether the loads of its long loops run ahead, and whether its warps are crowded."""
    uses = Uses(nest, tiling)
    crowded = 0 < uses.fewest_rows() < ROWS * nest.warps
    more = nest.warps > choose_warps(nest, tiling)
    return uses.waits(sizes) <= SHORT, more and crowded
