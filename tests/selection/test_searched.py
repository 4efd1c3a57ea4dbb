"""What a choice searches: schedules that replay and fit, the same each time, and which is taken."""

from dataclasses import replace
from functools import cache

import pytest

import blockbuster as bb
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import not_complete, replayed
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.machines import machine
from blockbuster.rules import safe
from blockbuster.selection import contest, cost, preference
from blockbuster.selection.contest import BUDGET, EACH, best_schedule, searched
from blockbuster.selection.decisions.default_schedule import default_schedule
from blockbuster.selection.limits import LONG, Limits, is_early, rooms, times
from blockbuster.selection.preference import preferred
from blockbuster.selection.price import Times, priced
from blockbuster.selection.search import Priced
from blockbuster.selection.starts import starts


def matmul(x, w):
    return x @ w


def softmax(x):
    shifted = bb.exp(x - bb.max(x, axis=-1, keepdims=True))
    return shifted / bb.sum(shifted, axis=-1, keepdims=True)


def attention(q, k, v):
    return bb.softmax(q @ k.swapaxes(-1, -2), axis=-1) @ v


def layer_norm(x, g, b):
    return bb.layer_norm(x, g, b)


PROGRAMS = {
    "matmul": (matmul, dict(x="M K", w="K N"), dict(M=2048, K=4096, N=4096)),
    "few rows": (matmul, dict(x="M K", w="K N"), dict(M=16, K=4096, N=4096)),
    "128 rows": (matmul, dict(x="M K", w="K N"), dict(M=128, K=1024, N=1024)),
    "many rows": (matmul, dict(x="M K", w="K N"), dict(M=8192, K=1024, N=1024)),
    "softmax": (softmax, dict(x="M N"), dict(M=256, N=16384)),
    "layer norm": (layer_norm, dict(x="M N", g="N", b="N"), dict(M=256, N=1024)),
    "attention": (attention, dict(q="H M D", k="H N D", v="H N D"), dict(H=8, M=512, N=512, D=64)),
}


@cache
def bare(name, target="sm_90"):
    fn, inputs, sizes = PROGRAMS[name]
    graph = safe(bb.fuse(bb.lower(bb.trace(fn, **inputs))).final)
    program = typed_for_gpu(graph, lower_to_tiles(graph), given_by("float16"))
    return unscheduled(program, sizes, target_of(target))


@cache
def default(name):
    program = bare(name)
    return default_schedule(program.start, program.known, device=program.target)


@cache
def found(name):
    return searched(default(name))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_taken_replays_from_its_text_and_fits(name):
    kernels = len(default(name).draft.nests)
    begun = list(starts(default(name), in_chunks=True))
    assert 1 < len(found(name)) <= BUDGET + EACH * kernels + len(begun)
    device = machine("h200")
    for one in preferred(found(name))[:8]:
        made = one.scheduled
        assert replayed(bare(name), made.schedule) == made
        assert not not_complete(made)
        for number, work in enumerate(one.times.cost.works, start=1):
            room = rooms(made).get(number, cost.ROOM)
            assert work.footprint.registers <= room * work.footprint.available(device)
            assert work.footprint.resident(device) >= 1


@pytest.mark.parametrize("name", ["matmul", "softmax"])
def test_they_are_the_same_each_time_and_in_order(name):
    again = searched(default(name))
    assert [one.scheduled.schedule for one in again] == [
        one.scheduled.schedule for one in found(name)
    ]
    costs = [one.microseconds for one in again]
    assert costs == sorted(costs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_choice_costs_more_than_the_default_schedule(name):
    taken = preferred(found(name))[0]
    assert taken.microseconds <= preference.NEAR * priced(default(name)).microseconds


def test_what_is_known_to_win_is_chosen():
    """Measured on an H200: bench/results/2026-11-22-h200-costs."""
    text = best_schedule(default("matmul")).schedule
    assert text.startswith("block M 128, K 64, N 256\n")
    assert "warps 8\nstage nest 1 K 3 by descriptors\n" in text
    assert best_schedule(default("softmax")).schedule.startswith("block M 1, N 16384 whole\n")


def test_a_product_of_several_rounds_takes_its_places_in_turn():
    assert "persist nest 1 132\n" in best_schedule(default("many rows")).schedule


def test_launches_do_not_hide_what_is_slower():
    """Measured on an H200: 2.0 microseconds with two rows to a program, 1.8 with one."""
    taken = preferred(found("layer norm"))[0]
    assert taken.scheduled.schedule.startswith("block M 1, N 1024 whole\n")


def test_where_all_is_hopeless_beside_another_program_only_starts_are_priced():
    begun = {one.draft for one in starts(default("matmul"), in_chunks=True)}
    assert len(searched(default("matmul"), other=1.0)) == len(begun)


def test_with_one_kernel_asked_for_no_other_kernel_comes_in():
    few = default("few rows")
    assert any(len(one.scheduled.draft.nests) > 1 for one in searched(few))
    single = searched(default("matmul"), in_chunks=False)
    fit = [one for one in single if one.times.cost]
    assert {len(one.scheduled.draft.nests) for one in fit} == {1}


def test_few_are_priced(monkeypatch):
    monkeypatch.setattr(contest, "BUDGET", 5)
    monkeypatch.setattr(contest, "EACH", 0)
    begun = {one.draft for one in starts(default("matmul"), in_chunks=True)}
    assert len(searched(default("matmul"))) <= 5 + len(begun)


def test_none_is_preferred_where_nothing_fits(monkeypatch):
    monkeypatch.setattr(cost, "ROOM", 0.0)
    assert preferred(searched(default("softmax"))) == []


# which is taken of equals ---------------------------------------------------------


def scheduled(name, text):
    made = replayed(bare(name), text)
    return Priced(Times(1.0, cost=priced(made)), made)


def taken(name, *texts):
    """The first of schedules that cost the same."""
    return preferred([scheduled(name, text) for text in texts])[0].scheduled.schedule


def test_of_equal_costs_the_one_that_moves_least_is_taken():
    small, large = "block M 64, K 64, N 64\nwarps 4\n", "block M 128, K 64, N 128\nwarps 8\n"
    assert taken("matmul", small, large) == large


def test_of_equal_costs_warps_that_multiply_together_come_before_less_traffic():
    """The closed form does not tell them apart by as much as they were measured to differ."""
    apart, together = "block M 32, K 64, N 128\nwarps 4\n", "block M 64, K 64, N 32\nwarps 4\n"
    assert priced(replayed(bare("128 rows"), apart)).works[0].phases
    assert taken("128 rows", apart, together) == together


def test_of_equal_costs_the_one_with_usual_warps_is_taken():
    eight, four = (f"block M 128, K 64, N 128\nwarps {count}\n" for count in (8, 4))
    assert taken("matmul", four, eight) == eight, "each has rows for two dots"


def test_of_equal_costs_the_one_whose_dots_read_least_is_taken():
    """Measured on an H200: 26.3 microseconds by 128 x 256 results, 28.4 by 256 x 128."""
    tall, wide = (
        f"block {blocks}\nwarps 8\n"
        for blocks in ("M 256, K 64, N 128", "M 128, K 64, N 256")
    )
    assert taken("many rows", tall, wide) == wide


def test_two_blocks_to_a_program_are_taken_if_they_are_better_for_certain_and_load_less():
    rest = "warps 8\nstage nest 1 N 3\n"
    blocks = "block M 128, D 64 whole, N 64, D' 64 whole\n"
    one, two = (scheduled("attention", blocks + more + rest) for more in ("", "jam nest 1 M\n"))
    faster = replace(two, times=replace(two.times, microseconds=0.9))

    assert preferred([two, one]) == [one]
    assert preferred([faster, one])[0] == faster


# limits ---------------------------------------------------------------------------


def allowed(name, text):
    return Limits.of(default(name), in_chunks=True).allow(replayed(bare(name), text))


def test_dims_of_dots_have_lanes_enough():
    assert allowed("matmul", "block M 16, K 32, N 32\nwarps 4\n")
    assert not allowed("matmul", "block M 16, K 16, N 32\nwarps 4\n")
    assert not allowed("matmul", "block M 16, K 32, N 16\nwarps 4\n")


def test_a_running_exponent_is_rescaled_for_64_lanes_at_least():
    for lanes, fine in ((64, True), (32, False)):
        text = f"block M 64, D 64 whole, N {lanes}, D' 64 whole\nwarps 4\n"
        assert allowed("attention", text) == fine


def test_descriptors_are_for_wide_tiles_and_long_kernels():
    wide, narrow = "block M 128, K 64, N 128\nwarps 8\n", "block M 64, K 32, N 64\nwarps 4\n"
    staged = "stage nest 1 K 3 by descriptors\n"
    assert allowed("matmul", wide + staged)
    assert not allowed("matmul", narrow + staged)
    assert allowed("matmul", narrow + "stage nest 1 K 3\n")
    for name, early in (("matmul", False), ("128 rows", True)):
        made = replayed(bare(name), wide + staged)
        assert (priced(made).microseconds < LONG) == early
        assert is_early(made, priced(made)) == early


def test_times_are_those_of_the_closed_form_by_kernel():
    made = default("attention")
    known = times(made)
    assert known.microseconds == priced(made).microseconds
    assert len(known.each) == len(made.draft.nests)
    assert sum(known.each) < known.microseconds
