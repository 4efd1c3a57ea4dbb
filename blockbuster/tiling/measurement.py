"""Measures candidates in workers; each worker may die or hang without ending the search.

Any ``concurrent.futures.Executor`` works: threads, processes, one process per GPU of a host, or
``client.get_executor()`` of dask.distributed for more than one machine.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from numbers import Real
from types import TracebackType
from typing import Any, Generic, TypeVar

C = TypeVar("C")
PATIENCE = 60.0
"""Seconds in which some measurement must end; after that, those that run have hung."""

DIED = "a worker died"
KILLED = "KilledWorker"
"""dask's error for what ran, or waited, in a worker that died; its executor goes on."""


@dataclass(frozen=True)
class Measurement(Generic[C]):
    """The measurement of a candidate: seconds, or None and the reason in words."""

    candidate: C
    seconds: float | None
    reason: str = ""


def checked(one: Measurement[C]) -> Measurement[C]:
    """The measurement itself; a lost one where its seconds are no finite number above 0."""
    seconds = one.seconds
    if seconds is None and one.reason:
        return one
    if isinstance(seconds, Real) and 0 < seconds < math.inf:
        return one
    return Measurement(one.candidate, None, f"it gave {seconds!r}, and no time in seconds")


def one_thread() -> Executor:
    """The default workers: one thread of this process."""
    return ThreadPoolExecutor(1)


class Workers:
    """An executor that is made again when a worker dies or hangs; a context manager.

    ``make``: makes the executor; ``patience``: seconds in which some measurement must end. A hung
    thread cannot be stopped: use processes where that matters.
    """

    def __init__(
        self, make: Callable[[], Executor] = one_thread, *, patience: float = PATIENCE
    ) -> None:
        self._make, self._patience = make, patience
        self._executor: Executor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown()

    @property
    def executor(self) -> Executor:
        """The executor at work; it is made if there is none."""
        if self._executor is None:
            self._executor = self._make()
        return self._executor

    def measure(
        self,
        function: Callable[[C], float],
        candidates: Sequence[C],
        note: Callable[[Measurement[C]], None] = lambda _: None,
    ) -> tuple[Measurement[C], ...]:
        """``function`` of each candidate, in seconds, in the order of ``candidates``.

        ``note`` hears of each when it ends. An error loses one measurement, as does what is no time
        (a NaN), and a worker that dies or hangs: those that were not finished then run one by one,
        until the one that does it again is known, and together from there on.
        """
        found: dict[int, Measurement[C]] = {}

        def keep(at: int, seconds: float | None, reason: str = "") -> None:
            found[at] = checked(Measurement(candidates[at], seconds, reason))
            note(found[at])

        left = list(range(len(candidates)))
        alone = False
        while left:
            now = left[:1] if alone else left
            trouble = self._together(function, candidates, now, keep)
            if trouble and len(now) == 1:
                keep(now[0], None, trouble)
            alone = len(now) > 1 if trouble else alone
            left = [at for at in left if at not in found]
        return tuple(found[at] for at in range(len(candidates)))

    def _together(
        self,
        function: Callable[[C], float],
        candidates: Sequence[C],
        now: Sequence[int],
        keep: Callable[..., None],
    ) -> str:
        """Measure those of ``now``; why the executor was given up before all ended, or ""."""
        trouble = ""
        try:
            waiting = self._submitted(function, candidates, now)
        except BrokenExecutor as error:
            return self._given_up(f"{DIED}: {error}", ())
        while waiting:
            done, _ = wait(waiting, timeout=self._patience, return_when=FIRST_COMPLETED)
            if not done:
                hung = f"a worker hung: no answer in {self._patience:g} s"
                return self._given_up(hung, waiting)
            for future in sorted(done, key=lambda future: waiting[future]):
                at = waiting.pop(future)
                failure = _failure_of(future)
                if isinstance(failure, BrokenExecutor):
                    return self._given_up(f"{DIED}: {failure}", waiting)
                if type(failure).__name__ == KILLED:
                    trouble = DIED
                elif failure is not None:
                    keep(at, None, f"{type(failure).__name__}: {failure}")
                else:
                    keep(at, future.result())
        return trouble

    def _submitted(
        self, function: Callable[[C], float], candidates: Sequence[C], now: Sequence[int]
    ) -> dict[Future[float], int]:
        """Those of ``now`` by their futures; an executor that broke while it waited is replaced."""
        if self._executor is not None:
            try:
                return {self._executor.submit(function, candidates[at]): at for at in now}
            except BrokenExecutor as error:
                self._given_up(str(error), ())
        return {self.executor.submit(function, candidates[at]): at for at in now}

    def _given_up(self, reason: str, waiting: Iterable[Future[float]]) -> str:
        """Stop the executor and its processes; the next measurement makes another."""
        executor, self._executor = self._executor, None
        for future in waiting:
            future.cancel()
        # ProcessPoolExecutor.kill_workers is new in Python 3.14; a process that hangs stays else
        processes: dict[int, Any] = getattr(executor, "_processes", None) or {}
        for process in tuple(processes.values()):
            process.kill()
        if executor is not None:
            executor.shutdown(wait=False)
        return reason


def _failure_of(future: Future[Any]) -> BaseException | None:
    return CancelledError("cancelled") if future.cancelled() else future.exception()


# one worker for each GPU ------------------------------------------------------------


def gpu_workers(devices: Iterable[str]) -> ProcessPoolExecutor:
    """One process for each GPU of this host; each sees its own alone.

    ``devices``: as CUDA_VISIBLE_DEVICES names them, such as ("0", "1"). Raises ValueError for none.
    """
    names = tuple(devices)
    if not names:
        raise ValueError('one worker for each GPU needs a GPU: give their names, such as "0"')
    context = get_context("spawn")  # a copy of a process that uses CUDA cannot use it
    free = context.SimpleQueue()
    for name in names:
        free.put(name)
    return ProcessPoolExecutor(len(names), context, bind_gpu, (free,))


def bind_gpu(free: SimpleQueue[str]) -> None:
    """In a new worker: see only the next free GPU. CUDA reads this when it is first used."""
    os.environ["CUDA_VISIBLE_DEVICES"] = free.get()
