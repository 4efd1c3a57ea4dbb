"""Functions called in processes of their own, which may crash or hang alone.

Each call is a fork of a server (runtime/worker.py) that has loaded Triton and, for work on a GPU,
torch. A function travels by the name under which it can be imported.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from blockbuster.errors import LaunchError, shown_lines
from blockbuster.runtime import worker
from blockbuster.runtime.launch import server_environment

T = TypeVar("T")

COMPILING = ("triton", "triton.compiler")
RUNNING = ("torch", *COMPILING)
LATE = "no time was left for it"
MOST = 16
"""Processes that compile side by side, at most."""


class Lost(Exception):
    """A call that gave no result, and why."""


def called(modules: tuple[str, ...], until: float, function: Callable[..., T], *given: Any) -> T:
    """What a function gives in a process of its own that has ``modules`` loaded.

    Raises Lost if it raises, crashes, or has not ended at ``until`` of the monotonic clock.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise Lost(LATE)
    with tempfile.TemporaryDirectory(prefix="blockbuster-") as name:
        folder = Path(name)
        (folder / "call").write_bytes(pickle.dumps((function, given)))
        try:
            code = worker.run_job(
                folder, server(modules), server_environment(interpreted=False), left
            )
        except (TimeoutError, LaunchError) as error:
            raise Lost(f"its process {error}") from None
        if code < 0:
            raise Lost(f"its process was ended by signal {-code}")
        if code:
            raise Lost(_last_words(folder, code))
        result: T = pickle.loads((folder / "result").read_bytes())
        return result


def server(modules: tuple[str, ...]) -> str:
    """The code of a server that loads ``modules`` first."""
    return f"from blockbuster.tuning.forks import serve; serve({modules!r})"


def _last_words(folder: Path, code: int) -> str:
    lines = shown_lines((folder / "log").read_text(encoding="utf-8", errors="replace").strip())
    return lines[-1] if lines and lines[-1] else f"its process ended with code {code}"


class Compilers(Executor):
    """Calls side by side, in processes that have Triton. Those end with this context.

    A call that is lost gives the reason, as ``ranking.compiled`` gives that of a refusal.
    """

    def __init__(self, until: float, count: int = 0) -> None:
        self._until = until
        self._threads = ThreadPoolExecutor(count or min(MOST, len(os.sched_getaffinity(0))))

    def submit(self, function: Callable[..., T], /, *given: Any, **named: Any) -> Future[T]:
        """Call ``function`` in a process."""
        call: Callable[..., T] = partial(function, **named) if named else function
        return self._threads.submit(self._result, call, *given)

    def _result(self, function: Callable[..., Any], *given: Any) -> Any:
        try:
            return called(COMPILING, self._until, function, *given)
        except Lost as lost:
            return str(lost)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        worker.dismiss(server(COMPILING))


# in a server -----------------------------------------------------------------------------


def serve(modules: tuple[str, ...]) -> None:
    """Load what is slow to load, then fork a process for each call."""
    for name in modules:
        import_module(name)
    worker.serve(_work)


def _work(folder: Path) -> None:
    function, given = pickle.loads((folder / "call").read_bytes())
    (folder / "result").write_bytes(pickle.dumps(function(*given)))
