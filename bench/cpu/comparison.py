"""The measurement: rounds in which NumPy and Blockbuster take turns, and the errors of both."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import blockbuster as bb
from bench.cpu.everyday import EVERYDAY
from bench.cpu.programs import PROGRAMS, Program

SLICE = 0.02  # seconds of a turn: many calls where they are short
Record = dict[str, Any]


def main() -> None:
    options = _options()
    programs = EVERYDAY if options.everyday else PROGRAMS
    chosen = [p for p in programs if options.only in p.name]
    if not chosen:
        names = ", ".join(program.name for program in programs)
        sys.exit(f"no program is called {options.only!r}; there are: {names}")
    print(f"{'':20}{'NumPy us':>12}{'ours us':>12}{'ours/NumPy':>12}{'wall':>8}{'errors':>20}")
    records = [_measured(program, options.rounds) for program in chosen]
    mean = statistics.geometric_mean(record["ratio"] for record in records)
    wall = statistics.geometric_mean(record["wall_ratio"] for record in records)
    print(f"{'geometric mean':44}{mean:>12.2f}{wall:>8.2f}")
    if options.json:
        found = {"machine": _machine(), "rounds": options.rounds, "geometric_mean": mean,
                 "programs": records}  # fmt: skip
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Times of bb.jit on NumPy arrays beside NumPy's.")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--everyday", action="store_true", help="programs of reshapes and others")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each of the two")
    parser.add_argument("--json", type=Path, help="write all that was measured")
    return parser.parse_args()


def _measured(program: Program, rounds: int) -> Record:
    """The record of one program, which is printed, too."""
    arrays = program.inputs()
    jitted = bb.jit(program.ours)
    runs: dict[str, Callable[..., Any]] = {"plain": program.plain, "ours": jitted}
    found = {name: run(*arrays) for name, run in runs.items()}
    exact = program.plain(*program.inputs(np.float64))
    errors = {name: float(np.abs(made - exact).max()) for name, made in found.items()}
    times = _rounds(runs, arrays, rounds)
    ratios, walls = (
        [one / other for one, other in zip(times["ours", kind], times["plain", kind], strict=True)]
        for kind in ("processor", "wall")
    )
    record = {
        "program": program.name,
        "shapes": program.shapes,
        **{f"{n}_{kind}_us": statistics.median(t) for (n, kind), t in times.items()},
        "ratio": statistics.median(ratios),
        "wall_ratio": statistics.median(walls),
        **{f"{name}_error": error for name, error in errors.items()},
    }
    numbers = f"{record['plain_processor_us']:>12.1f}{record['ours_processor_us']:>12.1f}"
    numbers += f"{record['ratio']:>12.2f}{record['wall_ratio']:>8.2f}"
    print(f"{program.name:20}{numbers}{errors['plain']:>10.1e}{errors['ours']:>10.1e}", flush=True)
    return record


def _rounds(
    runs: Mapping[str, Callable[..., Any]], arrays: list[Any], rounds: int
) -> dict[tuple[str, str], list[float]]:
    """Microseconds of a call, of the processor and of the wall, one for each round."""
    calls = {name: _calls(run, arrays) for name, run in runs.items()}
    times: dict[tuple[str, str], list[float]] = {
        (name, kind): [] for name in runs for kind in ("processor", "wall")
    }
    for turn in range(rounds):
        for name in [*runs] if turn % 2 else [*runs][::-1]:
            run, number = runs[name], calls[name]
            begun = time.thread_time(), time.perf_counter()
            for _ in range(number):
                run(*arrays)
            taken = time.thread_time() - begun[0], time.perf_counter() - begun[1]
            for kind, seconds in zip(("processor", "wall"), taken, strict=True):
                times[name, kind].append(seconds / number * 1e6)
    return times


def _calls(run: Callable[..., Any], arrays: list[Any]) -> int:
    """How many calls fill a turn."""
    begun = time.thread_time()
    run(*arrays)
    once = time.thread_time() - begun
    return max(1, int(SLICE / max(once, 1e-6)))


def _machine() -> Record:
    """Where it ran, by kind."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "processor": next(_processors(), platform.machine()),
        "cores": os.cpu_count(),
        "threads": 1,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{blas['name']} {blas['version']}",
    }


def _processors() -> Iterator[str]:
    """The processors' names, where the system tells them."""
    told = Path("/proc/cpuinfo")
    for line in told.read_text().splitlines() if told.exists() else ():
        if line.startswith("model name"):
            yield line.partition(":")[2].strip()
