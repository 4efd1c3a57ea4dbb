"""Fit the coefficients of the binaries' model to measured pairs of the part "fit".

    python -m bench.costs.fit_binaries bench/results/2026-11-22-h200-costs

One coefficient after the other is made larger or smaller as long as that helps, in steps that
shrink. What is made small is the spread of predicted over measured times within each workload, and,
at a quarter of its weight, their mean: a model that ranks well may be off by a factor, but not far.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from bench.costs.judge import by_workload
from bench.costs.measured import WAYS, Measured, measured
from bench.costs.workloads import FITTED
from blockbuster.costs.binary_model import BinaryCoefficients
from blockbuster.machines import Machine, machine

STEPS = (1.5, 1.2, 1.07)
SWEEPS = 2
OFFSET = 0.25  # weight of a workload's mean error, beside the spread within it
FRACTIONS = ("matrix", "apart", "memory", "issue")  # at most one


def loss(groups: Sequence[Sequence[Measured]], on: Machine, fitted: BinaryCoefficients) -> float:
    """How far a model is off: fast pairs count most."""
    found = []
    for pairs in groups:
        for way in WAYS:
            clean = [pair for pair in pairs if pair.is_clean]
            said = np.array([pair.compiled(on, way, fitted) for pair in clean])
            times = np.array([pair.times[way] for pair in clean])
            weights = times.min() / times
            errors = np.log(said / times)
            mean = float(np.average(errors, weights=weights))
            spread = float(np.average((errors - mean) ** 2, weights=weights))
            found.append(spread + OFFSET * mean**2)
    return math.sqrt(sum(found) / len(found))


def fit(
    groups: Sequence[Sequence[Measured]], on: Machine, fitted: BinaryCoefficients
) -> BinaryCoefficients:
    """The coefficients with the smallest loss that single steps find."""
    best = loss(groups, on, fitted)
    print(f"{best:.4f} {fitted}", flush=True)
    for step in STEPS:
        for _ in range(SWEEPS):
            before = best
            for name in (each.name for each in fields(fitted)):
                fitted, best = _along(groups, on, fitted, name, step, best)
            print(f"{best:.4f} {fitted}", flush=True)
            if before - best < 1e-4:
                break
    return fitted


def _along(
    groups: Sequence[Sequence[Measured]],
    on: Machine,
    fitted: BinaryCoefficients,
    name: str,
    step: float,
    best: float,
) -> tuple[BinaryCoefficients, float]:
    """One coefficient changed as long as that helps, up or down."""
    for factor in (step, 1 / step):
        while True:
            value = getattr(fitted, name) * factor
            if name in FRACTIONS and value > 1.0:
                break
            tried = replace(fitted, **{name: value})
            found = loss(groups, on, tried)
            if found >= best - 1e-5:
                break
            fitted, best = tried, found
    return fitted, best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--machine", default="h200")
    options = parser.parse_args()
    names = tuple(workload.name for workload in FITTED)
    groups = by_workload(list(measured(options.folder / "pairs.jsonl", names)))
    print(fit(list(groups.values()), machine(options.machine), BinaryCoefficients()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
