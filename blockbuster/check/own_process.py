"""Calls a checked kernel in a process of its own, so that a crash or a hang is a finding.

There are two kinds of process. A *fork* of this process has the kernel, whatever it is: a lambda, a
function of a notebook. But CUDA does not work in a fork of a process that has used it. Then the
kernel is sent to a *server* (worker.py) by name: pickled, its module imported anew. The driver is
the same:

    this process                               the kernel's process
    Call        -- connection -->              perform
    Outcome     <-- connection --
    the last of what it prints <-- pipe --     standard output and error
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from blockbuster.check.call import Call, Outcome, perform, read_outcome
from blockbuster.check.kernel_process import Forked, Served, emitted
from blockbuster.emit.kernel import Kernel
from blockbuster.errors import LaunchError, shown
from blockbuster.runtime.tensors import is_tensor

KEPT, SHOWN = 2**15, 1000  # bytes of what a kernel prints that are kept, and that are told
DUMP = "Fatal Python error: "  # what faulthandler writes before where Python was
POLL = 0.5  # seconds between two looks at whether a process is still there


class Child(Protocol):
    """A process that holds a kernel. ``connection`` takes calls, ``printed`` is what it prints."""

    connection: Connection
    printed: int

    def has_ended(self) -> bool:
        """True if it has ended by itself."""
        ...

    def ended(self) -> int:
        """Wait for the end, at most some seconds, and give the exit code; negative: a signal.

        Raises TimeoutError.
        """
        ...

    def kill(self) -> None:
        """End it, and what it has started, now."""
        ...


class Runner(Protocol):
    """The caller of a kernel. ``hangs``: a call took too long, and no other should follow."""

    hangs: bool

    def call(self, call: Call) -> Outcome:
        """The kernel's results, or why there are none."""
        ...

    def end(self) -> None:
        """End the process, if there is one."""
        ...


def runner(
    kernel: Callable[..., Any], arrays: Sequence[Any], *, own_process: bool, limit: float
) -> tuple[Runner, str]:
    """The caller of the kernel for such arrays; and why it is in this process, if it is."""
    if not own_process:
        return Here(kernel), "own_process=False says so"
    if not hasattr(os, "fork"):
        return Here(kernel), "this system cannot fork processes"
    on_gpu = any(is_tensor(array) and array.device.type != "cpu" for array in arrays)
    ours = isinstance(kernel, Kernel)
    if not ours and not on_gpu and not _cuda_is_used():
        return Alone(lambda: Forked(kernel), limit), ""
    run = emitted(kernel) if isinstance(kernel, Kernel) else kernel
    interpreted = ours and any(isinstance(array, np.ndarray) for array in arrays)
    try:
        return Alone(lambda: Served(run, interpreted=interpreted, limit=limit), limit), ""
    except (LaunchError, TimeoutError, OSError) as error:
        if ours or on_gpu:
            return Here(kernel), str(error)
    return Alone(lambda: Forked(kernel), limit), ""  # a kernel on CUDA says that it cannot fork


def _cuda_is_used() -> bool:
    """True if torch has used a GPU in this process, so that a fork of it cannot."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


class Here:
    """Calls in this process, without guard zones around what the launcher allocates."""

    hangs = False

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self._kernel = kernel

    def call(self, call: Call) -> Outcome:
        """The kernel's results."""
        return perform(self._kernel, call, alone=False)

    def end(self) -> None:
        """Nothing is left to end."""


class Alone:
    """Calls in a process of its own, and in the next one where that has ended.

    ``limit``: the seconds that one call may take.
    """

    def __init__(self, start: Callable[[], Child], limit: float) -> None:
        self._start, self._limit = start, limit
        self._child: Child | None = start()
        self._printed, self._answered = b"", bytearray()
        self.hangs = False

    def call(self, call: Call) -> Outcome:
        """The kernel's results, or how its process ended."""
        self._printed, self._answered = b"", bytearray()
        try:
            child = self._child = self._child or self._start()
            outcome = self._answer(child, call)
        except BaseException:
            self._drop()
            raise
        if self.hangs:
            self._drop()
        elif outcome.stopped:
            # what an exception leaves behind, on a GPU an error that stays, is not the next call's
            self.end()
        return outcome

    def _answer(self, child: Child, call: Call) -> Outcome:
        try:
            child.connection.send(call)
        except OSError:
            return self._told(child)
        watched: list[Any] = [child.connection, child.printed]
        until = time.monotonic() + self._limit
        while (left := until - time.monotonic()) > 0:
            ready = wait(watched, min(left, POLL))
            if child.printed in ready and not self._read(child):
                watched.remove(child.printed)
            if child.connection in ready:
                more = _more(child.connection)
                if not more:
                    return self._told(child)
                self._answered += more
                try:
                    outcome = outcome_of(self._answered)
                except ValueError as error:
                    self._drop()
                    return Outcome(stopped=f"wrote into the connection of its process: {error}")
                if outcome is not None:
                    return outcome
            if not ready and child.has_ended():  # while a process that it started lives on
                return self._told(child)
        self.hangs = True
        return Outcome(stopped=f"did not finish within {self._limit:g} s (time_limit=)")

    def _read(self, child: Child) -> bytes:
        """Keep the last of what was printed. Empty at its end."""
        text = os.read(child.printed, 2**16)
        self._printed = (self._printed + text)[-KEPT:]
        return text

    def _told(self, child: Child) -> Outcome:
        """How a process ended, with the last that it printed."""
        try:
            code = child.ended()
        except (TimeoutError, LaunchError) as error:
            return Outcome(stopped=f"closed its connection, and {error}")
        while wait([child.printed], 0) and self._read(child):
            pass
        said, _, dump = self._printed.decode(errors="replace").partition(DUMP)
        text = f"ended its process {_how(code)}{_place(dump)}"
        said = shown(said.strip()[-SHOWN:])
        return Outcome(stopped=f"{text}; it printed: {said}" if said else text)

    def _drop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def end(self) -> None:
        """End the process."""
        if self._child is not None:
            with suppress(OSError, LaunchError):  # a TimeoutError is an OSError
                self._child.connection.send(None)
                self._child.ended()
            self._drop()


def _more(connection: Connection) -> bytes:
    """What can be read without waiting for more. Empty at the end."""
    with suppress(OSError):
        return os.read(connection.fileno(), 2**20)
    return b""


def outcome_of(answered: bytearray) -> Outcome | None:
    """The answer of a process, sent by `Connection.send_bytes`; None while it is incomplete.

    A kernel can write there, too. So nothing waits for bytes that do not come. Raises ValueError
    for bytes that are no answer.
    """
    start, size = 4, int.from_bytes(answered[:4], "big", signed=True)
    if size == -1:
        start, size = 12, int.from_bytes(answered[4:12], "big")
    if len(answered) < start or 0 <= len(answered) - start < size:
        return None
    if len(answered) != start + size:
        raise ValueError("more than one answer was read")
    return read_outcome(bytes(memoryview(answered)[start:]))


def _place(dump: str) -> str:
    """Which line of the launcher ran when a signal came: the caller of its frame is ``perform``."""
    found = re.search(
        r'File "([^"]*)", line (\d+) in .*\n *File "[^"]*", line \d+ in perform', dump
    )
    return f" ({Path(found[1]).name}, line {found[2]})" if found else ""


def _how(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}, in the middle of a call"
    name = signal.Signals(-code).name
    memory = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGTRAP")
    cause = ": most likely it reads or writes out of bounds" if name in memory else ""
    return f"by signal {-code} ({name}){cause}"
