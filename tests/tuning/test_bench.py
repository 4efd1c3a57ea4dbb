"""What a bench makes of what its processes say, and what they say of plans, with stand-ins."""

import time

import pytest

from blockbuster.runtime.first_launch import Finding, Refused
from blockbuster.tuning import bench, process
from blockbuster.tuning.entry import LATE
from blockbuster.tuning.workers import Lost


def calling(monkeypatch, function):
    """``called`` as a plain call, or what ``function`` makes of it."""

    def called(modules, until, work, *given):
        return function(*given)

    monkeypatch.setattr(bench, "called", called)


@pytest.mark.parametrize("said", ["", "wrong"])
def test_a_check_says_what_its_process_says(monkeypatch, tmp_path, said):
    calling(monkeypatch, lambda path, device: said if path == str(tmp_path) else "another path")
    assert bench.checked(tmp_path, time.monotonic() + 9, device=0) == said


@pytest.mark.parametrize(("seconds", "said"), [(9, "its worker ended by signal 11"), (-1, LATE)])
def test_a_check_that_is_lost_is_a_reason(monkeypatch, tmp_path, seconds, said):
    def lose(path, device):
        raise Lost("its worker ended by signal 11")

    calling(monkeypatch, lose)
    assert bench.checked(tmp_path, time.monotonic() + seconds, device=0) == said


@pytest.mark.parametrize(
    ("written", "lost", "expected"),
    [
        ("[0, 5.0]\n[1, 6.0]\n[0, 5.5]\n[1, 6.5]\n", "", [(5.0, 5.5), (6.0, 6.5)]),
        ("[0, 5.0]\n[1, 6", "its process died", [(5.0,), "its process died"]),
        ("", "its process did not finish", ["its process did not finish"] * 2),
        ("[0, 5.0]\n", "", [(5.0,), LATE]),
        ("[-1, 4.0]\n[-1, 4.5]\n", "its process died", [(4.0, 4.5), "its process died"]),
        ("[-1, 4.0]\n[0, 5.0]\n[1, 6.0]\n", "", [(5.0,), (6.0,)]),
    ],
)
def test_what_was_timed_before_a_process_is_lost_counts(
    monkeypatch, tmp_path, written, lost, expected
):
    def times(paths, device, until, report):
        with open(report, "w", encoding="utf-8") as file:
            file.write(written)
        if lost:
            raise Lost(lost)

    calling(monkeypatch, times)
    found = bench.timed([tmp_path / "0", tmp_path / "1"], time.monotonic() + 9, device=0)
    assert found == expected


def test_nothing_is_timed_where_nothing_is_right():
    assert bench.timed([], 0.0, device=0) == []


# in the process -------------------------------------------------------------------------


class Clock:
    """Times nothing: each round of a plan takes as long as its number says."""

    def __init__(self, device):
        self.device = device

    def timer(self, run):
        return run


@pytest.fixture
def plans(monkeypatch):
    """Plans by their paths, which are numbers."""
    monkeypatch.setattr(process, "Clock", Clock)
    monkeypatch.setattr(process, "_read", lambda path: (path, "its program"))
    monkeypatch.setattr(process, "_ready", lambda plan, gpu, tensors: lambda: float(plan))
    monkeypatch.setattr(process, "Gpu", lambda device: "gpu")
    monkeypatch.setattr(process, "drawn", lambda plan, device: "arrays")


def test_rounds_go_over_all_plans(plans, tmp_path):
    report = tmp_path / "times"
    process.time_rounds(["3", "4"], 0, time.monotonic() + 60, str(report))
    lines = report.read_text(encoding="utf-8").split()
    alone = "[-1,3.0]" * process.ROUNDS[0]
    assert "".join(lines) == alone + "[0,3.0][1,4.0]" * process.ROUNDS[1]


def test_the_first_plan_has_times_before_another_is_made_ready(plans, monkeypatch, tmp_path):
    report = tmp_path / "times"

    def ready(plan, gpu, tensors):
        if plan != "3":
            raise Refused((), f"{plan} is refused", wrong=True)
        return lambda: float(plan)

    monkeypatch.setattr(process, "_ready", ready)
    with pytest.raises(Refused, match="4 is refused"):
        process.time_rounds(["3", "4"], 0, time.monotonic() - 1, str(report))
    assert report.read_text(encoding="utf-8") == "[-1, 3.0]\n" * process.ROUNDS[0]


def test_the_first_rounds_are_made_in_any_case(plans, tmp_path):
    report = tmp_path / "times"
    process.time_rounds(["3"], 0, time.monotonic() - 1, str(report))
    assert report.read_text(encoding="utf-8") == "[0, 3.0]\n" * process.ROUNDS[0]


def ready(finding=None, refused=""):
    """What stands for running a plan first: it compares, or is refused."""

    def run(plan, gpu, tensors, compare):
        if refused:
            raise Refused((), refused, wrong=True)
        if finding is not None:
            compare("run", "arrays", "results")

    return run


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (ready(), ""),  # its kernels passed before
        (ready(Finding()), ""),
        (ready(Finding(note="first results were not compared: no memory")), "not compared"),
        (ready(refused="out differs by 0.5"), "out differs by 0.5"),
    ],
)
def test_only_what_was_compared_is_right(monkeypatch, run, said):
    finding = run.__closure__[0].cell_contents
    monkeypatch.setattr(process, "_read", lambda path: ("plan", "its program"))
    monkeypatch.setattr(process, "_ready", run)
    monkeypatch.setattr(process, "Alone", lambda device: "gpu")
    monkeypatch.setattr(process, "drawn", lambda plan, device: "arrays")
    monkeypatch.setattr(process, "comparison", lambda program: lambda *_: finding)
    assert said in process.check("0", 0)
    assert bool(said) is bool(process.check("0", 0))


def test_what_nothing_can_be_compared_with_is_not_right(monkeypatch):
    monkeypatch.setattr(process, "_read", lambda path: ("plan", None))
    assert process.check("0", 0) == process.NOTHING
