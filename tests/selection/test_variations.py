"""Schedules near the default one: all replay, fit, are the same each time, and few."""

from dataclasses import replace
from functools import cache

import pytest

import blockbuster as bb
from blockbuster.costs import work_of
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import not_complete, replayed
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.machines import machine
from blockbuster.rules import safe
from blockbuster.selection import cost
from blockbuster.selection.nearby import variations as module
from blockbuster.selection.nearby.variation import Variation, preferred
from blockbuster.selection.nearby.variations import variations
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS


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
def found(name):
    return variations(bare(name))


def best(ranked):
    return preferred(ranked)[0]


def test_long_rows_are_read_from_the_cache_again_by_one_kernel():
    """In chunks, LayerNorm of 256 such rows took an H100 108 microseconds, whole 76."""
    rows = unscheduled(bare("layer norm").start, dict(M=256, N=131072), target_of("sm_90"))
    first = variations(rows)[0].scheduled.draft
    assert (len(first.nests), first.chunks) == (1, ())


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_replays_from_its_text_and_fits(name):
    assert 1 < len(found(name)) <= PRIORS.most_schedules
    device = machine("h200")
    texts = [one.scheduled.schedule for one in found(name)]
    assert len(set(texts)) == len(texts)
    for one in found(name):
        assert replayed(bare(name), one.scheduled.schedule) == one.scheduled
        assert not not_complete(one.scheduled)
        for work in one.cost.works:
            room = PRIORS.register_room * work.footprint.available(device)
            assert work.footprint.registers <= room
            assert work.footprint.resident(device) >= 1


@pytest.mark.parametrize("name", ["matmul", "softmax"])
def test_they_are_the_same_each_time_and_in_order(name):
    again = variations(bare(name))
    assert [one.scheduled.schedule for one in again] == [
        one.scheduled.schedule for one in found(name)
    ]
    costs = [one.microseconds for one in again]
    assert costs == sorted(costs)


def test_from_a_schedule_they_are_those_of_its_program():
    start = found("matmul")[-1].scheduled
    assert [one.scheduled for one in variations(start)] == [
        one.scheduled for one in found("matmul")
    ]


def test_what_is_known_to_win_is_chosen():
    """Measured on an H200: bench/results/2026-11-22-h200-costs."""
    text = best(found("matmul")).scheduled.schedule
    assert text == "block M 128, K 64, N 256\nwarps 8\nstage nest 1 K 3\noverlap nest 1\n"
    assert best(found("softmax")).scheduled.schedule.startswith("block M 1, N 16384 whole\n")


def test_of_equal_costs_the_one_that_moves_least_is_chosen():
    first, *_ = found("matmul")
    limit = PRIORS.near_schedules_factor * first.microseconds
    near = [one for one in found("matmul") if one.microseconds <= limit]
    moved = [sum(work.moved for work in one.cost.works) for one in near]
    taken = best(found("matmul"))
    assert len(near) > 1
    assert sum(work.moved for work in taken.cost.works) == min(moved) <= moved[0]


def test_launches_do_not_hide_what_is_slower():
    """Measured on an H200: 2.0 microseconds with two rows to a program, 1.8 with one."""
    taken, *others = preferred(found("layer norm"))
    slower = [one for one in others if "block M 2," in one.scheduled.schedule]
    near = PRIORS.near_schedules_factor

    assert taken.scheduled.schedule.startswith("block M 1, N 1024 whole\n")
    assert any(one.microseconds <= near * taken.microseconds for one in slower)


def multiplies_apart(one):
    return any(phase.apart for work in one.cost.works for phase in work.phases)


class AsFast(Variation):
    """A variation that takes one microsecond."""

    microseconds = 1.0


def test_of_equal_costs_warps_that_multiply_together_come_before_less_traffic():
    """The closed form does not tell them apart by as much as they were measured to differ."""
    by_traffic = sorted(found("128 rows"), key=lambda one: one.cost.moved)
    apart = next(one for one in by_traffic if multiplies_apart(one))
    together = next(one for one in reversed(by_traffic) if not multiplies_apart(one))
    equals = [AsFast(**vars(one)) for one in (apart, together)]

    assert apart.cost.moved < together.cost.moved
    assert preferred(equals)[0].scheduled == together.scheduled


def test_warps_that_multiply_together_are_chosen():
    """Measured on an H200: 5.4 microseconds by 64 rows, 6.3 to 8.4 by 32."""
    assert "M 64, K 256, N 32\n" in best(found("128 rows")).scheduled.schedule


def test_of_equal_costs_the_one_whose_dots_read_least_is_chosen():
    """Measured on an H200: 26.3 microseconds by 128 x 256 results, 28.4 by 256 x 128."""
    tall, wide = (
        next(one for one in found("many rows") if f"{blocks}\nwarps 8" in one.scheduled.schedule)
        for blocks in ("M 256, K 64, N 128", "M 128, K 64, N 256")
    )
    equals = [AsFast(**vars(one)) for one in (tall, wide)]

    assert preferred(equals)[0].scheduled == wide.scheduled
    assert best(found("many rows")).scheduled == wide.scheduled


def test_a_product_costs_what_it_does_once_it_takes_its_grid_in_turn():
    """Four warps multiply 64 rows: with 256 rows to eight of them it never does."""
    tall, wide = (
        next(one for one in found("many rows") if blocks in one.scheduled.schedule)
        for blocks in ("M 256, K 64, N 128\n", "M 128, K 64, N 256\n")
    )

    assert tall.microseconds == priced(tall.scheduled).microseconds
    assert wide.microseconds < priced(wide.scheduled).microseconds


def test_few_are_costed(monkeypatch):
    monkeypatch.setattr(module, "PRIORS", replace(PRIORS, most_schedules=5))
    assert len(variations(bare("matmul"))) <= 5


def test_there_are_none_where_nothing_fits(monkeypatch):
    monkeypatch.setattr(cost, "PRIORS", replace(PRIORS, register_room=0.0))
    assert variations(bare("softmax")) == ()


def test_warps_that_share_rows_are_parted():
    kernel = bb.emit(bb.fuse(bb.lower(bb.trace(softmax, x="M N"))), dict(M=8192, N=77), "float16")

    assert "warps 1\n" in kernel.schedule
    (work,) = work_of(kernel.tile_program, kernel.sizes, kernel.target)
    assert not any(phase.exchanges for phase in work.phases)
