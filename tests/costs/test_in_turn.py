"""Times of products whose programs take the places of their grid in turn."""

from functools import cache

import pytest

import blockbuster as bb
from blockbuster.costs import time_of, work
from blockbuster.costs.cached import from_memory
from blockbuster.costs.coefficients import FITTED
from blockbuster.costs.steps import Rates
from blockbuster.machines import machine
from blockbuster.selection.priors import PRIORS

H200 = machine("h200")
SIZES = dict(M=8192, K=1024, N=4096)
WIDE = "block M 128, K 64, N 256\nwarps 8\nstage nest 1 K 3 by descriptors\n"
SMALL = WIDE.replace("N 256", "N 128")
TURNS = "persist nest 1 132\n"
TWO = SMALL.replace("warps 8", "warps 4")
TWO_TURNS = TWO + "persist nest 1 264\n"


@cache
def product():
    return bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final


def work_by(text, **sizes):
    kernel = bb.emit(product(), SIZES | sizes, "float16", "sm_90", schedule=text)
    (one,) = work(kernel.derivation.final)
    return one


def seconds(text, **sizes):
    return time_of(work_by(text, **sizes), H200).seconds


def test_only_the_first_place_of_a_processor_waits_for_its_first_loads_and_stores_alone():
    one = work_by(WIDE)
    rates = Rates(one, H200, FITTED, from_memory(one, H200, H200.processors, ()))
    outside, loop = rates.steps(H200.processors)
    fill, storing = loop.runs * loop.fill, max(outside.resources.values())
    matrix = loop.runs * loop.resources["matrix"]
    rounds = -(-one.programs // H200.processors)

    saved = seconds(WIDE) - seconds(WIDE + TURNS)

    assert one.footprint.resident(H200) == 1
    assert (rounds, work_by(WIDE + TURNS).in_turn, one.in_turn) == (8, True, False)
    assert fill > 1e-6
    assert (rounds - 1) * fill < saved < (rounds - 1) * (fill + 1.2 * storing)
    assert seconds(WIDE + TURNS) > rounds * matrix


def test_a_last_place_of_few_programs_saves_as_much_as_others():
    whole, more = (
        seconds(WIDE, M=128 * rows) - seconds(WIDE + TURNS, M=128 * rows) for rows in (33, 34)
    )

    assert whole > 0, "4 rounds"
    assert 1.1 * whole < more < 1.4 * whole, "16 programs in a fifth round"


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        pytest.param(WIDE, dict(M=1024), id="one round"),
        pytest.param(WIDE.replace("K 3 by descriptors", "K 1"), {}, id="nothing runs ahead"),
    ],
)
def test_others_take_as_long_as_by_a_grid(text, sizes):
    text = text.replace("stage nest 1 K 1\n", "")

    assert seconds(text + TURNS, **sizes) == seconds(text, **sizes)


def test_two_programs_in_turn_do_not_store_at_once():
    """An H200 took 54.7 microseconds for 4096 x 1024 x 4096 by a grid, and 52.6 in turn."""
    one = work_by(TWO)
    rounds = one.programs // (2 * H200.processors)

    saved = seconds(TWO) - seconds(TWO_TURNS)

    assert (one.footprint.resident(H200), rounds) == (2, 7)
    assert saved == pytest.approx((rounds - 1) * FITTED.between / H200.clock)


@pytest.mark.parametrize(("depth", "wins"), [(256, TWO), (512, TWO), (2048, WIDE)])
def test_two_small_ones_win_where_loops_are_short(depth, wins):
    """An H200 took 37.0 and 39.7 microseconds at a depth of 256, 98.8 and 97.7 at 2048."""
    small = seconds(TWO_TURNS, K=depth)
    wide = seconds(WIDE + TURNS, K=depth)

    assert (small < wide) == (wins == TWO)


def test_wide_results_are_chosen_for_what_they_save_in_turn():
    """The closed form says 121 microseconds for two programs of 128 x 128, 131 for one of 128 x 256
    by a grid and 112 in turn; an H200 took 112, and 106 in turn."""
    program = bb.trace(lambda x, w: x @ w, x="M K", w="K N")
    chosen = bb.compile(program, SIZES, machine="h200", library=False)
    lines = chosen.plan.files[0].considered.best.scheduled.schedule.splitlines()

    assert seconds(WIDE + TURNS) < seconds(SMALL) < seconds(WIDE)
    assert "block M 128, K 64, N 256" in lines
    assert TURNS.strip() in lines


def test_what_is_chosen_for_its_turns_gets_them():
    """In turn these take 18.5 microseconds, by a grid more than the 20 that descriptors pay for,
    without which nothing runs ahead from place to place."""
    program = bb.trace(lambda q, k: q @ k.swapaxes(-1, -2), q="H M D", k="H N D")
    compiled = bb.compile(program, dict(H=14, M=1024, N=1024, D=256), machine="h200")
    chosen = compiled.plan.files[0].considered.best.scheduled
    (one,) = work(chosen)

    assert time_of(one, H200).seconds * 1e6 < PRIORS.descriptor_us
    assert "block M 128, D 64, N 128\n" in chosen.schedule
    assert "persist nest 1 264\n" in chosen.schedule


SHALLOW = dict(K=128)
WALK = (
    "block M 128, K 128 whole, N 128\nwalk nest 1 N 2\nwarps 8\nstage nest 1 N 4 by descriptors\n"
)


def test_a_pair_in_turn_overlaps_as_its_loops_of_dots_do_however_long_it_stores():
    """An H200 took 23.9 microseconds at a depth of 128, 37.0 at 256."""
    one = work_by(TWO_TURNS, **SHALLOW)
    rates = Rates(one, H200, FITTED, from_memory(one, H200, 2 * H200.processors, ()))
    outside, loop = rates.steps(H200.processors)

    assert loop.runs * loop.seconds(2) < outside.runs * outside.seconds(2), "storing takes longer"
    assert loop.streams
    assert not outside.streams
    times = seconds(TWO_TURNS, **SHALLOW), seconds(TWO_TURNS, K=256)
    assert 0.6 < times[0] / times[1] < 0.75
    assert 22e-6 < times[0] < 28e-6
    rounds = one.programs // (2 * H200.processors)
    saved = seconds(TWO, **SHALLOW) - times[0]
    assert saved > 1.5 * (rounds - 1) * FITTED.between / H200.clock, "by a grid all store at once"


def test_a_loop_that_stores_its_products_waits_for_them():
    """An H200 took 29.9 microseconds by the walk, 23.9 by two programs to a processor in turn."""
    one = work_by(WALK, **SHALLOW)
    rates = Rates(one, H200, FITTED, from_memory(one, H200, H200.processors, ()))
    (loop,) = (step for step in rates.steps(H200.processors) if step.runs > 1)

    assert not loop.streams
    assert 27e-6 < seconds(WALK, **SHALLOW) < 33e-6
    assert seconds(TWO_TURNS, **SHALLOW) < 0.9 * seconds(WALK, **SHALLOW)


SILU = dict(M=4096, K=768, N=3072)


@cache
def activated():
    def linear(x, w):
        return bb.silu(x @ w)

    return bb.fuse(bb.lower(bb.trace(linear, x="M K", w="K N"))).final


@pytest.mark.parametrize("text", [WIDE + TURNS, SMALL, TWO, TWO_TURNS])
def test_no_dots_run_while_values_are_computed_behind_them(text):
    """Special units of an H200 take 6.8 microseconds for the two functions of each silu."""
    (plain,) = work(bb.emit(product(), SILU, "float16", "sm_90", schedule=text).derivation.final)
    (silu,) = work(bb.emit(activated(), SILU, "float16", "sm_90", schedule=text).derivation.final)
    taken = silu.special / H200.special

    assert silu.special == 2 * SILU["M"] * SILU["N"]
    assert sum(phase.computing for phase in silu.phases) == 10 * SILU["M"] * SILU["N"]
    assert 0.5 * taken < time_of(silu, H200).seconds - time_of(plain, H200).seconds < taken
