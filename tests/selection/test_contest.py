"""The best few candidates are compared at their best; what keeps its default schedule says why."""

from dataclasses import replace
from functools import cache
from math import inf

import pytest

import blockbuster as bb
from blockbuster.emit.tile.array_dtypes import given_by
from blockbuster.selection import contest
from blockbuster.selection.candidates.candidate import Setting
from blockbuster.selection.choice import Fused
from blockbuster.selection.considered import Refusals
from blockbuster.selection.contest import _on_program, at_other_sizes, best_of
from blockbuster.selection.nearby.variations import variations
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS
from tests.selection.test_variations import PROGRAMS, bare

NEAR, TRIED = PRIORS.near_programs_factor, PRIORS.schedules_tried

SIZES = dict(M=2048, K=1024, N=1024)


@cache
def fused(name="matmul"):
    fn, inputs, _ = PROGRAMS[name]
    return Fused(bb.lower(bb.trace(fn, **inputs)))


@cache
def chosen(dtype="float16", target="sm_90", **sizes):
    return fused().consider({**SIZES, **sizes}, dtype, target).best


def test_the_best_schedule_is_another_than_the_default_one():
    best = chosen()

    assert "schedules by the closed form" in best.schedules
    assert best.price == best.cost.microseconds == priced(best.scheduled).microseconds
    text = bb.emit(best.graph, SIZES, tiles={}).schedule
    default = bb.emit(best.graph, SIZES, schedule=text).cost(launch="graph").time_us
    assert best.price < 0.8 * default


def test_a_price_is_that_of_the_schedule_that_is_taken():
    best = chosen(M=16, K=4096, N=4096)  # more stages are set than any that was searched has

    assert best.price == priced(best.scheduled).microseconds


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"M": 64, "K": 64, "N": 64}, "it has too little to do"),
        ({"dtype": "float32", "K": 32}, "the closed form does not tell dots of float32 apart"),
        ({"target": "sm_100"}, "the closed form does not know the matrix units of sm_100"),
        ({"target": "gfx942"}, "the closed form does not know the matrix units of gfx942"),
    ],
)
def test_some_keep_the_default_schedule_and_say_why(asked, reason):
    best = chosen(**asked)

    assert best.schedules == f"the default schedule: {reason}"
    assert "stage nest 1 K 2" in best.scheduled.schedule


def test_a_slow_default_schedule_is_not_kept_for_having_little_to_do():
    """A block of one row of 4 elements leaves 128 x 128 programs with nothing to do."""
    program = bb.trace(lambda x: x.mean(-1), x="A C D=4")
    best = Fused(bb.lower(program)).consider(dict(A=128, C=128, D=4), "float16", "sm_90").best

    assert "schedules by the closed form" in best.schedules
    assert best.price < PRIORS.slow_factor * best.cost.launching


def test_a_plan_says_how_its_schedule_was_found():
    program = bb.trace(PROGRAMS["matmul"][0], x="M K", w="K N")
    report = bb.compile(program, SIZES, "float16", "h200", library=False).report.details

    assert "    schedule: the best of " in report


def test_emitted_kernels_have_the_best_schedule_unless_tiles_are_asked_for():
    graph = bb.fuse(bb.lower(bb.trace(PROGRAMS["matmul"][0], x="M K", w="K N"))).final

    assert bb.emit(graph, SIZES).schedule == chosen().scheduled.schedule
    assert bb.emit(graph, SIZES, tiles={"M": 64}).tiles["N"] == 64


def test_refused_schedules_are_replaced_by_the_next_ones_and_then_by_the_default_one():
    fused = Fused(bb.lower(bb.trace(PROGRAMS["matmul"][0], x="M K", w="K N")))
    found = []
    for _ in range(TRIED + 1):
        best = fused.consider(SIZES, "float16", "sm_90").best
        fused.refuse(best, "it is wrong")
        found.append(best)

    assert len({choice.key for choice in found}) == TRIED + 1
    assert all("by the closed form" in choice.schedules for choice in found[:TRIED])
    assert found[TRIED].schedules == ""


def test_one_kernel_has_no_chunks():
    few = dict(M=16, K=4096, N=4096)
    single = fused().consider(few, "float16", "sm_90", one_kernel=True).best

    assert single.kernels == 1
    assert not single.program.chunks
    assert single.price < inf


def test_of_equals_the_more_fused_is_best():
    one = chosen()
    slower = replace(one, snapshot=one.snapshot + 1, price=one.price * (NEAR - 0.01))
    slow = replace(slower, price=one.price * (NEAR + 0.01))
    low = replace(one.lowered, unsafe=("y",))
    unsafe = replace(slower, price=one.price / 9, lowered=low)

    assert best_of([one, slower]) is slower
    assert best_of([one, slow]) is one
    assert best_of([one, replace(slower, kernels=2)]) is one
    assert best_of([one, unsafe]) is one


def test_no_more_is_tried_of_what_is_much_slower_than_another_program():
    assert len(variations(bare("matmul"), other=1.0)) == 2

    program = bare("layer norm")
    least = variations(program)[0].microseconds
    lanes = variations(program, other=least / (PRIORS.hopeless_lanes_factor + 0.05))
    more = variations(program, other=least / (PRIORS.hopeless_lanes_factor - 0.05))
    assert 2 < len(lanes) < len(more)


def test_equal_kernels_take_a_schedule_by_their_dims_if_these_pair_off():
    best = chosen()
    start = best.scheduled.start

    assert _on_program(best, start, {}).key == best.key
    assert _on_program(best, start, dict.fromkeys(SIZES, "M")) is None


@pytest.mark.parametrize("suits", [True, False])
def test_kernels_that_do_the_same_work_are_varied_once_if_the_moves_suit(monkeypatch, suits):
    one, searched = chosen(), []
    other = replace(one, snapshot=one.snapshot + 1, key=("other",))
    setting = Setting(SIZES, given_by("float16"), "sm_90", in_chunks=True)
    monkeypatch.setattr(
        contest, "_at_its_best", lambda choice, *_: searched.append(choice) or choice
    )
    monkeypatch.setattr(contest, "_on_program", lambda *_: one if suits else None)

    first, second = contest.contest([one, other], setting, {}, Refusals())

    assert len(searched) == (1 if suits else 2)
    assert {first.snapshot, second.snapshot} == {one.snapshot, other.snapshot}


def test_a_schedule_is_the_same_at_other_sizes_of_a_class():
    best = chosen()
    other = at_other_sizes(best, {**SIZES, "M": 1999})

    assert other.scheduled.schedule == best.scheduled.schedule
    assert other.key != best.key  # rows past the end are masked
    assert at_other_sizes(replace(best, scheduled=None), SIZES) is None
    assert at_other_sizes(best, {**SIZES, "K": 1}) is not None


def test_what_does_not_apply_at_other_sizes_is_chosen_anew():
    best = fused("softmax").consider(dict(M=256, N=1024), "float16", "sm_90").best

    assert "whole" in best.scheduled.schedule
    assert at_other_sizes(best, dict(M=256, N=4096)) is None


def test_where_no_schedule_is_estimated_to_fit_the_default_one_goes_by_descriptors(monkeypatch):
    monkeypatch.setattr(contest, "variations", lambda *args, **options: ())

    def attention(q, k, v):
        return bb.softmax(q @ k.T, axis=-1) @ v

    program = bb.lower(bb.trace(attention, q="M D", k="N D", v="N L"))
    sizes = dict(M=4096, N=4096, D=128, L=128)
    best = Fused(program).consider(sizes, "float16", "sm_90").best

    assert best.schedules.startswith("the default schedule: those near it are estimated")
    assert "by descriptors" in best.scheduled.schedule
