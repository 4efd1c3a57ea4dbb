"""Instructions that no statement asks for, fitted to machine code: a line for each constant.

    python -m bench.costs.instructions bench/results/2026-11-23-h200-costs

The folder has pairs.jsonl (see measure.py), with what each loop of each binary issues. The counts
of blockbuster/costs/phases.py, less its constants, are what statements ask for; what a warp issues
beyond them is fitted by least squares of relative errors, those of loops and of what stands outside
them apart, to the workloads of the part "fit" alone. Both parts are judged. Times take no part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.costs.binary_model import matched
from bench.costs.measured import Measured, measured
from bench.costs.workloads import BY_NAME, FIT, JUDGE
from blockbuster.costs.operands import LANES
from blockbuster.costs.phases import (
    EXCHANGE,
    ITERATION,
    LOOP,
    PROGRAM,
    SHUFFLE,
    WITH_DOTS,
    Phase,
)

TRIES, CLOSE = 30, 0.2  # reweighted least squares: errors beyond this count less
Array = np.ndarray


@dataclass(frozen=True)
class Row:
    """What one body issues in a warp: ``counted`` of its statements, and ``issued`` in all.

    ``times``: how often each constant counts in it, in the order of ``NAMES``.
    """

    part: str
    counted: float
    issued: float
    times: tuple[int, ...]

    @property
    def in_loop(self) -> bool:
        """True for the body of a loop."""
        return bool(self.times[NAMES.index("ITERATION")])


NAMES = ("PROGRAM", "WITH_DOTS", "LOOP", "ITERATION", "SHUFFLE", "EXCHANGE")
NOW = (PROGRAM, WITH_DOTS, LOOP, ITERATION, SHUFFLE, EXCHANGE)


def rows(pairs: Iterable[Measured]) -> Iterator[Row]:
    """The bodies that machine code has, of kernels that do not spill."""
    for pair in pairs:
        if not pair.is_clean:
            continue
        for work, binary in zip(pair.works, pair.binaries, strict=True):
            found = matched(work.phases, binary, work.warps)
            for phase, counts in zip(work.phases, found, strict=True):
                if phase.runs and counts is not None:
                    times = _times(phase, work.phases)
                    counted = phase.instructions * work.crowded / LANES / work.warps / phase.runs
                    yield Row(BY_NAME[pair.workload].part, counted, counts.issue, times)


def _times(phase: Phase, phases: tuple[Phase, ...]) -> tuple[int, ...]:
    inner = sum(other.dims[:-1] == phase.dims for other in phases if other.dims)
    dots = any(other.dots for other in phases)
    outside = not phase.dims
    return (outside, outside and dots, inner, not outside, phase.folds, phase.exchanges)


def fitted(found: list[Row], names: tuple[str, ...]) -> Array:
    """The constants of these names that come nearest to what is issued."""
    columns = [NAMES.index(name) for name in names]
    issued = np.array([row.issued for row in found])
    times = np.array([row.times for row in found], float)[:, columns] / issued[:, None]
    missing = 1.0 - np.array([row.counted for row in found]) / issued
    weights, best = np.ones(len(found)), np.zeros(len(names))
    for _ in range(TRIES):
        best = np.linalg.lstsq(times * weights[:, None], missing * weights, rcond=None)[0]
        weights = 1.0 / np.sqrt(1.0 + ((times @ best - missing) / CLOSE) ** 2)
    return best


def spread(found: list[Row], constants: tuple[float, ...]) -> str:
    """How far off what is said lies, as the root of the mean square of its logarithm."""
    said = np.array([row.counted + np.dot(row.times, constants) for row in found])
    errors = np.log(np.maximum(said, 1.0) / np.array([row.issued for row in found]))
    return f"{np.sqrt(np.mean(errors**2)):.2f} (median {np.exp(np.median(errors)):.2f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="has pairs.jsonl, see measure.py")
    options = parser.parse_args()
    found = list(rows(measured(options.folder / "pairs.jsonl")))
    fit = [row for row in found if row.part == FIT]
    inner = ("ITERATION", "SHUFFLE", "EXCHANGE")
    outer = ("PROGRAM", "WITH_DOTS", "LOOP")
    for names, in_loop in ((inner, True), (outer, False)):
        best = fitted([row for row in fit if row.in_loop == in_loop], names)
        for name, value in zip(names, best, strict=True):
            print(f"{name:10} {value:6.1f}   now {NOW[NAMES.index(name)]}")
    for part in (FIT, JUDGE):
        mine = [row for row in found if row.part == part]
        print(f"{part:6} off by {spread(mine, NOW)}, without constants {spread(mine, (0,) * 6)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
