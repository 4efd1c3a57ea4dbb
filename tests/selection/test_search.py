"""The beam search: what it finds, and what it promises."""

from math import inf

import pytest

import blockbuster as bb
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.rules import safe
from blockbuster.selection.search import beam
from blockbuster.selection.space import Space

START = "block M 32, K 32, N 32\nwarps 4\n"


@pytest.fixture(scope="module")
def start():
    graph = bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final
    program = typed_for_gpu(graph, lower_to_tiles(safe(graph)), given_by("float16"))
    return replayed(unscheduled(program, dict(M=512, K=512, N=512), target_of("sm_90")), START)


def distance(scheduled):
    """Doublings between a schedule and blocks of 128 x 64 x 256 by 8 warps."""
    (nest, *others) = scheduled.draft.nests
    wanted, lanes = dict(M=128, K=64, N=256), {b.dim: b.lanes for b in nest.blocks}
    far = [abs(lanes.get(dim, 1).bit_length() - n.bit_length()) for dim, n in wanted.items()]
    return sum(far) + abs(nest.warps.bit_length() - (8).bit_length()) + 9.0 * len(others)


def test_it_steps_to_the_best_schedule(start):
    best, *_ = beam([start], distance, budget=900, width=2)

    assert best.microseconds == 0.0
    assert "block M 128, K 64, N 256\nwarps 8\n" in best.scheduled.schedule
    assert len(best.edits) >= 5, "two, one and three doublings of blocks, one of warps"


def test_it_prices_no_more_than_its_budget(start):
    asked = []

    def price(scheduled):
        asked.append(scheduled)
        return distance(scheduled)

    found = beam([start], price, budget=25)

    assert len(asked) == len(found) == 26
    assert len({one.draft for one in asked}) == 26, "none twice"


def test_no_result_is_worse_than_a_start(start):
    other = replayed(Space(start).bare, START.replace("warps 4", "warps 8"))

    found = beam([start, other], distance, budget=10)

    assert found[0].microseconds <= min(distance(start), distance(other))
    assert [one.microseconds for one in found] == sorted(one.microseconds for one in found)


def test_schedules_that_do_not_fit_are_last(start):
    def price(scheduled):
        return inf if scheduled.draft.nests[0].warps == 8 else distance(scheduled)

    found = beam([start], price, budget=60)

    assert found[0].scheduled.draft.nests[0].warps != 8
    assert found[-1].microseconds == inf


def test_two_searches_find_the_same(start):
    first, second = (beam([start], distance, budget=60) for _ in range(2))

    assert [one.scheduled.moves for one in first] == [one.scheduled.moves for one in second]
