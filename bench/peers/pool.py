"""Processes that prepare cases, several at a time, and then time them, one at a time.

A process keeps what it has compiled, so that nothing is compiled twice. If a process dies, or
spends too long on one contestant, that contestant is lost: its cases are prepared again without it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait

from bench.peers.case import OURS, Case, Contestant
from bench.records import Record

READY = "ready"
STARTING = 120.0  # seconds that a process has before its first case
LAST = 25.0  # seconds that the last case to be prepared may take
PREPARE, TIME = "prepare", "time"
PREPARED, FAILED, LOST = "prepared", "failed", "lost"
TRIES = 3  # of a case that loses a contestant each time
Job = tuple[str, str, tuple[str, ...]]  # what to do, with which case, without which contestants


@dataclass(frozen=True)
class Setting:
    """What the processes have in common: who takes part, and seconds for one contestant.

    ``library``: ours may call one.
    """

    ours_only: bool = False
    library: bool = True
    searches: bool = False
    patience: float = 150.0


Work = Callable[[Connection, Setting], None]


class Worker:
    """A process, what it is at, and since when; ``holds`` are the cases that it has prepared."""

    def __init__(self, setting: Setting, work: Work) -> None:
        context = get_context("spawn")
        self.pipe, other = context.Pipe()
        self._process = context.Process(target=work, args=(other, setting))
        self._process.start()
        other.close()
        self.holds: dict[str, Record] = {}
        self.key, self.at = "", ""
        self._patience, self._is_ready, self._since = setting.patience, False, time.monotonic()

    def ask(self, job: Job) -> None:
        """Have it do something."""
        self.key, self.at, self._since = job[1], "", time.monotonic()
        with suppress(OSError):  # it is dead: that is seen where it is heard
            self.pipe.send(job)

    def heard(self, *, is_speaking: bool) -> Record | None:
        """What it has found out, or how it was lost; None while it is at work."""
        if not is_speaking:
            limit = self._patience if self._is_ready else STARTING
            if time.monotonic() - self._since <= limit:
                return None
            return self._lost(f"it took more than {limit:.0f} s")
        try:
            record: Record | str = self.pipe.recv()
        except (EOFError, OSError):
            return self._lost("its process died")
        if isinstance(record, str):
            self._is_ready, self._since = True, time.monotonic()
            self.at = "" if record == READY else record
            return None
        return record

    def _lost(self, reason: str) -> Record:
        return {"key": self.key, "state": LOST, "at": self.at, "reason": f"{reason}; {self.end()}"}

    def end(self) -> str:
        """Stop the process; how it ended."""
        self.pipe.close()
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(10)
        return f"exit code {self._process.exitcode}"


class Pool:
    """``run`` prepares and times cases until ``end``, and notes what is found out."""

    def __init__(
        self, count: int, setting: Setting, note: Callable[[Record], None], work: Work
    ) -> None:
        self._setting, self._note, self._work = setting, note, work
        self._without: dict[str, tuple[str, ...]] = {}
        self._reasons: dict[str, dict[str, str]] = {}
        self._workers = [Worker(setting, work) for _ in range(count)]

    def run(self, keys: Iterable[str], *, each: float, end: float) -> None:
        """Prepare all, then time all; ``each`` seconds are kept for timing a case."""
        left = list(keys)
        while left and time.monotonic() < end:
            self._prepare(left, each, end)
            left = self._time(end)

    def close(self) -> None:
        """Stop all processes."""
        for worker in self._workers:
            worker.end()

    def _prepare(self, keys: list[str], each: float, end: float) -> None:
        """Prepare cases while there is time to time them."""
        waiting, idle = list(keys), list(self._workers)
        busy: list[Worker] = []
        while True:
            for worker in list(idle):
                if waiting and self._has_time(each, end, len(busy) + 1, LAST):
                    worker.ask(self._job(PREPARE, waiting.pop(0)))
                    idle.remove(worker)
                    busy.append(worker)
            if not busy or not self._has_time(each, end, 0, 0.0):
                break
            for worker, record in self._records(busy):
                busy.remove(worker)
                again, free = self._took(worker, record)
                waiting[:0] = again
                idle.append(free)
        for worker in busy:  # what it holds is left for the next run
            worker.end()
            self._workers.remove(worker)

    def _has_time(self, each: float, end: float, more: int, last: float) -> bool:
        """Whether what is prepared, and so many ``more``, can still be timed."""
        held = sum(len(worker.holds) for worker in self._workers)
        return time.monotonic() + each * (held + more) + last < end

    def _took(self, worker: Worker, record: Record) -> tuple[list[str], Worker]:
        """Note what came of preparing a case; cases to prepare again, and who is free now."""
        if record["state"] == LOST:
            return self._recover(worker, record)
        if record["state"] == PREPARED:
            worker.holds[record["key"]] = record
        else:
            self._note(record)
        return [], worker

    def _time(self, end: float) -> list[str]:
        """Time all prepared cases in turn; what has to be prepared again."""
        again: list[str] = []
        for worker in list(self._workers):
            while worker.holds and time.monotonic() < end:
                key = next(iter(worker.holds))
                worker.ask((TIME, key, ()))
                record = None
                while record is None:
                    record = next((r for _, r in self._records([worker])), None)
                if record["state"] == LOST:
                    again += self._recover(worker, record)[0]
                    break
                del worker.holds[key]
                self._note(self._complete(record))
        return again

    def _job(self, what: str, key: str) -> Job:
        return what, key, self._without.get(key, ())

    def _records(self, workers: list[Worker]) -> list[tuple[Worker, Record]]:
        """What workers have to say within a second."""
        ready = wait([worker.pipe for worker in workers], timeout=1.0)
        said = [(w, w.heard(is_speaking=w.pipe in ready)) for w in list(workers)]
        return [(worker, record) for worker, record in said if record is not None]

    def _recover(self, worker: Worker, record: Record) -> tuple[list[str], Worker]:
        """The cases that a lost worker leaves, and another worker in its place."""
        key, at = record["key"], record["at"]
        again = [held for held in worker.holds if held != key]
        self._without[key] = (*self._without.get(key, ()), at)
        self._reasons.setdefault(key, {})[at] = record["reason"]
        if at and len(self._without[key]) < TRIES:
            again.insert(0, key)
        else:
            self._note({"key": key, "state": FAILED, "failed": self._reasons[key]})
        return again, self._replace(worker)

    def _replace(self, worker: Worker) -> Worker:
        worker.end()
        new = Worker(self._setting, self._work)
        self._workers[self._workers.index(worker)] = new
        return new

    def _complete(self, record: Record) -> Record:
        lost = self._reasons.get(record["key"], {})
        return record | {"failed": {**record["failed"], **lost}}


def work(pipe: Connection, setting: Setting) -> None:
    """What a process does: prepare and time the cases that it is told."""
    import torch
    import torch._inductor.config

    from bench.peers.cases import BY_KEY
    from bench.peers.trial import LostDeviceError, Prepared, measured, prepared

    torch.set_num_threads(1)
    torch._inductor.config.compile_threads = 1  # there are enough processes
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    known: dict[str, Prepared] = {}
    with torch.no_grad(), suppress(EOFError, ConnectionError):
        pipe.send(READY)
        while True:
            what, key, without = pipe.recv()
            case = BY_KEY[key]
            try:
                if what == PREPARE:
                    inputs = case.drawn(case.sizes, "cuda", seed=1)
                    chosen = taking_part(case, setting, without)
                    known[key] = prepared(case, chosen, inputs, pipe.send)
                    pipe.send({"key": key, "state": PREPARED})
                else:
                    pipe.send(measured(known.pop(key), pipe.send))
            except LostDeviceError:
                os._exit(1)  # it would hang, or fail again, while it lets go of the device
            except Exception as error:  # of the case itself: the other cases go on
                reason = f"{type(error).__name__}: {error}"[:600]
                pipe.send({"key": key, "state": FAILED, "failed": {"case": reason}})


def taking_part(case: Case, setting: Setting, without: tuple[str, ...] = ()) -> list[Contestant]:
    """The contestants of a case that a run asks for."""
    return [
        one if setting.library or one.alone is None else replace(one, make=one.alone)
        for one in case.contestants
        if one.name not in without
        and (one.kind == OURS or not setting.ours_only)
        and (setting.searches or not one.searched)
    ]
