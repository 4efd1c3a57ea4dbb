"""Pairs of one workload checked and timed on a GPU, cold and warm, in rounds.

The clocks are those of bench/timing.py; the fastest pairs are timed again in rounds of their own.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from triton.errors import TritonError

from bench.costs.launching import Ready, ready
from bench.costs.workloads import Workload
from bench.timing import Clock, cold_calls, warm_calls

Record = dict[str, Any]
Array = Any

ROUNDS, AGAIN = 5, 7
WINNERS = 6


def error_of(run: Ready, exact: Sequence[Array]) -> float:
    """The largest error of an output, relative to its norm. Raises ValueError where runs differ."""
    found = [[y.clone() for y in _poisoned(run)] for _ in range(2)]
    if not all(torch.equal(y, z) for y, z in zip(*found, strict=True)):
        raise ValueError("two runs on the same inputs differ")
    errors = [
        float((y.double() - right).norm() / right.norm())
        for y, right in zip(found[0], exact, strict=True)
    ]
    return max(errors)


def _poisoned(run: Ready) -> Sequence[Array]:
    for y in run.outputs:
        y.fill_(float("nan"))
    run()
    torch.cuda.synchronize()
    return run.outputs


def checked(
    workload: Workload, sources: Mapping[str, Path], note: Callable[[Record], None]
) -> dict[str, Ready]:
    """Those pairs of a workload that are right, ready to run; ``note`` hears of all of them."""
    torch.backends.cuda.matmul.allow_tf32 = False
    inputs = workload.drawn(workload.sizes, "cuda", seed=1)
    exact = workload.reference(inputs)
    right = {}
    for key, source in sources.items():
        note({"key": key, "state": "begun"})
        try:
            run = ready(source, inputs)
            error = error_of(run, exact)
        except (ValueError, RuntimeError, TritonError) as failure:
            if "CUDA" in str(failure):
                raise  # the device is of no more use to this process
            note({"key": key, "state": "failed", "reason": str(failure)[:400]})
            continue
        good = error <= workload.largest  # and no NaN
        note({"key": key, "state": "checked" if good else "wrong", "error": error})
        if good:
            right[key] = run
    return right


def timed(runs: Mapping[str, Ready]) -> Iterator[Record]:
    """The times of runs, round by round, and once more of the fastest."""
    clock = Clock()
    first = {key: clock.cold(run, 3) for key, run in runs.items()}
    clocks = {key: clocks_of(clock, run, first[key]) for key, run in runs.items()}
    found = in_rounds(clocks, ROUNDS)
    again = in_rounds({key: clocks[key] for key in _winners(found)}, AGAIN)
    for key, (cold, warm) in found.items():
        record: Record = {"key": key, "state": "timed", "cold": cold, "warm": warm}
        if key in again:
            record["cold_again"], record["warm_again"] = again[key]
        yield record


Clocks = tuple[Callable[[], float], Callable[[], float]]
Times = tuple[list[float], list[float]]


def clocks_of(clock: Clock, run: Ready, usual: float) -> Clocks:
    """Functions that time a run of some ``usual`` microseconds once, cold and warm."""
    calls = cold_calls(usual)
    warm = clock.graph(run, warm_calls(usual))
    return lambda: clock.cold(run, calls), warm


def in_rounds(clocks: Mapping[str, Clocks], count: int) -> dict[str, Times]:
    """Microseconds of each run, cold and warm, in rounds in which all take turns."""
    found: dict[str, Times] = {key: ([], []) for key in clocks}
    for _ in range(count):
        for key, (cold, warm) in clocks.items():
            found[key][0].append(round(cold(), 3))
            found[key][1].append(round(warm(), 3))
    return found


def _winners(found: Mapping[str, Times]) -> list[str]:
    """The fastest, cold or warm, in the order in which they were timed."""
    kept: set[str] = set()
    for way in (0, 1):
        ranked = sorted(found, key=lambda key: statistics.median(found[key][way]))
        kept.update(ranked[:WINNERS])
    return [key for key in found if key in kept]
