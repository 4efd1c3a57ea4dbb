"""Processes that hold a checked kernel: a fork of this one, or a server's that imports the kernel.

Each answers calls until its connection is closed, and ends when this process does. Processes that a
fork has started end with it.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import pickle
import pickletools
import runpy
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import ModuleType
from typing import Any

from blockbuster.check.call import perform, written
from blockbuster.emit.kernel import Kernel
from blockbuster.emit.target.load import load_module
from blockbuster.errors import LaunchError, message
from blockbuster.runtime import worker
from blockbuster.runtime.launch import SLOW_TO_LOAD, as_parameters, server_environment

Run = Callable[..., Any]

PATIENCE = 10.0  # seconds that a process without work has to end
END_WITH_PARENT = 1  # Linux: PR_SET_PDEATHSIG


@dataclass(frozen=True)
class Emitted:
    """The launcher of an emitted file, in the process that calls it."""

    source: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __call__(self, **arrays: Any) -> Any:
        """The result of the file's ``launch``."""
        module = load_module(self.source)
        return module.launch(**as_parameters(module, self.inputs, self.outputs, arrays))


def emitted(kernel: Kernel) -> Emitted:
    """The launcher of a kernel of ours."""
    return Emitted(kernel.source, kernel.inputs, kernel.outputs)


# a fork of this process ----------------------------------------------------------


class Forked:
    """A fork of this process."""

    def __init__(self, kernel: Run) -> None:
        self.connection, theirs = Pipe()
        self.printed, prints = os.pipe()
        _flush()
        with warnings.catch_warnings():  # of threads: the child starts none of their work
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            self.connection.close()
            os.close(self.printed)
            _in_fork(kernel, theirs, prints)
        theirs.close()
        os.close(prints)
        self._code: int | None = None

    def has_ended(self) -> bool:
        """True if it has ended by itself. What it has started ends then, too."""
        return self._reaped(os.WNOHANG) is not None

    def _reaped(self, how: int) -> int | None:
        """The exit code, once it has ended."""
        if self._code is None:
            pid, status = os.waitpid(self._pid, how)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._pid, signal.SIGKILL)
        return self._code

    def ended(self) -> int:
        """The exit code; TimeoutError if it does not end."""
        until = time.monotonic() + PATIENCE
        while (code := self._reaped(os.WNOHANG)) is None:
            if time.monotonic() > until:
                raise TimeoutError("did not end")
            time.sleep(0.001)
        return code

    def kill(self) -> None:
        """End it, and what it has started, now."""
        if not self.has_ended():
            os.kill(self._pid, signal.SIGKILL)
            self._reaped(0)
        self.connection.close()
        os.close(self.printed)


def _in_fork(kernel: Run, connection: Connection, prints: int) -> None:
    """Answer calls, and exit."""
    code = 1
    try:
        os.setsid()
        _end_with_parent()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _print_into(prints)
        if "torch" in sys.modules:  # its threads are in the other process
            sys.modules["torch"].set_num_threads(1)
        _answer(kernel, connection)
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        with suppress(BaseException):
            _flush()
        os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _end_with_parent() -> None:
    """End when the process that made this one does, and leave no file of its memory."""
    with suppress(AttributeError, OSError):  # systems other than Linux
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
    with suppress(ImportError, OSError, ValueError):
        resource = import_module("resource")
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _print_into(descriptor: int) -> None:
    """Standard output and error go there, and where Python was when a signal came."""
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout = open(1, "w", buffering=1, closefd=False, errors="replace")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="replace")  # noqa: SIM115
    faulthandler.enable(2)


def _answer(kernel: Run, connection: Connection) -> None:
    """Perform calls until there is none, or the connection is closed.

    A copy of this process that comes back from a kernel (one that forks) ends: it has no answer.
    """
    own = os.getpid()
    while True:
        try:
            call = connection.recv()
        except EOFError:
            return
        if call is None:
            return
        outcome = perform(kernel, call, alone=True)
        if os.getpid() != own:
            os._exit(0)
        _flush()
        connection.send_bytes(written(outcome))
        del call, outcome


# a process of a server -----------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """The data from which a server's process imports the kernel: module paths, and its name."""

    kernel: bytes
    main: tuple[str, str] | None
    paths: tuple[str, ...]
    arguments: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]


def named(kernel: Run) -> tuple[bytes, tuple[str, str] | None]:
    """A kernel by name, and what to run for a kernel of ``__main__``: ("path" or "module", which).

    Raises LaunchError that says why there is no such name.
    """
    try:
        found = pickle.dumps(kernel)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise LaunchError(f"another process cannot import it ({error})") from None
    if all(argument != "__main__" for _, argument, _ in pickletools.genops(found)):
        return found, None
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return found, ("module", spec.name)
    path = getattr(main, "__file__", None)
    if path is None or not Path(path).is_file():
        raise LaunchError("another process cannot import it (it is in a notebook, or typed in)")
    return found, ("path", str(Path(path).resolve()))


class Served:
    """A process of a server, which has imported the kernel. LaunchError where that fails."""

    def __init__(self, kernel: Run, *, interpreted: bool, limit: float) -> None:
        found, main = named(kernel)
        environment = server_environment(interpreted=interpreted)
        paths = tuple(path or os.getcwd() for path in sys.path)
        job = Job(found, main, paths, tuple(sys.argv), os.getcwd(), environment)
        # what an interpreted Triton is, is settled when it is loaded: servers of the two differ
        loaded = (*SLOW_TO_LOAD, *(["torch"] if "torch" in sys.modules else []))
        interpret = environment.get("TRITON_INTERPRET", "0")
        code = f"{SERVER} serve({loaded}, {interpret!r})"
        self._server = worker.take(code, environment)
        self._code: int | None = None
        self._opened: list[socket.socket] = []
        try:
            with tempfile.TemporaryDirectory(prefix="blockbuster-") as name:
                self._begin(Path(name), job, limit)
            self._check_started(limit)
        except BaseException:
            self._server.kill()
            self._close()
            raise

    def _begin(self, folder: Path, job: Job, limit: float) -> None:
        """Send the job, and wait until its process has called back, twice."""
        (folder / "job.pickle").write_bytes(pickle.dumps(job))
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(folder / "door"))
            door.listen(2)
            self._server.begin(folder)
            for _ in range(2):
                if door not in wait([door, self._server.fileno()], limit):
                    self._raise_ended(folder)
                self._opened.append(door.accept()[0])
        self.connection = Connection(self._opened[0].detach())
        self.printed = self._opened[1].fileno()

    def _check_started(self, limit: float) -> None:
        """LaunchError unless the process has the kernel."""
        if self.connection not in wait([self.connection, self._server.fileno()], limit):
            raise LaunchError("another process did not import it")
        try:
            said = self.connection.recv()
        except (EOFError, OSError):
            raise LaunchError("another process ended while it imported it") from None
        if said is not None:
            raise LaunchError(f"another process cannot import it ({said})")

    def _raise_ended(self, folder: Path) -> None:
        """LaunchError: the job has not called back."""
        code = self._server.result(0)
        log = (folder / "log").read_text(encoding="utf-8", errors="replace").strip()
        raise LaunchError(f"another process ended with code {code}: {log[-1000:]}")

    def has_ended(self) -> bool:
        """True if it has ended by itself."""
        return self._code is not None or bool(wait([self._server.fileno()], 0))

    def ended(self) -> int:
        """The exit code; TimeoutError, LaunchError if it does not end, or the server did."""
        if self._code is None:
            self._code = self._server.result(PATIENCE)
            worker.IDLE.append(self._server)
        return self._code

    def kill(self) -> None:
        """End it now, and the server unless that waits already."""
        if self._code is None:
            self._server.kill()
            self._code = -signal.SIGKILL
        self.connection.close()
        self._close()

    def _close(self) -> None:
        for opened in self._opened:
            opened.close()


SERVER = "from blockbuster.check.kernel_process import serve;"


def refuse_to_nest() -> None:
    """LaunchError in a server's process: it imports a file that checks a kernel when imported."""
    if any(argument.startswith(SERVER) for argument in sys.orig_argv):
        what = "bb.check_kernel is called where the kernel's file is imported for a check"
        hint = 'put the call under `if __name__ == "__main__":`'
        raise LaunchError(message(what, hint=hint))


def serve(names: tuple[str, ...], interpret: str) -> None:
    """The server: load what is slow to load, and fork a process for each kernel."""
    os.environ["TRITON_INTERPRET"] = interpret
    for name in names:
        with suppress(ImportError):  # a kernel will say so, or does not need it
            import_module(name)
    worker.serve(_serve_kernel)


def _serve_kernel(place: Path) -> None:
    """Import the kernel of a job and answer calls."""
    _end_with_parent()
    job: Job = pickle.loads((place / "job.pickle").read_bytes())
    connection, prints = (_called_back(place / "door") for _ in range(2))  # the folder goes now
    _print_into(prints)
    with Connection(connection) as opened:
        try:
            kernel = _imported(job)
        except BaseException as error:
            opened.send(f"{type(error).__name__}: {error}")
            return
        opened.send(None)
        _answer(kernel, opened)


def _called_back(door: Path) -> int:
    with socket.socket(socket.AF_UNIX) as called:
        called.connect(str(door))
        return called.detach()


def _imported(job: Job) -> Run:
    """The kernel, where the process that sent it would find it."""
    os.chdir(job.folder)
    os.environ.clear()
    os.environ.update(job.environment)
    sys.path[:] = job.paths
    sys.argv[:] = job.arguments
    if job.main is not None:
        how, which = job.main
        run = runpy.run_path if how == "path" else runpy.run_module
        main = ModuleType("__main__")
        vars(main).update(run(which, run_name="__mp_main__"))  # as multiprocessing names it
        sys.modules["__main__"] = sys.modules["__mp_main__"] = main
    kernel: Run = pickle.loads(job.kernel)
    return kernel
