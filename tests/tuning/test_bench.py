"""What a bench makes of what its processes say, and what they say of plans, with stand-ins."""

import time

import pytest

from blockbuster.runtime.first_launch import Finding
from blockbuster.runtime.recorder import Refused
from blockbuster.tuning import bench, process
from blockbuster.tuning.forks import LATE, Gone, Lost

END = time.monotonic() + 3600


def calling(monkeypatch, function):
    """``called`` as a plain call, or what ``function`` makes of it."""

    def called(modules, until, work, *given):
        return function(*given)

    monkeypatch.setattr(bench, "called", called)


def test_a_run_that_is_lost_is_a_reason(monkeypatch, tmp_path):
    asked = []

    def called_for_each(modules, until, run, names, *, count):
        asked.extend(names)
        return ["", "wrong", Gone("its process was ended by signal 11")]

    monkeypatch.setattr(bench, "called_for_each", called_for_each)
    paths = [tmp_path / str(at) for at in range(3)]
    said = bench.run_alone(paths, time.monotonic() + 9, device=0)
    assert said == ["", "wrong", "its process was ended by signal 11"]
    assert asked == [*map(str, paths)]


@pytest.mark.parametrize(
    ("written", "lost", "expected"),
    [
        ("[0, 5.0]\n[1, 6.0]\n[0, 5.5]\n[1, 6.5]\n", "", [(5.0, 5.5), (6.0, 6.5)]),
        ("[0, 5.0]\n[1, 6", "its process died", [(5.0,), "its process died"]),
        ("", "its process did not finish", ["its process did not finish"] * 2),
        ("[0, 5.0]\n", "", [(5.0,), LATE]),
        ('[0, "out differs"]\n[1, 6.0]\n', "", ["out differs", (6.0,)]),
    ],
)
def test_what_was_timed_before_a_process_is_lost_counts(
    monkeypatch, tmp_path, written, lost, expected
):
    def times(paths, device, compared, until, report):
        with open(report, "w", encoding="utf-8") as file:
            file.write(written)
        if lost:
            raise Lost(lost)

    calling(monkeypatch, times)
    found = bench.timed([tmp_path / "0", tmp_path / "1"], END - 1, END, device=0)
    assert found == expected


def test_nothing_is_timed_where_nothing_is_right():
    assert bench.timed([], 0.0, 0.0, device=0) == []


# in the process -------------------------------------------------------------------------


class Clock:
    """Times nothing: each round of a plan takes as long as its number says."""

    def __init__(self, device):
        self.device = device

    def timer(self, run):
        return run


@pytest.fixture
def plans(monkeypatch):
    """Plans by their paths, which are numbers: each takes as long as it says."""
    monkeypatch.setattr(process, "Clock", Clock)
    monkeypatch.setattr(process, "_right", lambda path, device: lambda: float(path))


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_rounds_go_over_all_plans(plans, tmp_path):
    process.time_rounds(["3", "4"], 0, END, END, str(tmp_path / "times"))
    assert lines(tmp_path / "times") == ["[0, 3.0]", "[1, 4.0]"] * process.ROUNDS[1]


def test_the_first_rounds_are_made_in_any_case(plans, tmp_path):
    process.time_rounds(["3"], 0, END, time.monotonic() - 1, str(tmp_path / "times"))
    assert lines(tmp_path / "times") == ["[0, 3.0]"] * process.ROUNDS[0]


def test_what_is_wrong_is_not_timed(plans, monkeypatch, tmp_path):
    say = {"3": "out differs", "4": lambda: 4.0}
    monkeypatch.setattr(process, "_right", lambda path, device: say[path])
    process.time_rounds(["3", "4"], 0, END, END, str(tmp_path / "times"))
    assert lines(tmp_path / "times") == ['[0, "out differs"]', *["[1, 4.0]"] * process.ROUNDS[1]]


def test_the_first_is_compared_in_any_case_and_no_other_late(plans, tmp_path):
    late = time.monotonic() - 1
    process.time_rounds(["3", "4"], 0, late, late, str(tmp_path / "times"))
    assert lines(tmp_path / "times") == [f'[1, "{LATE}"]', *["[0, 3.0]"] * process.ROUNDS[0]]


def ready(finding=None, refused=""):
    """What stands for running a plan first: it compares, or is refused."""

    def run(plan, gpu, tensors, compare=None):
        if refused:
            raise Refused((), refused, wrong=True)
        if finding is not None and compare:
            compare("run", "arrays", "results")
        return RUN

    return run


def RUN():
    """A plan on its inputs."""


@pytest.fixture
def reading(monkeypatch):
    """One plan, whose first run and what it is compared with are given."""

    def read(run=None, finding=None, program="its program"):
        monkeypatch.setattr(process, "_read", lambda path: ("plan", program))
        monkeypatch.setattr(process, "_ready", run)
        monkeypatch.setattr(process, "Alone", lambda device: "gpu")
        monkeypatch.setattr(process, "drawn", lambda plan, device: "arrays")
        monkeypatch.setattr(process, "comparison", lambda program: lambda *_: finding)

    return read


NOTED = Finding(note="first results were not compared: no memory")


@pytest.mark.parametrize(
    ("finding", "refused", "said"),
    [
        (None, "", RUN),  # its kernels passed before
        (Finding(), "", RUN),
        (NOTED, "", NOTED.note),
        (None, "out differs by 0.5", "out differs by 0.5"),
    ],
)
def test_only_what_was_compared_is_right(reading, finding, refused, said):
    reading(ready(finding, refused), finding)
    assert process._right("0", 0) == said


def test_what_nothing_can_be_compared_with_is_not_right(reading):
    reading(program=None)
    assert process._right("0", 0) == process.NOTHING


def test_what_cannot_run_says_why(reading):
    reading(ready(refused="it needs too much"))
    assert process.run_once("0", 0) == "it needs too much"
    reading(ready())
    assert process.run_once("0", 0) == ""
