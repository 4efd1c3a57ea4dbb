"""Functions called in processes of their own, which may crash or hang alone.

A call is a fork of a server (runtime/worker.py) that has loaded Triton and, for work on a GPU,
torch; several calls are forks of such a fork. A function travels by the name under which it can be
imported.
"""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from blockbuster.errors import LaunchError, shown_lines
from blockbuster.runtime import worker
from blockbuster.runtime.launch import server_environment

T = TypeVar("T")
A = TypeVar("A")

LOADED = ("torch", "triton", "triton.compiler", "blockbuster.check.loading")
"""What a server loads, so that none of its forks has to: Triton itself loads torch on a GPU."""
LATE = "no time was left for it"
MOST = 16
"""Processes that work side by side, at most: each holds a GPU's context, half a gigabyte."""
QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Where Linux says how many microseconds of each period a container may compute; or "max"."""
LOADING = 60.0
"""Seconds in which a server has loaded what it needs, also from a slow disk."""
POLL = 0.005
"""Seconds between two looks at what processes have ended."""


class Lost(Exception):
    """A call that gave no result, and why."""


@dataclass(frozen=True)
class Gone:
    """Stands for the result of one of several calls that is lost, and says why."""

    reason: str


def called(modules: tuple[str, ...], until: float, function: Callable[..., T], *given: Any) -> T:
    """What a function gives in a process of its own that has ``modules`` loaded.

    Raises Lost if it raises, crashes, or has not ended at ``until`` of the monotonic clock.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise Lost(LATE)
    with tempfile.TemporaryDirectory(prefix="blockbuster-") as name:
        folder, code = Path(name), server(modules)
        (folder / "call").write_bytes(pickle.dumps((function, given)))
        try:
            status = worker.run_job(folder, code, server_environment(interpreted=False), left)
        except (TimeoutError, LaunchError) as error:
            raise Lost(f"its process {error}") from None
        if status:
            raise Lost(_ended(status, folder / "log"))
        result: T = pickle.loads((folder / "result").read_bytes())
        return result


def called_for_each(
    modules: tuple[str, ...],
    until: float,
    function: Callable[[A], T],
    given: Sequence[A],
    *,
    count: int,
) -> list[T | Gone]:
    """What a function gives for each of several values, ``count`` processes at a time."""
    if not given:
        return []
    try:
        return called(modules, until + 1, _side_by_side, until, function, given, count)
    except Lost as lost:
        return [Gone(str(lost)) for _ in given]


def ready(modules: tuple[str, ...]) -> None:
    """Wait until a server has ``modules`` loaded, or has had the time for that."""
    with suppress(Lost):  # the calls that follow say why
        called(modules, time.monotonic() + LOADING, os.getpid)


def cores() -> int:
    """The processor cores that this process may use: a container often has a share of them."""
    cores = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = QUOTA.read_text(encoding="ascii").split()
        cores = min(cores, int(quota) // int(period))
    return max(1, min(MOST, cores))


def server(modules: tuple[str, ...]) -> str:
    """The code of a server that loads ``modules`` first."""
    return f"from blockbuster.tuning.forks import serve; serve({modules!r})"


def _ended(status: int, log: Path) -> str:
    """Why a process ended badly, in words."""
    if status < 0:
        return f"its process was ended by signal {-status}"
    lines = shown_lines(log.read_text(encoding="utf-8", errors="replace").strip())
    return lines[-1] if lines and lines[-1] else f"its process ended with code {status}"


# in a server -----------------------------------------------------------------------------


def serve(modules: tuple[str, ...]) -> None:
    """Load what is slow to load, then fork a process for each call."""
    for name in modules:
        import_module(name)
    if "triton" in modules:
        _warm()
    worker.serve(_work)


def _warm() -> None:
    """What Triton would do in each fork: read all of itself for a key, import its other dialect."""
    with suppress(ImportError):  # other versions have them elsewhere
        import_module("triton.runtime.cache").triton_key()
        import_module("triton.experimental.gluon")


def _work(folder: Path) -> None:
    function, given = pickle.loads((folder / "call").read_bytes())
    (folder / "result").write_bytes(pickle.dumps(function(*given)))


def _side_by_side(
    until: float, function: Callable[[A], T], given: Iterable[A], count: int
) -> list[T | Gone]:
    """Fork a process for each value, ``count`` at a time; those that run at ``until`` are ended."""
    with tempfile.TemporaryDirectory(prefix="blockbuster-") as name:
        folder = Path(name)
        waiting: Iterator[tuple[int, A]] = iter(enumerate(given))
        running: dict[int, int] = {}
        reasons: dict[int, str] = {}
        following = next(waiting, None)
        while running or following:
            if following and len(running) < count and time.monotonic() < until:
                at, value = following
                running[_forked(folder / str(at), function, value)] = at
                following = next(waiting, None)
            elif following and not running and time.monotonic() >= until:
                reasons[following[0]] = LATE
                following = next(waiting, None)
            else:
                reasons |= _reaped(running, folder, until)
        return [_result(folder / str(at), reasons[at]) for at in sorted(reasons)]


def _reaped(running: dict[int, int], folder: Path, until: float) -> dict[int, str]:
    """Wait a moment for processes: those that ended, with the reason of those that ended badly."""
    if time.monotonic() >= until:
        for process in running:
            os.kill(process, signal.SIGKILL)
    found = {}
    for process in [*running]:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            at, code = running.pop(process), os.waitstatus_to_exitcode(status)
            late = code == -signal.SIGKILL and time.monotonic() >= until
            log = folder / f"{at}.log"
            found[at] = LATE if late else _ended(code, log) if code else ""
    if not found:
        time.sleep(POLL)
    return found


def _forked(place: Path, function: Callable[[A], T], value: A) -> int:
    """The number of a new process, which writes what ``function`` gives into ``place``."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        log = os.open(place.with_suffix(".log"), os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        place.write_bytes(pickle.dumps(function(value)))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _result(place: Path, reason: str) -> Any:
    return Gone(reason) if reason else pickle.loads(place.read_bytes())
