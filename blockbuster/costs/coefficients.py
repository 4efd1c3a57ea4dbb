"""What the closed form takes for granted of all machines of a kind: few numbers, in one place.

They say how near to a machine's rates kernels come that our emitter writes, and how long a program
waits for its own results. ``bench/costs/fit.py`` fits them to measured times.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Coefficients:
    """Fractions of a machine's rates that kernels reach, and waits in cycles.

    ``matrix``: of the rate of matrix units where four warps multiply together; ``apart``: where
    each warp multiplies alone. ``memory``, ``cache``: of the bandwidth of global memory and of the
    cache. ``issue``: of issue slots. ``burst``: how many times its share of a bandwidth one
    processor takes while others are idle. ``dot``: cycles from a dot's operands to its result, read
    at once; ``fold``: cycles of a fold across lanes; ``barrier``: of an iteration whose loads run
    ahead. ``start``: seconds from a kernel's launch to its first load, beyond an empty kernel's.
    """

    matrix: float = 1.1
    apart: float = 0.6
    memory: float = 0.96
    cache: float = 1.2
    issue: float = 0.6
    burst: float = 1.75
    queue: float = 1.67
    begin: float = 2000.0
    alone: float = 2.0
    dot: float = 200.0
    step: float = 40.0
    turn: float = 1000.0
    fold: float = 80.0
    exchange: float = 500.0
    barrier: float = 30.0
    unrolled: float = 3.7
    spill: float = 10.0
    start: float = 4.9e-7


FITTED = Coefficients()
