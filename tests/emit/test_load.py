"""Modules from text: what runs is the text, whatever stands on disk; all threads get all of it."""

import inspect
import os
import py_compile
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest

from blockbuster.emit.target import disk
from blockbuster.emit.target.load import load_module
from tests.emit.conftest import forget_modules
from tests.emit.test_disk import TEXT, modules, name_of


def test_nothing_in_a_cache_is_run(home, monkeypatch, tmp_path):
    """Not compiled code beside a file, nor a file that is exchanged when it has been compared."""
    text = TEXT.ljust(999, "#")
    path = modules(home) / name_of(text)
    ran = tmp_path / "ran"
    evil = f"open({str(ran)!r}, 'w')\n".ljust(999, "#")
    before = path.stat()
    path.write_text(evil)
    os.utime(path, (before.st_atime, before.st_mtime))
    py_compile.compile(str(path))
    path.write_text(text)
    os.utime(path, (before.st_atime, before.st_mtime))
    real = disk._read
    forget_modules(monkeypatch)
    monkeypatch.setattr(disk, "_read", lambda p: (real(p), path.write_text(evil))[0])
    load_module(text)

    assert path.read_text() == evil
    assert not ran.exists()


def test_sources_are_shown_as_they_run(home):
    text = "def f(x):\n    return 1 / x  # here\n"
    module = load_module(text)
    Path(module.__file__).write_text("something\nelse\n" * 9)
    with pytest.raises(ZeroDivisionError) as raised:
        module.f(0)

    assert inspect.getsource(module.f) == text
    assert "return 1 / x  # here" in "".join(traceback.format_exception(raised.value))


# threads and processes ---------------------------------------------------------------

SLOW = "import time\nA = {number}\ntime.sleep(0.002)\nB = A + 1\n"


def test_threads_that_load_one_text_get_one_whole_module(home):
    for number in range(40):
        text = SLOW.format(number=number)
        start = threading.Barrier(8)
        found = []

        def load_it(text=text, start=start, found=found):
            start.wait()
            module = load_module(text)
            found.append((module, getattr(module, "B", None)))

        threads = [threading.Thread(target=load_it) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [whole for _, whole in found] == [number + 1] * 8
        assert len({id(module) for module, _ in found}) == 1


FORKED = """
import os, sys, threading
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.compiler import compile_kernel
text = "import time\\nA = 1\\ntime.sleep(0.5)\\nB = 2\\n"
thread = threading.Thread(target=load_module, args=(text,))
thread.start()
while not any(name.startswith("blockbuster_") for name in [*sys.modules]):
    pass
child = os.fork()
if child == 0:
    os._exit(load_module(text).B)
thread.join()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
"""


def test_a_copy_of_a_process_that_is_loading_gets_a_whole_module(home):
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED], check=True, timeout=60, capture_output=True
    )


TOGETHER = """
import sys
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.compiler import compile_kernel
sys.stdin.readline()
for number in range(50):
    module = load_module(f"A = {number}\\n" + "# long\\n" * 20_000 + f"B = {number + 1}\\n")
    assert module.B == number + 1
"""


def test_processes_that_load_the_same_texts_get_whole_modules(home):
    command = [sys.executable, "-W", "error", "-c", TOGETHER]
    several = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(3)]
    for process in several:
        assert process.stdin
        process.stdin.write(b"\n")
        process.stdin.flush()
    codes = [(process.communicate(timeout=120), process.returncode)[1] for process in several]

    assert codes == [0, 0, 0]
    assert len(list(modules(home).iterdir())) == 50
