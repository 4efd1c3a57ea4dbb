"""Processes that try draws, each many: one that dies or hangs costs its seed and is replaced.

They are forked from a server that has torch, Triton and Blockbuster loaded and no GPU in use, so
that a new one takes a moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

Record = dict[str, Any]

LOADED = (
    "torch", "numpy", "triton", "triton.compiler", "triton.language", "blockbuster",
    "bench.gpu.fuzz.trial",
)  # fmt: skip
FATAL = "device error"  # CUDA is of no more use to the process that saw it


@dataclass(frozen=True)
class Setting:
    """What all processes of a run have in common: see ``__main__.py``.

    ``environment`` is theirs beside that of this process; a draw has ``limit`` seconds.
    """

    device: str
    environment: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    limit: float = 60.0


class Worker:
    """A process, the seed that it is at, and since when."""

    def __init__(self, setting: Setting) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload(list(LOADED))
        self.pipe, other = context.Pipe()
        self._process = context.Process(target=work, args=(other, setting), daemon=True)
        self._process.start()
        other.close()
        self.seed: int | None = None
        self.since = 0.0

    def begin(self, seed: int) -> None:
        self.seed, self.since = seed, time.monotonic()
        self.pipe.send(seed)

    def end(self) -> str:
        """Stop the process; how it ended."""
        self.pipe.close()
        if self.seed is None:
            self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        return f"exit code {self._process.exitcode}"

    def died(self) -> str:
        """How a process ended that ended by itself."""
        self._process.join(10)
        return self.end()


def run(
    seeds: Iterator[int], workers: int, setting: Setting, end: float, note: Callable[[Record], None]
) -> None:
    """Try seeds until they or the time are used up; ``note`` gets a record for each that began."""
    busy: list[Worker] = []

    def start(worker: Worker) -> None:
        seed = next(seeds, None) if time.monotonic() < end else None
        if seed is None:
            worker.end()
            return
        try:
            worker.begin(seed)
        except OSError:  # it died between two seeds: the next one takes over
            note(_ended(worker, "died", worker.died()))
            return
        busy.append(worker)

    for _ in range(workers):
        start(Worker(setting))
    while busy:
        ready = wait([worker.pipe for worker in busy], timeout=1.0)
        for worker in list(busy):
            late = time.monotonic() - worker.since > setting.limit
            if worker.pipe not in ready and not late:
                continue
            busy.remove(worker)
            record = _heard(worker, setting) if worker.pipe in ready else None
            if record is None:
                how = worker.end()
                record = _ended(worker, "hung", f"more than {setting.limit:.0f} s; {how}")
            note(record)
            fit = record["verdict"] not in (FATAL, "died", "hung")
            if not fit and record["verdict"] == FATAL:
                worker.died()
            worker.seed = None
            start(worker if fit else Worker(setting))


def _heard(worker: Worker, setting: Setting) -> Record:
    """The record that a process sent, or what is known where it ended instead."""
    try:
        record: Record = worker.pipe.recv()
    except (EOFError, OSError):
        return _ended(worker, "died", worker.died())
    return record


def _ended(worker: Worker, verdict: str, reason: str) -> Record:
    from bench.gpu.fuzz.draw import draw

    assert worker.seed is not None
    lost = draw(worker.seed)
    record: Record = {"seed": lost.seed, "family": lost.family, "dtype": lost.dtype}
    record |= {"verdict": verdict, "reason": reason, "source": lost.source}
    record["forced"] = str(lost.forced) if lost.forced else ""
    record["inputs"] = {name: str(given) for name, given in lost.inputs.items()}
    return record | {"seconds": round(time.monotonic() - worker.since, 2)}


def work(pipe: Connection, setting: Setting) -> None:
    """Take seeds and send records, until there are no more seeds, or the device is lost."""
    os.environ.update(setting.environment)
    import warnings

    import torch

    from bench.gpu.fuzz.draw import draw
    from bench.gpu.fuzz.trial import tried
    from bench.gpu.fuzz.without import take_out

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    check = take_out(setting.without)
    while True:
        try:
            seed = pipe.recv()
        except EOFError:
            return
        record = tried(draw(seed), setting.device, check=check)
        pipe.send(record)
        if record["verdict"] == FATAL:
            os._exit(1)  # the process would hang, or fail again, while it lets go of the device
