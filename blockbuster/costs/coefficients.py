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

    matrix: float = 0.95
    apart: float = 0.6
    memory: float = 0.9
    cache: float = 0.9
    issue: float = 0.8
    burst: float = 2.0
    queue: float = 2.5
    begin: float = 500.0
    dot: float = 130.0
    fold: float = 100.0
    exchange: float = 150.0
    barrier: float = 60.0
    start: float = 5e-7


FITTED = Coefficients()
