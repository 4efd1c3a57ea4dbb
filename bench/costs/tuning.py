"""The work of a tuning run's workers: they compile a schedule, or time it on the GPU they see.

Triton's cache passes a binary from the workers that compile to those that time. A wrong schedule
raises ValueError, so that its measurement is lost with the reason.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from bench.costs.ranking import text_of
from bench.costs.tunable import TARGET, scheduled, workload_of

T = TypeVar("T")

ROUNDS = 3
GRAPHED_US = 400.0  # what the calls of a graph take in all
CALLS = (2, 20)  # of a graph
FIRST_CALLS = 3
FIRST = "S7"  # the workload that is compiled first
FAULT = 70  # exit code after a fault of the device


@dataclass(frozen=True)
class Job:
    """A schedule of a workload; ``folder`` holds its file and Triton's cache."""

    workload: str
    schedule: str
    folder: str

    @property
    def path(self) -> Path:
        """The emitted file."""
        name = hashlib.sha256(f"{self.workload}\n{self.schedule}".encode()).hexdigest()[:16]
        return Path(self.folder) / f"{self.workload}-{name}.py"


def woken(number: int) -> float:
    """Compile one schedule, before a clock runs; slowly, so that each worker gets a turn.

    So a worker has imported and read from disk what compiling takes. Its binary is thrown away.
    """
    with tempfile.TemporaryDirectory() as folder:
        built(Job(FIRST, scheduled(FIRST, None).schedule, folder))
    time.sleep(1)
    return float(number)


def built(job: Job) -> float:
    """Compile the kernels of a schedule; the seconds that took. Raises EmitError if none fits."""
    from bench.costs.building import runnable
    from blockbuster.emit.target.load import load_module
    from blockbuster.emit.target.targets import target_of

    began = time.perf_counter()
    _use_cache(job.folder)
    target = target_of(TARGET)
    text = text_of(scheduled(job.workload, job.schedule))
    for entry in load_module(text).KERNELS:
        runnable(entry, target)
    job.path.write_text(text, encoding="utf-8")
    return time.perf_counter() - began


def timed(job: Job) -> float:
    """Seconds of a call among many in a graph, the median of some rounds."""
    return _seconds(job, ROUNDS)


def timed_again(turn: tuple[Job, int]) -> float:
    """Seconds in one round, so that schedules can be timed in turn."""
    return _seconds(turn[0], 1)


def _seconds(job: Job, rounds: int) -> float:
    """The median of rounds. After a fault of the device this process ends: it is of no more use."""
    from triton.errors import TritonError

    try:
        timer = _timer(job)
        return statistics.median(timer.clock() for _ in range(rounds)) / 1e6
    except TritonError as error:  # some of Triton's errors do not cross from process to process
        raise ValueError(str(error)) from None
    except RuntimeError as error:
        if "CUDA" not in str(error):
            raise
        print(f"{job.workload}: {error}\n{job.schedule}", flush=True)
        os._exit(FAULT)


def _use_cache(folder: str) -> None:
    """Have Triton keep binaries in a folder of the run's: those from elsewhere do not count."""
    os.environ["TRITON_CACHE_DIR"] = str(Path(folder) / "triton")


def _in_folder(folder: str, function: Callable[..., T], *arguments: Any) -> T:
    _use_cache(folder)
    return function(*arguments)


@dataclass(frozen=True)
class InFolder(Executor):
    """An executor whose work finds and keeps binaries in a folder."""

    inner: Executor
    folder: str

    def submit(self, function: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        """Run ``function`` there."""
        return self.inner.submit(_in_folder, self.folder, partial(function, **named), *arguments)


@dataclass(frozen=True)
class Timer:
    """A schedule in a graph; what the graph reads and writes is held as long as this is."""

    run: Any
    clock: Callable[[], float]


@lru_cache(maxsize=128)
def _timer(job: Job) -> Timer:
    """What times a schedule, in microseconds. Raises ValueError if its results are wrong."""
    from bench.costs.launching import ready
    from bench.costs.timing import error_of

    _use_cache(job.folder)
    inputs, exact = _inputs(job.workload)
    run = ready(job.path, inputs)
    error = error_of(run, exact)
    if not error <= workload_of(job.workload).largest:
        raise ValueError(f"its results are wrong: an error of {error:.1e}")
    usual = _clock().cold(run, FIRST_CALLS)
    calls = max(CALLS[0], min(CALLS[1], int(GRAPHED_US / usual)))
    return Timer(run, _clock().graph(run, calls))


@lru_cache(maxsize=1)
def _clock() -> Any:
    """The clock of this process."""
    from bench.timing import Clock

    return Clock()


@lru_cache(maxsize=1)
def _inputs(name: str) -> Any:
    workload = workload_of(name)
    inputs = workload.drawn(workload.sizes, "cuda", seed=1)
    return inputs, workload.reference(inputs)
