"""Processes that try draws, each many: one that dies or hangs costs its seed and is replaced.

They are forked from a server that has torch, Triton and Blockbuster loaded and no GPU in use, so
that a new one takes a moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from bench.gpu.fuzz.draw import draw

Record = dict[str, Any]
Work = Callable[[Connection, "Setting"], None]

LOADED = (
    "torch", "numpy", "triton", "triton.compiler", "triton.language", "blockbuster",
    "bench.gpu.fuzz.trial",
)  # fmt: skip
READY = "ready"
STARTING = 120.0  # seconds that a process has before its first seed
DIED, HUNG = "died", "hung"
LOST_DEVICE = "device error"  # CUDA is of no more use to the process that saw it
LOST = (DIED, HUNG, LOST_DEVICE)


@dataclass(frozen=True)
class Setting:
    """What all processes of a run have in common.

    ``environment`` is theirs beside that of this process, ``without`` what is taken out (see
    without.py); a draw has ``limit`` seconds.
    """

    device: str
    environment: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    limit: float = 60.0


class Worker:
    """A process, the seed that it is at, and since when."""

    def __init__(self, setting: Setting, work: Work) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload(list(LOADED))
        self.pipe, other = context.Pipe()
        self._process = context.Process(target=work, args=(other, setting), daemon=True)
        self._process.start()
        other.close()
        self._limit = setting.limit
        self._is_ready = False
        self._seed: int | None = None
        self._since = time.monotonic()

    def begin(self, seed: int) -> None:
        """Have it try a seed."""
        self._seed, self._since = seed, time.monotonic()
        with suppress(OSError):  # it is dead: that is seen where it is heard
            self.pipe.send(seed)

    def heard(self, *, is_speaking: bool) -> Record | None:
        """The record of its seed, by it or of how it was lost; None while it is at work.

        A process that is lost has ended afterwards.
        """
        if not is_speaking:
            late = f"more than {self._limit:.0f} s"
            return self._ended(HUNG, f"{late}; {self.end()}") if self._is_late else None
        try:
            record: Record | str = self.pipe.recv()
        except (EOFError, OSError):
            return self._ended(DIED, self.end())
        if isinstance(record, str):
            assert record == READY
            self._is_ready, self._since = True, time.monotonic()
            return None
        if record["verdict"] in LOST:
            self.end()
        self._seed = None
        return record

    @property
    def _is_late(self) -> bool:
        limit = self._limit if self._is_ready else STARTING
        return self._seed is not None and time.monotonic() - self._since > limit

    def end(self) -> str:
        """Stop the process; how it ended."""
        self.pipe.close()
        self._process.join(0 if self._is_late else 10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(10)
        return f"exit code {self._process.exitcode}"

    def _ended(self, verdict: str, reason: str) -> Record:
        assert self._seed is not None
        found = draw(self._seed).described(source=True)
        found |= {"verdict": verdict, "reason": reason}
        return found | {"seconds": round(time.monotonic() - self._since, 2)}


def run(
    seeds: Iterator[int],
    workers: int,
    setting: Setting,
    end: float,
    note: Callable[[Record], None],
    *,
    work: Work | None = None,
) -> None:
    """Try seeds until they or the time are used up; ``note`` gets a record for each that began.

    ``work`` is what the processes run (default: ``try_seeds``). Raises RuntimeError where they die
    one after the other: then it is not the programs.
    """

    def made() -> Worker:
        return Worker(setting, work or try_seeds)

    def next_of(worker: Worker) -> list[Worker]:
        seed = next(seeds, None) if time.monotonic() < end else None
        if seed is None:
            worker.end()
            return []
        worker.begin(seed)
        return [worker]

    busy = [worker for _ in range(workers) for worker in next_of(made())]
    deaths = 0
    while busy:
        ready = wait([worker.pipe for worker in busy], timeout=1.0)
        for worker in list(busy):
            record = worker.heard(is_speaking=worker.pipe in ready)
            if record is None:
                continue
            busy.remove(worker)
            note(record)
            deaths = deaths + 1 if record["verdict"] == DIED else 0
            if deaths > 2 * workers + 3:
                raise RuntimeError(f"process after process dies: {record['reason']}")
            busy += next_of(made() if record["verdict"] in LOST else worker)


def try_seeds(pipe: Connection, setting: Setting) -> None:
    """Take seeds and send records, until there are no more seeds, or the device is lost."""
    os.environ.update(setting.environment)
    import warnings

    import torch

    from bench.gpu.fuzz.trial import tried
    from bench.gpu.fuzz.without import take_out

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    check = take_out(setting.without)
    pipe.send(READY)
    while True:
        try:
            seed = pipe.recv()
        except EOFError:
            return
        record = tried(draw(seed), setting.device, check=check)
        pipe.send(record)
        if record["verdict"] == LOST_DEVICE:
            os._exit(1)  # it would hang, or fail again, while it lets go of the device
