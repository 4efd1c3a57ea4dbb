"""Servers that fork a process for each job: jobs are alone, failures are told, nothing is left."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from blockbuster.emission import emit
from blockbuster.errors import LaunchError
from blockbuster.ir.parse import parse
from blockbuster.runtime import worker
from blockbuster.runtime.launch import run_batch, run_interpreted

JOBS = """
from blockbuster.runtime import worker
worker.serve(lambda job: exec((job / "job.py").read_text(), {"job": job}))
"""
GRAPH = "graph(X: M[M]) { Y = map M (x in !X) { y = x * 2 yield y } return Y }"
X = np.arange(16, dtype=np.float32)


@pytest.fixture
def do(tmp_path):
    """Runs Python as a job of a server; returns its exit code and what it printed."""
    numbers = iter(range(1000))

    def run(text, timeout=60):
        job = tmp_path / str(next(numbers))
        job.mkdir()
        (job / "job.py").write_text(text, encoding="utf-8")
        code = worker.run_job(job, JOBS, dict(os.environ), timeout)
        return code, (job / "log").read_text(encoding="utf-8")

    yield run
    for server in idle():
        worker.IDLE.remove(server)
        server.end()


def idle(code=JOBS):
    return [server for server in worker.IDLE if server.code == code]


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def becomes(happens):
    """Whether something happens at last: a busy machine takes its time."""
    for _ in range(600):
        if happens():
            return True
        time.sleep(0.05)
    return False


def test_a_job_sees_nothing_of_the_one_before_it(do):
    text = "import os, sys\nprint(os.getppid(), getattr(sys, 'left', 'nothing'))\nsys.left = 1"
    first, second = do(text), do(text)

    assert first == second
    assert first == (0, f"{first[1].split()[0]} nothing\n")
    assert len(idle()) == 1


@pytest.mark.parametrize(
    ("text", "code", "log"),
    [
        ("import os\nos._exit(3)", 3, ""),
        ("raise KeyError('oh')", 1, "KeyError: 'oh'"),
        ("raise SystemExit('enough')", 1, "enough"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV, ""),
    ],
)
def test_a_job_that_fails_fails_alone(do, text, code, log):
    found, printed = do(text)
    (server,) = idle()

    assert found == code
    assert log in printed
    assert do("print('well')") == (0, "well\n")
    assert idle() == [server]


def test_a_job_that_hangs_is_ended_and_the_next_one_runs(do):
    _, pid = do("import os\nprint(os.getppid())")
    with pytest.raises(TimeoutError, match=r"did not finish within 0\.2 s"):
        do("import time\ntime.sleep(1000)", timeout=0.2)

    assert becomes(lambda: is_gone(int(pid)))
    assert do("print('well')") == (0, "well\n")


def test_an_interrupt_ends_the_job(do, monkeypatch):
    do("")
    (server,) = idle()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(worker.select, "select", interrupted)
    with pytest.raises(KeyboardInterrupt):
        do("import time\ntime.sleep(1000)")

    assert not server.is_alive
    assert idle() == []


def test_a_server_that_was_killed_is_replaced(do):
    _, pid = do("import os\nprint(os.getppid())")
    os.kill(int(pid), signal.SIGKILL)
    (server,) = idle()
    assert becomes(lambda: not server.is_alive)

    assert do("print('well')") == (0, "well\n")
    assert server not in idle()


def test_a_server_that_dies_with_a_job_says_so(do):
    with pytest.raises(LaunchError, match="lost its server, which ended with code -9"):
        do("import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(1000)")

    assert do("print('well')") == (0, "well\n")


def test_a_server_that_does_not_start_says_why(tmp_path):
    with pytest.raises(LaunchError, match="ended with code 1: there is no such thing"):
        worker.run_job(tmp_path, "raise SystemExit('there is no such thing')", os.environ, 60)


def test_jobs_side_by_side_have_servers_of_their_own(do):
    text = "import os, time\ntime.sleep(0.3)\nprint(os.getppid())"
    with ThreadPoolExecutor(3) as pool:
        servers = {log for _, log in pool.map(do, [text] * 3)}

    assert len(servers) == len(idle()) == 3


# nothing is left ----------------------------------------------------------------------


USER = f"""
import os, pathlib, sys, tempfile, time
from blockbuster.runtime import worker

def do(text):
    job = pathlib.Path(tempfile.mkdtemp(dir=sys.argv[1]))
    (job / "job.py").write_text(text)
    print(worker.run_job(job, {JOBS!r}, os.environ, 60), (job / "log").read_text(), flush=True)
"""
NUMBER = "do('import os; print(os.getppid())')\n"


def user(tmp_path, text):
    """A program that uses servers."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", USER + text, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_program_that_ends_leaves_no_server(tmp_path):
    out, errors = user(tmp_path, NUMBER).communicate(timeout=100)

    assert errors == ""
    assert is_gone(int(out.split()[1]))


def test_a_program_that_is_killed_leaves_neither_server_nor_job(tmp_path):
    hangs = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}} ')"
    program = user(tmp_path, f"{NUMBER}do({f'{hangs}; time.sleep(1000)'!r})")
    server = int(program.stdout.readline().split()[1])
    place = tmp_path / "pid"
    assert becomes(lambda: place.exists() and place.read_text().endswith(" "))
    program.kill()
    program.communicate()

    assert becomes(lambda: is_gone(server))
    assert becomes(lambda: is_gone(int(place.read_text())))


def test_a_copy_of_a_program_has_servers_of_its_own(tmp_path):
    text = f"{NUMBER}child = os.fork()\n{NUMBER}if child: os.waitpid(child, 0)\n{NUMBER}"
    out, errors = user(tmp_path, text).communicate(timeout=100)
    numbers = [int(n) for n in out.split()[1::2]]

    assert errors == ""
    assert out.split()[::2] == ["0"] * 5
    assert sorted(numbers.count(n) for n in set(numbers)) == [2, 3]
    assert all(becomes(lambda n=n: is_gone(n)) for n in numbers)


# kernels ------------------------------------------------------------------------------


def kernel_with(text):
    """A kernel that first does something else."""
    kernel = emit(parse(GRAPH), {"M": 16}, "float32")
    return type(kernel)(**{**vars(kernel), "source": f"{kernel.source}\n\n{text}\n"})


@pytest.mark.interpreter
def test_kernels_do_not_see_what_others_did_to_triton_and_numpy():
    changes = kernel_with(
        "assert tl.exp is not None\ntl.exp = None\nnp = __import__('numpy')\nnp.savez = None"
    )
    failed, right = run_batch([(changes, {"X": X}), (kernel_with(""), {"X": X})])

    with pytest.raises(LaunchError, match="'NoneType' object is not callable"):
        raise failed
    np.testing.assert_array_equal(right["out"], 2 * X)


@pytest.mark.interpreter
def test_a_kernel_that_hangs_is_named():
    run_interpreted(kernel_with(""), {"X": X})
    with pytest.raises(LaunchError, match=r"out_kernel did not finish within 0\.1 s"):
        run_interpreted(kernel_with("import time\ntime.sleep(1000)"), {"X": X}, timeout=0.1)

    np.testing.assert_array_equal(run_interpreted(kernel_with(""), {"X": X})["out"], 2 * X)
