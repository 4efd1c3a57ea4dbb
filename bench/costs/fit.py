"""Fit the coefficients of a stage of the cost model to measured pairs of the part "fit".

    python -m bench.costs.fit bench/results/2026-11-23-h200-costs              the closed form
    python -m bench.costs.fit bench/results/2026-11-23-h200-costs --binaries   the second stage

Fitting starts where every rate is reached and waits are short (``NEUTRAL``), with bounds that the
machine sets: no bandwidth beyond what calibration saw, no more than a warp can issue. One
coefficient after the other is made larger or smaller as long as that helps, in steps that shrink.
The objective is the spread of predicted over measured times within each workload, fast pairs
counting most, and at a smaller weight their mean: a model that ranks well may be off by a factor,
but it is compared with other models. The result is printed; coefficients.py and binary_model.py are
changed by hand.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bench.costs.binary_model import BinaryCoefficients
from bench.costs.judge import by_workload
from bench.costs.measured import WAYS, Measured, measured
from bench.costs.workloads import FIT_WORKLOADS
from blockbuster.costs.coefficients import Coefficients
from blockbuster.machines import machine

STEPS = (1.4, 1.12)
SWEEPS = 3
OFFSET = 0.25  # weight of a workload's mean error, beside the spread within it
LEAST = 1e-5  # by which a change has to help
BOUNDS = {
    "matrix": (0.6, 1.1), "apart": (0.3, 1.0), "memory": (0.85, 1.0), "cache": (0.8, 1.6),
    "issue": (0.5, 1.0), "burst": (1.0, 6.0), "overlap": (1.5, 8.0), "streams": (1.5, 16.0),
    "queue": (1.0, 3.0), "begin": (100.0, 1000.0), "alone": (0.5, 4.0), "dot": (20.0, 400.0),
    "turn": (10.0, 100.0),
    "fold": (2.0, 60.0), "exchange": (10.0, 600.0), "unrolled": (1.0, 8.0), "start": (1e-7, 5e-7),
}  # fmt: skip
"""Between which values a coefficient of the closed form makes sense. Kernels that read the same
tiles reach 11.6 TB/s of the cache on an H200, 1.5 times what reads alone do; attention over 256 and
512 keys tells 0.9 us apart from launch and iterations, a program's first loads and last stores
among them: hence the bounds of ``cache``, ``begin`` and ``start``.
"""

BINARY_BOUNDS = {
    "matrix": (0.3, 1.4), "apart": (0.3, 1.0), "memory": (0.5, 1.0), "issue": (0.3, 1.0),
    "overlap": (1.5, 8.0),
}  # fmt: skip

NEUTRAL = Coefficients(
    matrix=1.0, apart=0.5, memory=1.0, cache=1.0, issue=1.0, burst=2.0, overlap=3.0, streams=4.0,
    queue=1.0, request=1.0, begin=1000.0, alone=1.0, dot=100.0, turn=30.0, fold=20.0,
    exchange=100.0, unrolled=2.0, start=5e-7,
)  # fmt: skip

# fitted to products in turn, folds across rows and convolutions; pairs that spill take no part
FIXED = ("between", "held", "place", "spill")

Fitted = TypeVar("Fitted", bound=Any)
Predict = Callable[[Measured, str, Fitted], float]
Bounds = Mapping[str, tuple[float, float]]


def loss(groups: Sequence[Sequence[Measured]], predict: Predict[Fitted], fitted: Fitted) -> float:
    """How far predictions are off: the root of the mean over workloads, cold and warm."""
    found = [_error(pairs, way, predict, fitted) for pairs in groups for way in WAYS]
    return math.sqrt(sum(found) / len(found))


def _error(pairs: Sequence[Measured], way: str, predict: Predict[Fitted], fitted: Fitted) -> float:
    """The spread of the logarithms of predicted over measured times, and some of their mean."""
    said = np.array([predict(pair, way, fitted) for pair in pairs if pair.is_clean])
    times = np.array([pair.times[way] for pair in pairs if pair.is_clean])
    known = np.isfinite(said)
    errors, weights = np.log(said[known] / times[known]), times.min() / times[known]
    mean = float(np.average(errors, weights=weights))
    return float(np.average((errors - mean) ** 2, weights=weights)) + OFFSET * mean**2


def fit(
    groups: Sequence[Sequence[Measured]],
    predict: Predict[Fitted],
    fitted: Fitted,
    bounds: Bounds,
    say: Callable[[str], None] = print,
) -> Fitted:
    """The coefficients with the smallest loss that steps along one of them at a time find."""
    best = loss(groups, predict, fitted)
    say(f"{best:.4f} {fitted}")
    for step in STEPS:
        for _ in range(SWEEPS):
            before = best
            for name in (each.name for each in fields(fitted) if each.name not in FIXED):
                fitted, best = _along(groups, predict, fitted, name, step, best, bounds)
            say(f"{best:.4f} {fitted}")
            if before - best < 10 * LEAST:
                break
    return fitted


def _along(
    groups: Sequence[Sequence[Measured]],
    predict: Predict[Fitted],
    fitted: Fitted,
    name: str,
    step: float,
    best: float,
    bounds: Bounds,
) -> tuple[Fitted, float]:
    """One coefficient changed as long as that helps, up or down."""
    low, high = bounds.get(name, (0.0, math.inf))
    for factor in (step, 1 / step):
        while low <= getattr(fitted, name) * factor <= high:
            tried = replace(fitted, **{name: getattr(fitted, name) * factor})
            found = loss(groups, predict, tried)
            if found >= best - LEAST:
                break
            fitted, best = tried, found
    return fitted, best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="has pairs.jsonl, see measure.py")
    parser.add_argument("--machine", default="h200")
    parser.add_argument("--binaries", action="store_true", help="the stage that knows binaries")
    options = parser.parse_args()
    device = machine(options.machine)
    names = tuple(workload.name for workload in FIT_WORKLOADS)
    groups = list(by_workload(list(measured(options.folder / "pairs.jsonl", names))).values())

    def closed(pair: Measured, way: str, fitted: Coefficients) -> float:
        return pair.closed(device, way, fitted)

    def compiled(pair: Measured, way: str, fitted: BinaryCoefficients) -> float:
        return pair.compiled(device, way, fitted)

    found: Any = (
        fit(groups, compiled, BinaryCoefficients(), BINARY_BOUNDS)
        if options.binaries
        else fit(groups, closed, NEUTRAL, BOUNDS)
    )
    for each in fields(found):
        print(f"{each.name:8} {getattr(found, each.name):.4g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
