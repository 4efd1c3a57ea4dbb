"""Calls of functions in worker processes: a call that crashes or hangs ends only its worker.

A worker (runtime/worker.py) has loaded Triton and torch, and keeps the state that its calls set up:
the context of a GPU, handles of libraries, Triton's files. So a worker's first call is slow, and
later ones are not. A worker whose call fails ends, because a fault of a GPU stays in its process;
the next call gets a new one. All workers end with the calling process. A function is sent by its
importable name.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from blockbuster.errors import shown_lines
from blockbuster.runtime import worker
from blockbuster.runtime.launch import server_environment
from blockbuster.tuning.entry import LATE

T = TypeVar("T")

LOADED = ("torch", "triton", "triton.compiler", "blockbuster.check.loading")
"""What workers load before their first call."""
MOST = 8
"""Workers side by side, at most: each holds a context of a GPU, half a gigabyte."""
LOADING = 60.0
"""Seconds in which a worker has loaded what it needs, also from a slow disk."""


class Lost(Exception):
    """A call that gave no result, and why."""


def called(modules: tuple[str, ...], until: float, function: Callable[..., T], *given: object) -> T:
    """The result of a function in a worker that has ``modules`` loaded.

    Raises Lost if it raises, crashes, or has not ended at ``until`` of the monotonic clock.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise Lost(LATE)
    with tempfile.TemporaryDirectory(prefix="blockbuster-") as name:
        folder, code = Path(name), f"from {__name__} import serve; serve({modules!r})"
        (folder / "call").write_bytes(pickle.dumps((function, given)))
        environment = server_environment(interpreted=False)
        try:
            failed = worker.run_job(folder, code, environment, left, lasting=True)
        except TimeoutError as error:
            raise Lost(f"its worker {error}") from None
        except worker.Ended as end:
            how = f"by signal {-end.code}" if end.code < 0 else f"with code {end.code}"
            raise Lost(f"its worker ended {how}") from None
        if failed:
            raise Lost(_reason(folder / "log"))
        result: T = pickle.loads((folder / "result").read_bytes())
        return result


def ready(modules: tuple[str, ...], count: int, begin: Callable[[], object]) -> None:
    """Wait until ``count`` workers have called ``begin``, or have had the time for that."""

    def call(_: int) -> None:
        with suppress(Lost):  # the calls that follow say why
            called(modules, time.monotonic() + LOADING, begin)

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(call, range(count)))


def cores() -> int:
    """How many workers compute side by side here."""
    return min(MOST, len(os.sched_getaffinity(0)))


def _reason(log: Path) -> str:
    """Why a call failed: the whole message of the error behind the last traceback of what it said,
    or its last line.
    """
    lines = shown_lines(log.read_text(encoding="utf-8", errors="replace").strip())
    raised = [at for at, line in enumerate(lines) if line.startswith('  File "')]
    behind = range(raised[-1] + 1 if raised else len(lines) - 1, len(lines))
    first = next((at for at in behind if lines[at] and not lines[at].startswith(" ")), None)
    said = "; ".join(line.strip() for line in lines[first:] if line.strip()) if first else ""
    return said or lines[-1].strip() or "its process failed without a word"


# in a worker -----------------------------------------------------------------------------


def serve(modules: tuple[str, ...]) -> None:
    """Load slow modules, then answer calls until one fails."""
    for name in modules:
        import_module(name)
    worker.serve_itself(_work)


def _work(folder: Path) -> None:
    function, given = pickle.loads((folder / "call").read_bytes())
    (folder / "result").write_bytes(pickle.dumps(function(*given)))
