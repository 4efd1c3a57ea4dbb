"""check_kernel in files that check their own kernels, and what is left of processes."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

FILE = """
import ctypes, os, sys
import numpy as np
import blockbuster as bb
from blockbuster.check import kernel as check, own_process

def serve(kernel, arrays, *, own_process, limit):  # as for tensors on a GPU
    from blockbuster.check.kernel_process import Served
    from blockbuster.check.own_process import Alone, Here
    try:
        return Alone(lambda: Served(kernel, interpreted=False, limit=limit), limit), ""
    except bb.LaunchError as error:
        return Here(kernel), str(error)

def kernel(x):
    if os.getpid() != ASKED:
        ctypes.string_at(0)
    return x

ASKED = int(sys.argv[1]) if len(sys.argv) > 1 else os.getpid()
check.runner = serve
"""
RUN = 'print(bb.check_kernel(kernel, lambda x: x, {"x": np.ones(3, np.float32)}))\n'
GUARDED = f"if __name__ == '__main__':\n    sys.argv.append(str(ASKED))\n    {RUN}"


def printed(tmp_path, text, *, typed=False):
    place = tmp_path / "mine.py"
    place.write_text(textwrap.dedent(text), encoding="utf-8")
    root = Path(__file__).parents[2]
    command = ["-c", text] if typed else [str(place)]
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_that_is_run_is_imported_for_its_kernel(tmp_path):
    found = printed(tmp_path, FILE + GUARDED)

    assert "by signal 11 (SIGSEGV)" in found
    assert "out of bounds (mine.py, line 17)" in found


def test_a_file_that_checks_when_it_is_imported_says_so(tmp_path):
    found = printed(tmp_path, FILE + RUN)

    assert found.startswith("passed")
    assert "the kernel ran in this process, because another process cannot import it" in found
    assert 'put the call under `if __name__ == "__main__":`' in found


def test_a_kernel_that_was_typed_in_says_so(tmp_path):
    found = printed(tmp_path, FILE + RUN, typed=True)

    assert "cannot import it (it is in a notebook, or typed in)" in found


def test_a_program_that_is_killed_leaves_no_kernel(tmp_path):
    text = f"""
import os, time, sys
import numpy as np
import blockbuster as bb

def kernel(x):
    open({str(tmp_path / "pid")!r}, "w").write(f"{{os.getpid()}} ")
    time.sleep(1000)

bb.check_kernel(kernel, lambda x: x, {{"x": np.ones(3)}})
"""
    program = subprocess.Popen([sys.executable, "-c", text])
    place = tmp_path / "pid"
    try:
        assert becomes(lambda: place.exists() and place.read_text().endswith(" "))
    finally:
        program.kill()
        program.wait()

    assert becomes(lambda: not Path(f"/proc/{int(place.read_text())}").exists())


def becomes(happens):
    """Whether something happens at last: a busy machine takes its time."""
    for _ in range(600):
        if happens():
            return True
        time.sleep(0.05)
    return False
