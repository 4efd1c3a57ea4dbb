"""Runs workloads at few blocks in Triton's interpreter, to check schedules before a GPU does."""

from __future__ import annotations

import numpy as np
import torch

import blockbuster as bb
from bench.costs.building import kernel_of
from bench.costs.variations import pairs_of
from bench.costs.workloads import Workload

TRIED = 2


def errors_of(workload: Workload) -> list[float]:
    """The relative error of each of a few schedules, of the outputs' largest."""
    sizes = dict(workload.few)
    inputs = workload.drawn(sizes, "cpu", seed=1)
    exact = workload.reference(inputs)
    errors = []
    for pair in pairs_of(workload, TRIED + len(workload.starts), sizes):
        kernel: bb.Kernel = kernel_of(pair, sizes)
        found = kernel(**{name: x.numpy() for name, x in inputs.items()})
        results = found if isinstance(found, tuple) else (found,)
        errors.append(max(_error(y, x) for y, x in zip(results, exact, strict=True)))
    return errors


def _error(found: np.ndarray, exact: torch.Tensor) -> float:
    right = exact.numpy()
    return float(np.linalg.norm(found.astype(np.float64) - right) / np.linalg.norm(right))
