"""How models are judged on measured pairs, and which pairs are measured."""

import json
import math
from dataclasses import asdict, dataclass, field

import pytest

from bench.costs.judge import _rows, judged, spearman
from bench.costs.measured import measured
from bench.costs.near import HELD_FILE
from bench.costs.pairs import KEPT_FILE, read_pairs
from bench.costs.regret import judged as regretted
from bench.costs.variations import pairs_of, scheduled
from bench.costs.workloads import (
    BY_NAME,
    FIT,
    FIT_WORKLOADS,
    HELD,
    HELD_BACK,
    JUDGE,
    JUDGED,
    NEAR,
    ONCE_HELD,
    SEEN,
    WORKLOADS,
)

WAY = "cold"


@dataclass(frozen=True)
class Timed:
    """Stands for a measured pair: what it takes, again if it is timed again, and what is said."""

    time: float
    said: float
    timed_again: float | None = None
    is_clean: bool = True
    times: dict = field(init=False)
    again: dict = field(init=False)
    rounds: dict = field(init=False)
    noise: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "times", {WAY: self.time})
        around = (self.time - self.noise, self.time, self.time + self.noise)
        object.__setattr__(self, "rounds", {WAY: around})
        more = {} if self.timed_again is None else {WAY: self.timed_again}
        object.__setattr__(self, "again", more)


def verdict(*pairs):
    return judged(pairs, lambda pair, on, way: pair.said, None, WAY)


def test_rank_correlation():
    assert spearman([1, 2, 3, 4], [1, 4, 9, 16]) == 1
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == -1
    assert spearman([1, 1, 2], [5, 6, 7]) == pytest.approx(0.866, abs=1e-3)  # equals share a rank
    assert spearman([1, 1, 1], [5, 6, 7]) == 0
    assert math.isnan(spearman([1, 2], [2, 1]))  # two values rank in no interesting way


def test_a_model_that_knows_all():
    found = verdict(Timed(10, 1), Timed(20, 2), Timed(30, 3))
    assert (found.count, found.spearman, found.first, found.top_us) == (3, 1, 0, 0)
    assert found.passes


def test_what_its_first_choice_costs():
    found = verdict(Timed(10, 2), Timed(12, 1), Timed(30, 3))
    assert found.first == pytest.approx(0.2)
    assert found.top == 0
    assert not found.passes


def test_the_best_of_eight():
    late = [Timed(20 + n, n) for n in range(8)]
    found = verdict(*late, Timed(10, 9))
    assert found.top == pytest.approx(1.0)
    assert found.top_us == pytest.approx(10)
    assert verdict(*late[:7], Timed(10, 9)).top == 0


def test_times_of_rounds_among_the_best_decide():
    found = verdict(Timed(10.0, 2, 10.4), Timed(10.1, 1, 10.0), Timed(30, 3))
    assert found.first == 0  # it is the best where both are timed again


def test_what_the_clock_tells_apart_and_what_lies_far():
    found = verdict(Timed(100, 2, noise=2), Timed(103, 1, noise=2), Timed(140, 3, noise=2))
    assert found.spearman == 0.5  # the first two are the wrong way round
    assert found.apart == found.far == 1  # but their rounds overlap: the clock tells no order
    close = verdict(Timed(100, 2), Timed(103, 1), Timed(140, 3))
    assert close.apart == pytest.approx(2 / 3)
    assert close.far == 1
    assert math.isnan(verdict(Timed(100, 1), Timed(101, 2), Timed(102, 3)).far)


def test_what_is_not_modelled_ranks_last_and_correlates_with_nothing():
    spills = Timed(1000, float("inf"), is_clean=False)
    found = verdict(Timed(10, 1), Timed(20, 2), Timed(30, 3), spills)
    assert (found.count, found.spearman) == (3, 1)


def test_what_runs_although_the_model_calls_it_impossible_counts_against_it():
    impossible = Timed(5, float("inf"))
    found = verdict(Timed(10, 1), Timed(20, 2), Timed(30, 3), impossible)
    assert (found.count, found.spearman) == (4, -0.2)


def test_too_few_pairs_are_not_judged():
    few = verdict(Timed(10, 1), Timed(20, 2), Timed(1000, 3, is_clean=False))
    assert few.count == 2
    assert not few.is_judged
    assert not few.passes
    name, *_ = BY_NAME
    text = _rows({name: few}, {name: FIT})
    assert "| not judged |" in text
    assert "median" not in text


# the pairs -------------------------------------------------------------------------


def test_workloads_are_fitted_or_judge():
    assert all(w.part == FIT for w in FIT_WORKLOADS)
    assert all(w.part == JUDGE for w in JUDGED)
    assert len(FIT_WORKLOADS) >= 8
    assert len(JUDGED) >= 8
    assert all(w.part == SEEN for w in (*NEAR, *ONCE_HELD))
    assert all(w.part == HELD_BACK for w in HELD)
    assert len(BY_NAME) == len((*WORKLOADS, *NEAR, *ONCE_HELD, *HELD))


def test_pairs_are_kept_in_a_file():
    pairs = read_pairs()
    assert len(pairs) >= 400
    assert len({pair.key for pair in pairs}) == len(pairs)
    assert {pair.workload for pair in pairs} == {w.name for w in WORKLOADS}
    (first, *_) = read_pairs(["chain-G12"])
    workload = BY_NAME[first.workload]
    made = scheduled(workload, first.snapshot, first.schedule, workload.sizes)
    assert made.schedule == first.schedule


def test_variations_are_the_same_each_time():
    workload = BY_NAME["softmax-131072"]
    first, again = (pairs_of(workload, 4, workload.few) for _ in range(2))
    assert first == again
    assert len({pair.schedule for pair in first}) == len(first) >= 3
    assert first[0].schedule == scheduled(workload, -1, None, workload.few).schedule
    assert json.dumps([pair.key for pair in first]).count("softmax-131072#") == len(first)


def test_what_both_stages_are_judged_on_is_fresh():
    known = {(pair.workload, pair.snapshot, pair.schedule) for pair in read_pairs()}
    kept = read_pairs(file=KEPT_FILE)
    assert {pair.workload for pair in kept} <= {workload.name for workload in JUDGED}
    assert known.isdisjoint((pair.workload, pair.snapshot, pair.schedule) for pair in kept)
    assert len({pair.key for pair in kept}) == len(kept) >= 300


def test_pairs_that_are_held_back_have_predictions():
    pairs = read_pairs(file=HELD_FILE)
    assert {pair.workload for pair in pairs} == {workload.name for workload in HELD}
    assert len({pair.key for pair in pairs}) == len(pairs) <= 280
    assert all(pair.predicted for pair in pairs)


def test_regret_by_the_predictions_that_were_recorded(tmp_path):
    pairs = read_pairs([HELD[0].name], HELD_FILE)[:3]
    predicted, times = (3.0, 2.0, 4.0), (10.0, 12.0, 11.0)
    records = [
        asdict(pair) | {"state": "timed", "predicted": said, "cold": [time]}
        for pair, said, time in zip(pairs, predicted, times, strict=True)
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")

    (found,) = regretted(file, recorded=True)
    (today,) = regretted(file)

    assert found.regret == pytest.approx(0.2)
    assert (found.measured, found.predicted) == (times, predicted)
    assert len(today.predicted) == len(pairs)


def test_pairs_that_are_no_longer_legal_are_left_out_and_counted(tmp_path, capsys):
    pair = next(iter(read_pairs()))
    times = {"state": "timed", "cold": [1.0], "warm": [1.0]}
    record = asdict(pair) | times | {"key": pair.key, "kernels": []}
    illegal = record | {"key": "other", "schedule": "block Z 64"}
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, (record, illegal))), encoding="utf-8")

    (found,) = measured(file)

    assert found.key == pair.key
    assert capsys.readouterr().err == "left out, because their schedules are not legal now: 1\n"
