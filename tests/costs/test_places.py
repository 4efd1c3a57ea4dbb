"""Terms of the price for programs that take several places, uneven chunks and odd rows."""

from dataclasses import replace

import pytest

import blockbuster as bb
from blockbuster.costs import time_of, work
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.rules import safe
from blockbuster.selection.price import priced

TARGET = target_of("sm_90")


def program_of(fn, **inputs):
    graph = bb.fuse(bb.lower(bb.trace(fn, **inputs))).final
    return typed_for_gpu(graph, lower_to_tiles(safe(graph)), given_by("float16"))


@pytest.fixture(scope="module")
def product():
    return program_of(lambda x, w: x @ w, x="M K", w="K N")


@pytest.fixture(scope="module")
def rows():
    return program_of(lambda x: bb.layer_norm(x), x="M N")


@pytest.fixture(scope="module")
def columns():
    return program_of(lambda x: bb.max(x, axis=0), x="M N")


def scheduled(program, text, **sizes):
    return replayed(unscheduled(program, sizes, TARGET), text)


def seconds(program, text, **sizes):
    made = scheduled(program, text, **sizes)
    return [time_of(one, TARGET.machine).seconds for one in work(made)]


def test_few_programs_begin_each_place_anew(rows):
    """Of one program to a processor none hides the waits of another."""
    text = "block M 1, N 2048 whole\nwarps 4\n"
    sizes = dict(M=4096, N=2048)
    (every,), (few,), (ahead,) = (
        seconds(rows, f"{text}{more}", **sizes)
        for more in ("", "persist nest 1 132\n", "persist nest 1 132 in 3 stages\n")
    )
    assert every < ahead < few
    assert few > 2 * every


def test_as_many_programs_as_places_change_nothing(rows):
    text = "block M 1, N 2048 whole\nwarps 4\n"
    before, after = (seconds(rows, f"{text}{m}", M=132, N=2048) for m in ("", "persist nest 1 132"))

    assert after == pytest.approx(before, rel=1e-6)


def test_loads_by_pointers_do_not_run_ahead_in_a_loop_over_places(product):
    """Triton makes one loop of the places and the loop inside for descriptors alone."""
    text = "block M 128, K 64, N 256\nwarps 8\nstage nest 1 K 3{}\npersist nest 1 132\n"
    sizes = dict(M=4096, K=4096, N=4096)
    described, pointed = (
        work(scheduled(product, text.format(how), **sizes))[0] for how in (" by descriptors", "")
    )
    assert described.in_turn
    assert max(phase.ahead for phase in described.phases) == 2
    assert not pointed.in_turn
    assert max(phase.ahead for phase in pointed.phases) == 0
    slow, fast = (time_of(one, TARGET.machine).seconds for one in (pointed, described))
    assert slow > 2 * fast


def test_one_lane_asks_for_a_tile_by_a_descriptor(product):
    text = "block M 128, K 64, N 256\nwarps 8\nstage nest 1 K 3"
    sizes = dict(M=4096, K=4096, N=4096)
    pointed, described = (
        work(scheduled(product, f"{text}{how}\n", **sizes))[0].phases[-1].instructions
        for how in ("", " by descriptors")
    )
    assert described < pointed


@pytest.mark.parametrize(("columns", "ahead"), [(1024, 2), (1026, 2), (1025, 0)])
def test_odd_rows_of_the_caller_do_not_run_ahead(product, columns, ahead):
    """Copies that run ahead take four bytes at least: rows of 1025 numbers have none."""
    text = "block M 64, K 64, N 64\nwarps 4\nstage nest 1 K 3\n"
    (one,) = work(scheduled(product, text, M=512, K=columns, N=columns))

    assert max(phase.ahead for phase in one.phases) == ahead


def test_chunks_have_their_own_numbers_of_blocks(product):
    text = "block M 64, K 64, N 64\nchunk nest 1 K 8\nwarps 4\n"
    uneven, even = (
        work(scheduled(product, text, M=64, K=64 * blocks, N=64))[0].phases[-1]
        for blocks in (11, 16)
    )
    assert uneven.each == (2, 2, 2, 2, 2, 1, 0, 0)
    assert uneven.runs == sum(uneven.each)
    assert even.each == ()


def test_programs_that_take_uneven_chunks_are_no_faster(product):
    text = "block M 64, K 64, N 64\nwalk nest 1 N 8\nwarps 4\n"
    eleven, sixteen = (seconds(product, text, M=64, K=512, N=64 * n)[0] for n in (11, 16))

    assert eleven == pytest.approx(sixteen, rel=0.05)


def test_folds_across_rows_wait_for_what_a_thread_cannot_have_under_way(columns):
    text = "block M 128, N 64\nwarps {}\n"
    few, many = (seconds(columns, text.format(w), M=4096, N=3072)[0] for w in (1, 8))

    assert few > 1.5 * many


def test_a_kernel_by_few_programs_is_hidden_beside_a_product():
    def fn(x, w):
        return bb.rms_norm(x) @ w

    sizes = dict(M=2048, K=4096, N=1024)
    made = bb.emit(bb.fuse(bb.lower(bb.trace(fn, x="M K", w="K N"))), sizes).derivation.final
    assert "persist nest 1 264" in made.schedule
    found = priced(made)
    apart = [time_of(one, TARGET.machine).seconds * 1e6 for one in found.works]
    every = replace(found.works[0], fixed=0)

    assert found.microseconds < sum(apart)
    assert time_of(every, TARGET.machine).seconds * 1e6 < apart[0]


def test_more_programs_than_run_at_once_are_no_faster(product):
    """A processor has room for one: the others begin where the first have ended."""
    text = "block M 128, K 64, N 256\nwarps 8\nstage nest 1 K 3\npersist nest 1 {}\n"
    once, twice = (seconds(product, text.format(n), M=4096, K=512, N=8192)[0] for n in (132, 264))

    assert twice == pytest.approx(once, rel=0.05)
