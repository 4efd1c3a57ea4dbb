"""The model's choice is compiled and timed first, and has the whole limit for it."""

import threading
import time
import warnings

import pytest

from blockbuster.tuning.bench import Bench
from blockbuster.tuning.entry import LATE
from blockbuster.tuning.workers import Lost, called
from tests.tuning import calls
from tests.tuning.benches import Benches, choose, product, tuned, tuner, warps_in, warps_of

SIZES = dict(M=512, K=512, N=512)
SOON = 10.0
"""Seconds after which a test that waits for an event has failed."""


class Slow(Benches):
    """Checks side by side, of which that of the model's choice (4 warps) waits for ``there``.

    ``log``: what happened in which order.
    """

    def __init__(self, count=2, said="", **given):
        super().__init__(**given)
        self.count, self.said = count, said
        self.began, self.there, self.log = threading.Event(), threading.Event(), []

    def bench(self):
        return Bench(self.check, self.time, count=self.count)

    def check(self, path, until):
        if warps_in(path) != "4":
            self.log.append(f"check {warps_in(path)}")
            if self.log[-1] == "check 16":
                self.there.set()
            return ""
        self.log.append("check 4")
        self.began.set()
        assert self.there.wait(SOON)
        self.log.append("checked 4")
        return self.said

    def time(self, paths, until):
        self.log.append("time " + " ".join(map(warps_in, paths)))
        return super().time(paths, until)


def best_warps(plan):
    (file,) = plan.files
    return warps_of(file.considered.best.scheduled.schedule)


def entry_of(ours):
    (entry,) = ours.known.store.entries()
    return entry


def test_it_begins_before_others_are_ranked_and_is_timed_first(tmp_path):
    benches = Slow(times={"8": (5.0,)})

    def ranked(asked):
        assert benches.began.wait(SOON)
        benches.log.append("rank")
        return choose(asked)

    plan = tuned(tuner(tmp_path, benches, choose=ranked), product(), SIZES)

    others = [f"check {warps}" for warps in (1, 2, 8, 16)]
    assert benches.log == ["check 4", "rank", *others, "checked 4", "time 4 1 2 8 16"]
    assert best_warps(plan) == "8"


def test_others_wait_where_only_one_is_compiled_at_a_time(tmp_path):
    benches = Slow(count=1)
    benches.there.set()
    tuned(tuner(tmp_path, benches), product(), SIZES)
    assert benches.log[:3] == ["check 4", "checked 4", "check 1"]


def test_one_that_fails_is_recorded_and_told_and_others_are_taken(tmp_path):
    benches = Slow(said="its worker ended by signal 11", times={"2": (5.0,)})
    ours = tuner(tmp_path, benches)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = tuned(ours, product(), SIZES)

    assert best_warps(plan) == "2"
    assert plan.files[0].considered.reason == (
        "the fastest of 4 schedules measured on NVIDIA H200: 5.0 us, where the model's choice has"
        " no time: its worker ended by signal 11"
    )
    assert benches.log[-1] == "time 1 2 8 16"
    assert entry_of(ours).usual.reason == "its worker ended by signal 11"
    assert entry_of(ours).is_fair


def test_one_that_is_late_is_recorded_and_told_and_the_model_chooses(tmp_path):
    benches = Slow(said=LATE, times={"2": (5.0,)})
    ours = tuner(tmp_path, benches, limit=0.5)
    with pytest.warns(RuntimeWarning, match=r"matmul is not tuned.* not compiled within 0.5 s, so"):
        plan = tuned(ours, product(), SIZES)

    assert best_warps(plan) == "4"
    entry = entry_of(ours)
    assert entry.usual.reason == LATE
    assert entry.skipped == 1
    assert entry.ranked[0].us == 5.0
    assert not entry.is_fair


def test_one_that_was_late_is_measured_again_only_with_more_time(tmp_path):
    clock = iter(range(0, 1000, 12)).__next__
    late = tuner(tmp_path, Slow(said=LATE), clock=clock)
    with pytest.warns(RuntimeWarning, match="not compiled within 10 s"):
        tuned(late, product(), SIZES)
    assert entry_of(late).seconds == 12

    again = Slow(times={"2": (5.0,)})
    assert best_warps(tuned(tuner(tmp_path, again), product(), SIZES)) == "4"
    assert again.log == []
    plan = tuned(tuner(tmp_path, again, limit=40.0), product(), SIZES)
    assert best_warps(plan) == "2"
    assert again.log[0] == "check 4"


def test_a_ranking_that_fails_fails_once_the_check_that_runs_has_ended(tmp_path):
    benches = Slow()

    def ranked(asked):
        benches.there.set()
        raise ArithmeticError("no schedule has a price")

    with pytest.raises(ArithmeticError, match="no schedule has a price"):
        tuned(tuner(tmp_path, benches, choose=ranked), product(), SIZES)
    assert benches.log == ["check 4", "checked 4"]


# in processes ----------------------------------------------------------------------------


DOES = {"4": calls.hanging, "1": calls.doubled, "2": calls.dying, "8": calls.raising}


class InWorkers(Benches):
    """Checks in real workers, by what a plan's warps stand for."""

    def bench(self):
        return Bench(self.check, self.time, count=3)

    def check(self, path, until):
        function = DOES.get(warps_in(path), calls.doubled)
        try:
            return "" if called((), until, function, 21) == 42 else "not twice"
        except Lost as lost:
            return LATE if time.monotonic() >= until else str(lost)


def test_one_that_hangs_is_ended_at_the_limit_and_others_are_lost_alone(tmp_path):
    ours = tuner(tmp_path, InWorkers(), limit=6.0)
    began = time.monotonic()
    with pytest.warns(RuntimeWarning, match="not compiled within 6 s"):
        tuned(ours, product(), SIZES)
    assert 6 <= time.monotonic() - began < 30
    assert [one.reason for one in entry_of(ours).found] == [
        LATE, "", "its worker ended by signal 11", "ValueError: 21 is refused", "",
    ]  # fmt: skip
