"""check_kernel: kernels that spoil their process. The report says so, and this process goes on."""

import os
import pickle
import stat
import struct
import time

import numpy as np
import pytest

from blockbuster.check.call import Outcome, Result, written
from blockbuster.check.guarded import laid
from blockbuster.check.kernel import check_kernel
from blockbuster.check.own_process import outcome_of
from tests.emit import raw_kernels as raw

X = np.arange(35, dtype=np.float32).reshape(5, 7)
RAN = []


class Runs:
    """What calls a function where it is unpickled."""

    def __reduce__(self):
        return RAN.append, (1,)


def framed(data):
    return struct.pack("!i", len(data)) + data


def into_every_file(data):
    """Into every connection of this process."""
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.write(descriptor, data)
        except OSError:
            continue


def answers_with(data, wait=0.0):
    def kernel(x, out=None):
        into_every_file(data)
        time.sleep(wait)
        return raw.right(x, out)

    return kernel


def raises(error):
    def kernel(x, out=None):
        raise error

    return kernel


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def changes_numpy(x, out=None):
    np.array = None
    return raw.right(x, out)


def prints_controls_and_ends(x, out=None):
    os.write(1, b"\x1b[2J\xff")
    os._exit(3)


KERNELS = {
    "a header alone": (answers_with(b"\x7f\xff\xff\xff", wait=5), "did not finish within"),
    "no answer": (answers_with(b"\0\0\0\4junk" * 3), "wrote into the connection"),
    "code": (answers_with(framed(pickle.dumps(Runs())), wait=0.3), "wrote into the connection"),
    "no outcome": (answers_with(framed(b"[1]\n"), wait=0.3), "wrote into the connection"),
    "NumPy is changed": (changes_numpy, "left a process in which its results cannot be read"),
    "an exception without a text": (raises(Silent()), "raised Silent, which has no text"),
    "controls": (raises(ValueError("a\x1b[2J\u2028\nb")), r"ValueError: a\x1b[2J\u2028\nb"),
    "a long text": (raises(ValueError("y" * 10**7)), "ValueError: yyy"),
    "controls printed": (prints_controls_and_ends, r"it printed: \x1b[2J"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_a_kernel_does_to_its_process_is_told(name):
    kernel, words = KERNELS[name]
    report = check_kernel(kernel, raw.double, {"x": X}, outputs=["out"], runs=1, time_limit=2)
    said = [problem for run in report.runs for problem in run.problems]

    assert words in said[0]
    assert all(problem.isprintable() and len(problem) < 1300 for problem in said)
    assert not RAN


def test_a_copy_of_the_process_that_comes_back_gives_no_answers():
    def forks(x, out=None):
        os.fork()
        return raw.right(x, out)

    start = time.monotonic()
    report = check_kernel(forks, raw.double, {"x": X}, outputs=["out"])
    assert report.passed, str(report)
    assert time.monotonic() - start < 10


def test_answers_are_read_as_they_come():
    outcome = Outcome((Result(X.astype(np.float64), laid("", X)),), ("one",))
    data = framed(written(outcome))
    for end in range(len(data)):
        assert outcome_of(bytearray(data[:end])) is None
    found = outcome_of(bytearray(data))
    assert found.problems == ("one",)
    np.testing.assert_array_equal(found.results[0].numbers, X)
    long = struct.pack("!iQ", -1, len(data) - 4) + data[4:]
    assert outcome_of(bytearray(long)).problems == ("one",)


def test_bytes_that_are_no_answer():
    random = np.random.default_rng(0)
    data = framed(written(Outcome((Result(X.astype(np.float64), laid("", X)),))))
    for at in range(4, len(data)):
        changed = bytearray(data)
        changed[at] = random.integers(256)
        try:
            assert isinstance(outcome_of(changed), Outcome)
        except ValueError:
            continue
    for wrong in (data + b"\0", b"\xff\xff\xff\xf0" + data, framed(b"{}\n"), framed(b"")):
        with pytest.raises(ValueError, match=r"answer|missing|JSON"):
            outcome_of(bytearray(wrong))
