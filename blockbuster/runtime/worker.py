"""A server process that has loaded slow packages, and forks a process of its own for each job.

So a job starts within milliseconds, sees nothing of earlier jobs, and may crash or hang alone. A
job is a folder; its output is kept there, in ``log``.

    client                          server                          job
    folder of a job -- stdin -->    fork                      -->   read, compute, write, exit
    exit code       <-- stdout --   wait

If jobs share state that takes long to set up, such as a GPU's context, a server runs them itself
(``serve_itself``), and ends with the first that fails.

The server ends when its standard input closes, whatever has become of the client: no process is
left behind.
"""

from __future__ import annotations

import atexit
import gc
import os
import select
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from blockbuster.errors import LaunchError


class Ended(LaunchError):
    """A server that ended by itself, with its exit code; negative for a signal."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"lost its server, which ended with code {code}: {said}")
        self.code = code


IDLE: list[Server] = []
"""Servers that wait for a job, for the next one that comes: at most as many as ran side by side."""


class Server:
    """The end of a server that asks: ``code`` is Python that calls ``serve``."""

    def __init__(self, code: str, environment: Mapping[str, str]) -> None:
        self.code = code
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 -- open as long as the server
        # a session of its own: Ctrl-C is for who asks, and its jobs can be ended with it
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=dict(environment),
            start_new_session=True,
        )

    @property
    def is_alive(self) -> bool:
        """True until the process has ended."""
        return self._process.poll() is None

    def run(self, job: Path, timeout: float) -> int:
        """The exit code of a job, negative for a signal. Raises LaunchError, TimeoutError."""
        self.begin(job)
        return self.result(timeout)

    def begin(self, job: Path) -> None:
        """Start a job. Raises LaunchError if the server does not live."""
        assert self._process.stdin
        try:
            self._process.stdin.write(os.fsencode(job) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def result(self, timeout: float) -> int:
        """The exit code of the job that was started last. Raises LaunchError, TimeoutError."""
        assert self._process.stdout
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            raise TimeoutError(f"did not finish within {timeout:g} s")
        answer = self._process.stdout.readline()
        if not answer:
            raise self._ended()
        return int(answer)

    def fileno(self) -> int:
        """A descriptor that becomes readable when the job, or the server, has ended."""
        assert self._process.stdout
        return self._process.stdout.fileno()

    def _ended(self) -> Ended:
        """What to say of a server that ended by itself. What is left of its job ends, too."""
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        self._log.seek(0)
        text = self._log.read().decode(errors="replace").strip()
        return Ended(code, text[-2000:])

    def kill(self) -> None:
        """End the server, and the job that it runs, now."""
        if self._process.returncode is None:  # else its number may be another's by now
            os.killpg(self._process.pid, signal.SIGKILL)
        self.end()

    def end(self) -> None:
        """Let the server end, and wait until it has."""
        self.leave()
        self._process.wait()

    def forget(self) -> None:
        """Close this end in a copy of the process that started the server."""
        self.leave()
        self._process.returncode = 0  # it is not our child, and cannot be waited for

    def leave(self) -> None:
        """Close this end. The server ends when nobody has one open."""
        for file in (self._process.stdin, self._process.stdout, self._log):
            assert file
            file.close()


def run_job(
    job: Path, code: str, environment: Mapping[str, str], timeout: float, *, lasting: bool = False
) -> int:
    """The exit code of a job, in a server that waits for one, or in a new one.

    ``lasting``: the server runs jobs itself (``serve_itself``), and ends with one that fails.
    Raises TimeoutError if the job takes longer, LaunchError if the server does not live.
    """
    server = take(code, environment)
    try:
        status = server.run(job, timeout)
    except BaseException:
        server.kill()
        raise
    if lasting and status:
        server.end()
    else:
        IDLE.append(server)
    return status


def take(code: str, environment: Mapping[str, str]) -> Server:
    """A server for this code, for one caller. It is killed, or put back into ``IDLE``."""
    return _waiting(code) or Server(code, environment)


def _waiting(code: str) -> Server | None:
    """A server for this code that is alive; no other thread gets it until it is idle again."""
    for server in [server for server in IDLE if server.code == code]:
        try:
            IDLE.remove(server)
        except ValueError:  # another thread was faster
            continue
        if server.is_alive:
            return server
        server.end()
    return None


@atexit.register
def _end_all() -> None:
    while IDLE:
        IDLE.pop().end()


def _forget_all() -> None:
    """In a copy of this process, which asks servers of its own."""
    while IDLE:
        IDLE.pop().forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


# the server ----------------------------------------------------------------------


def serve(run: Callable[[Path], None]) -> None:
    """Fork a process that calls ``run`` for each job, until standard input ends."""
    gc.freeze()  # jobs need not look through what they share
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    for line in iter(requests.readline, b""):
        job = Path(os.fsdecode(line.rstrip(b"\n")))
        answers.write(b"%d\n" % _forked(run, job, requests))
        answers.flush()


def serve_itself(run: Callable[[Path], None]) -> None:
    """Call ``run`` for each job, in this process, until standard input ends or a job fails.

    What one job has loaded or begun, the next one finds: a GPU's context, a library's handles.
    """
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    for line in iter(requests.readline, b""):
        code = _logged(run, Path(os.fsdecode(line.rstrip(b"\n"))))
        answers.write(b"%d\n" % code)
        answers.flush()
        if code:
            return


def _forked(run: Callable[[Path], None], job: Path, requests: BinaryIO) -> int:
    """The exit code of a process that runs the job. Where requests end meanwhile, so does it."""
    ends, end = os.pipe()
    with warnings.catch_warnings():  # of threads, of which only NumPy's libraries have some
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _in_child(run, job)
    os.close(end)
    # the pipe ends with the last process that holds its other end: the child
    if requests.fileno() in select.select([requests.fileno(), ends], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    os.close(ends)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _in_child(run: Callable[[Path], None], job: Path) -> None:
    """Run the job and exit. What it prints goes into its log."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        code = _logged(run, job)
    finally:
        os._exit(code)


def _logged(run: Callable[[Path], None], job: Path) -> int:
    """The exit code of a job. What it prints, and why it fails, goes into its log."""
    log = os.open(job / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(log, number)
    os.close(log)
    code = 1
    try:
        run(job)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code
