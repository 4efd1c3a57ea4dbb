"""What the closed form takes for granted of all machines of a kind, in one place.

They say how near to a machine's rates kernels come that our emitter writes, and how long a program
waits for its own results. ``python -m bench.costs.fit`` fits them to measured times: these to 255
schedules of 13 programs, those that do not spill, on one NVIDIA H200, cold and warm
(bench/results/2026-11-22-h200-costs); they are rounded, and ``spill`` is set by eye.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Coefficients:
    """How near to a machine's rates kernels come, and how long they wait, in cycles.

    Rates. ``matrix``: of the rate of matrix units where four warps multiply together (short kernels
    do not heat a machine as those do by which it was measured); ``apart``: where each warp
    multiplies alone. ``memory``, ``cache``: of the bandwidth of global memory and of the cache,
    where processors find some of it in their own. ``issue``: of issue slots. ``burst``: how many
    times its share of the memory's bandwidth one processor takes while others are idle.
    ``overlap``: how well what takes place at once overlaps: the exponent of the mean by which its
    times are added up.

    Waits. ``queue``: how many times longer a load takes than on an idle machine. In cycles:
    ``request``, in which a processor asks for a line of memory; ``begin``, of a program besides its
    work; ``alone``, from one instruction of a warp to its next; ``dot``, from a dot's operands to
    its result, where that is read at once; ``fold``, of a fold across lanes; ``exchange``, of what
    passes from warp to warp. ``unrolled``: iterations without dots that wait for their loads
    together. ``start``: seconds of a kernel beyond those of its launch. ``spill``: how many times
    longer a kernel takes for each time that it wants the registers that there are once more.
    """

    matrix: float = 1.3
    apart: float = 0.54
    memory: float = 0.96
    cache: float = 2.4
    issue: float = 0.96
    burst: float = 2.5
    overlap: float = 2.4
    queue: float = 1.4
    request: float = 1.5
    begin: float = 2400.0
    alone: float = 1.2
    dot: float = 170.0
    fold: float = 98.0
    exchange: float = 374.0
    unrolled: float = 3.3
    start: float = 3.3e-7
    spill: float = 10.0


FITTED = Coefficients()
