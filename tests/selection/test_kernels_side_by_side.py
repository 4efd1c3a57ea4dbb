"""Kernels with lanes of their own vary side by side: more of one form take no more schedules."""

from functools import cache

import blockbuster as bb
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.rules import safe
from blockbuster.selection.nearby.variations import variations

SIZES = dict(M=64, K=256, N=256)


@cache
def found(count):
    """Schedules of a state after so many steps, of which each is one kernel."""

    def state(x, w, u):
        x = bb.tanh(x @ w)
        for _ in range(count - 1):
            x = bb.tanh(x @ u)
        return x

    graph = safe(bb.fuse(bb.lower(bb.trace(state, x="M K", w="K N", u="N N"))).snapshots[0])
    program = typed_for_gpu(graph, lower_to_tiles(graph), given_by("float16"))
    return variations(unscheduled(program, SIZES, target_of("h100")))


def test_more_kernels_take_no_more_schedules():
    assert [len(found(count)[0].scheduled.draft.nests) for count in (4, 7)] == [4, 7]
    assert len(found(7)) <= len(found(4)) + 8


def test_kernels_that_differ_in_names_alone_get_lanes_of_one_kind():
    nests = found(7)[0].scheduled.draft.nests
    lanes = {tuple(block.lanes for block in nest.blocks) for nest in nests[1:-1]}

    assert len(lanes) == 1


def test_each_kernel_costs_no_more_among_many():
    few, many = (found(count)[0].microseconds / count for count in (4, 7))

    assert many <= 1.02 * few
