"""A kernel is measured once, what is wrong is never timed, and what is known is used anywhere."""

import time
import warnings
from dataclasses import replace
from itertools import islice

import pytest

import blockbuster as bb
from blockbuster.costs import cost, work
from blockbuster.errors import LaunchError
from blockbuster.tuning import setting
from blockbuster.tuning.candidates import BEST, candidates, nearby
from blockbuster.tuning.entry import LATE
from tests.tuning.benches import (
    Benches,
    family_of,
    known,
    product,
    tuned,
    tuner,
    warps_of,
    with_warps,
)

SIZES = dict(M=512, K=512, N=512)


def schedule_of(plan):
    (file,) = plan.files
    return file.considered.best.scheduled.schedule


def best_warps(plan):
    return warps_of(schedule_of(plan))


def test_the_fastest_is_taken_and_measured_once(tmp_path):
    benches = Benches(times={"8": (5.0, 6.0, 7.0), "16": (6.5,)})
    ours = tuner(tmp_path, benches)

    plan = tuned(ours, product(), SIZES)

    assert best_warps(plan) == "8"
    assert plan.files[0].considered.reason == (
        "the fastest of 5 schedules measured on NVIDIA H200: 6.0 us, where the model's choice took"
        " 99.0 us"
    )
    assert benches.timed == ["4", "1", "2", "8", "16"]
    again = tuner(tmp_path, benches)  # another process
    assert best_warps(tuned(again, product(), SIZES)) == "8"
    assert len(benches.timed) == 5


def test_what_is_wrong_is_not_timed(tmp_path):
    benches = Benches(times={"8": (1.0,), "2": (5.0,)}, wrong=("8", "16"))
    ours = tuner(tmp_path, benches)

    assert best_warps(tuned(ours, product(), SIZES)) == "2"
    assert benches.checked == ["4", "1", "2", "8", "16"]
    assert benches.timed == ["4", "1", "2"]
    (entry,) = ours.known.store.entries()
    assert [one.reason for one in entry.found] == [
        "", "", "", "its results are wrong", "its results are wrong",
    ]  # fmt: skip


def test_what_hung_or_died_is_lost_alone(tmp_path):
    lost = dict.fromkeys(("4", "8"), "its process was ended by signal 11")
    benches = Benches(times={**lost, "2": (3.0,)})
    ours = tuner(tmp_path, benches)

    assert best_warps(tuned(ours, product(), SIZES)) == "2"
    (entry,) = ours.known.store.entries()
    assert entry.usual.us is None
    (file,) = tuned(ours, product(), SIZES).files
    said = "3.0 us, where the model's choice has no time: its process was ended by signal 11"
    assert file.considered.reason.endswith(said)


def test_a_budget_that_ends_leaves_what_was_measured(tmp_path):
    benches = Benches(times={"4": (9.0,), "1": (8.0,), **dict.fromkeys(("2", "8", "16"), LATE)})
    ours = tuner(tmp_path, benches)
    assert best_warps(tuned(ours, product(), SIZES)) == "1"
    (entry,) = ours.known.store.entries()
    assert entry.skipped == 3
    assert len(entry.found) == 5


def test_without_any_time_the_model_chooses_and_nothing_is_kept(tmp_path):
    benches = Benches(wrong=("1", "2", "4", "8", "16"))
    ours = tuner(tmp_path, benches)
    with pytest.warns(RuntimeWarning, match="matmul is not tuned.*its results are wrong"):
        plan = tuned(ours, product(), SIZES)
    assert best_warps(plan) == "4"
    assert not [*ours.known.store.entries()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuned(ours, product(), SIZES)  # nor is it tried again
    assert len(benches.checked) == 5


def test_a_program_that_cannot_travel_is_not_tuned(tmp_path):
    def function(x, w):
        return bb.custom(lambda y: y * 2, bb.exp(x @ w), shape=[x.shape[0], w.shape[1]])

    ours = tuner(tmp_path, Benches())
    with pytest.warns(RuntimeWarning, match="cannot be measured in a process of its own"):
        plan = tuned(ours, bb.trace(function, x="M K", w="K N"), SIZES)
    assert plan.calls
    assert best_warps(plan) == "4"


def test_each_part_of_the_budget_ends(tmp_path):
    ends = []

    class Noting(Benches):
        def check(self, path, until):
            ends.append(until)
            return super().check(path, until)

        def time(self, paths, until):
            ends.append(until)
            return super().time(paths, until)

    began = time.monotonic()
    tuned(tuner(tmp_path, Noting(), limit=100.0), product(), SIZES)
    usual, *others, timed = (end - began for end in ends)
    assert len(others) == 4
    assert all(70 <= other < 100 for other in others)
    assert 100 <= usual == timed < 120


def test_progress_is_told(tmp_path):
    said = []
    tuned(tuner(tmp_path, Benches(), tell=said.append), product(), SIZES)
    assert said == [
        "matmul: out: ranking schedules",
        "matmul: out: checking 5 schedules",
        "matmul: out: timing 5 schedules",
    ]


# what is known -------------------------------------------------------------------------


@pytest.fixture
def measured(tmp_path):
    """What is known after a product was measured: 8 warps are the best, then 2."""
    tuned(tuner(tmp_path, Benches(times={"8": (5.0,), "2": (6.0,)})), product(), SIZES)
    return known(tmp_path)


def test_names_do_not_count(measured):
    family = family_of(product(("A", "B", "C")), measured)
    assert best_warps(family.like(dict(A=512, B=512, C=512))) == "8"


@pytest.mark.parametrize("change", [dict(M=1024), dict(K=384)])
def test_other_sizes_are_not_known(measured, change):
    family = family_of(product(), measured)
    assert best_warps(family.like(SIZES | change)) == "4"


def test_other_dtypes_and_devices_are_not_known(measured):
    assert best_warps(family_of(product(), measured, "bfloat16").at(SIZES)) == "4"
    assert (
        best_warps(family_of(product(), replace(measured, device="NVIDIA H100")).at(SIZES)) == "4"
    )


def test_sizes_of_a_class_share_a_result(tmp_path):
    """1000 and 1023 are cut alike: by every block of 16 lanes or more with a rest."""
    ours = tuner(tmp_path, Benches(times={"8": (5.0,)}))
    tuned(ours, product(), dict(M=1000, K=512, N=512))
    family = family_of(product(), known(tmp_path))
    for size in (1000, 1023, 771):
        assert best_warps(family.like(dict(M=size, K=512, N=512))) == "8"
    assert best_warps(family.like(dict(M=1024, K=512, N=512))) == "4"


def test_sizes_that_round_up_to_measured_ones_take_their_schedule(measured):
    """Unless they were measured themselves: one schedule serves all such sizes."""
    family = family_of(product(), measured)
    assert best_warps(family.like(SIZES | dict(M=500))) == "8"


def test_a_refused_choice_gives_way_to_the_next_best(measured):
    family = family_of(product(), measured)
    plan = family.like(SIZES)
    family.refuse(plan, plan.files, "it is broken")
    assert best_warps(family.like(SIZES)) == "2"


def test_a_schedule_that_does_not_apply_is_left_out(measured):
    (entry,) = measured.store.entries()
    foreign = [replace(one, schedule="warps 3\n") if one.us == 5.0 else one for one in entry.found]
    measured.store.write(replace(entry, found=tuple(foreign)))
    assert best_warps(family_of(product(), measured).like(SIZES)) == "2"


def test_one_kernel_stays_one(tmp_path):
    """A loop in chunks was measured, and is not taken where a single kernel is asked for."""
    sizes = dict(M=64, K=8192, N=64)
    plan = tuned(tuner(tmp_path, Benches()), product(), sizes)
    assert plan.kernels > 1

    family = family_of(product(), known(tmp_path))
    assert family.like(sizes).kernels > 1
    assert "measured" in family.like(sizes).files[0].considered.reason
    assert family.like(sizes, one_kernel=True).kernels == 1


def test_compile_and_jit_use_what_is_known(measured, monkeypatch):
    monkeypatch.setattr("blockbuster.tuning.setting.KnownResults", lambda *_: measured)
    compiled = bb.compile(product(), SIZES, machine="h200")
    assert best_warps(compiled.plan) == "8"
    assert "the fastest of 5 schedules" in str(compiled.plan.files[0].considered.reason)


# candidates ------------------------------------------------------------------------------


def asked_of(program):
    family = family_of(program)
    plan = family.at(SIZES)
    return family.asked(plan, plan.files[0])


H200 = bb.machine("h200")


def test_candidates_are_those_that_take_least_by_the_closed_form():
    asked = asked_of(product())
    best = asked.considered.best
    asked = replace(asked, considered=replace(asked.considered, others=()))
    near = [with_warps(best, count).scheduled for count in (1, 2, 8, 16, 32)]
    times = sorted(cost(work(one), H200, launch="graph").time_us for one in near)
    others = candidates(asked, near=lambda scheduled: near)
    assert len(near) == len(others) < BEST
    assert [cost(work(c.scheduled), H200, launch="graph").time_us for c in others] == times


def test_a_schedule_that_does_not_fit_the_machine_is_no_candidate():
    asked = asked_of(product())
    limits = replace(H200.limits, threads_per_processor=512)  # 16 warps
    best = asked.considered.best
    target = replace(best.scheduled.target, machine=replace(H200, limits=limits))
    near = [replace(with_warps(best, n).scheduled, target=target) for n in (8, 32)]
    found = candidates(asked, near=lambda scheduled: near)
    assert "32" not in {warps_of(choice.scheduled.schedule) for choice in found}
    assert "8" in {warps_of(choice.scheduled.schedule) for choice in found}


def test_a_schedule_without_others_near_has_no_candidates_beside_it():
    asked = asked_of(product())
    asked = replace(asked, considered=replace(asked.considered, others=()))
    alone = candidates(asked, near=lambda scheduled: [])
    assert alone == []


# where there is no GPU -------------------------------------------------------------------


def test_measuring_needs_a_gpu():
    with pytest.raises(LaunchError, match=r"(?s)needs a GPU, and there is none.*tune='model'"):
        bb.compile(product(), SIZES, machine="h200", tune="measure")
    with pytest.raises(LaunchError, match="needs a GPU, and there is none here"):
        bb.compile(product(), SIZES, machine="cpu", tune="measure")


@pytest.mark.parametrize(
    ("machine", "target", "said"),
    [
        ("cpu", "cpu", "needs a GPU, and this program is compiled for the CPU"),
        ("a100", "sm_80", "the GPU that it compiles for, NVIDIA A100.*; here is NVIDIA H200"),
        ("sm_100", "sm_100", "the GPU that it compiles for, sm_100; here is NVIDIA H200"),
    ],
)
def test_measuring_needs_the_gpu_that_it_compiles_for(machine, target, said, monkeypatch):
    monkeypatch.setattr(setting, "gpu_name", lambda: "NVIDIA H200")
    with pytest.raises(LaunchError, match=said):
        setting.tuning_for("measure", machine, target)


def test_other_choices_are_taken_at_the_sizes_at_hand():
    """Choosing for a class of sizes may consider them at larger ones, whose blocks leave no rest:
    kernels for those would refuse these sizes.
    """
    family = family_of(product())
    here, there = (family.at(dict(M=512, K=512, N=n)) for n in (760, 768))
    asked = family.asked(here, here.files[0])
    (other,) = (file.considered.best for file in there.files)
    assert other.scheduled.facts == ((),)

    mixed = replace(asked, considered=replace(asked.considered, others=(other,)))
    found = [choice.scheduled for choice in mixed.choices()]
    assert [made.known["N"] for made in found] == [760, 760]
    assert all(made.facts == (("N",),) for made in found)


def test_candidates_have_what_the_choice_has():
    """Descriptors and a fixed number of programs: what a product of 4096^3 is fastest with."""
    graph = bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N")))
    chosen = bb.emit(graph, dict(M=4096, K=4096, N=4096)).derivation.final

    texts = [one.schedule for one in islice(nearby(chosen), 8)]

    assert "by descriptors" in chosen.schedule
    assert "persist nest 1 132" in chosen.schedule
    assert all("by descriptors" in text and "persist nest 1" in text for text in texts[:3])
