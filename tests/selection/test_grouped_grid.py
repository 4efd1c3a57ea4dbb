"""Grids are walked in groups where programs then load much less from memory, and only there."""

import math
from dataclasses import replace

import pytest

import blockbuster as bb
from blockbuster.costs import work, work_of
from blockbuster.costs.phases import phases
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.tile.extents import extents_of
from blockbuster.emit.tile.grid_order import walked
from blockbuster.emit.tile.group import Group
from blockbuster.emit.tile.layouts import layouts_of
from blockbuster.selection.decisions.grouped_grid import GROUP, _walked, grouped
from blockbuster.selection.priors import PRIORS

BLOCKS = "block M 128, K 64, N 256\nwarps 8\nstage nest 1 K 3\n"


@pytest.fixture(scope="module")
def product():
    return bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final


def scheduled(graph, text, **sizes):
    return bb.emit(graph, sizes, "float16", schedule=text).derivation.final


def test_a_grid_far_beyond_the_cache_is_walked_in_groups(product):
    made = grouped(scheduled(product, BLOCKS, M=8192, K=8192, N=8192))

    assert str(made.moves[-1]) == "group nest 1 M 16"


@pytest.mark.parametrize(
    "sizes",
    [
        dict(M=2048, K=2048, N=2048),  # all arrays fit in the cache
        dict(M=1024, K=16384, N=2048),  # all programs run at once
        dict(M=16384, K=8192, N=1024),  # few columns: row by row is as good
        dict(M=8192, K=256, N=4096),  # what is stored is most of all
    ],
)
def test_other_grids_are_walked_row_by_row(product, sizes):
    start = scheduled(product, BLOCKS, **sizes)

    assert grouped(start) is start


def test_a_grid_of_heads_and_rows_is_left_as_it_is():
    """Programs of other heads share nothing."""

    def attention(q, k, v):
        return bb.softmax(q @ k.swapaxes(-1, -2), axis=-1) @ v

    graph = bb.fuse(bb.lower(bb.trace(attention, q="H M D", k="H N D", v="H N L"))).final
    text = "block M 64, D 128 whole, N 64, L 128 whole\nwarps 4\nstage nest 1 N 3\n"
    start = scheduled(graph, text, H=64, M=16384, N=16384, D=128, L=128)

    assert grouped(start) is start


def test_default_schedules_say_it(product):
    assert "group nest 1 M" in bb.emit(product, dict(M=16384, K=8192, N=16384), "float16").schedule


@pytest.mark.parametrize("blocks", PRIORS.group_sizes)
def test_the_work_of_a_grid_in_groups_is_that_of_the_schedule(product, blocks):
    """It is known without the schedule: only the order of the grid is another."""
    start = scheduled(product, BLOCKS, M=8192, K=8192, N=2048)
    (site,) = GROUP.sites(start)
    (alone,), (nest,) = work(start), start.program.nests
    (made,) = work(GROUP.apply(start, site, blocks=blocks))

    assert _walked(alone, nest, site, blocks) == made != alone


def causal(q, k, v):
    seen = bb.arange(q.shape[1])[:, None] >= bb.arange(k.shape[1])
    return bb.softmax(bb.where(seen, q @ k.swapaxes(-1, -2), -math.inf), axis=-1) @ v


@pytest.mark.parametrize(("dim", "blocks"), [("H", 2), ("H", 16), ("H", 3)])
def test_programs_of_other_lengths_come_in_the_order_of_the_groups(dim, blocks):
    graph = bb.fuse(bb.lower(bb.trace(causal, q="H M D", k="H N D", v="H N D"))).snapshots[-1]
    made = bb.emit(graph, dict(H=16, M=512, N=512, D=64), tiles={}).derivation.final
    program = made.program
    (nest,) = program.nests
    nest = replace(nest, group=Group(dim, blocks))
    (found,) = work_of(replace(program, nests=(nest,)), made.sizes, made.target.name)
    (extents,) = extents_of(replace(program, nests=(nest,)), made.sizes)

    assert found.phases == phases(program, layouts_of(program, nest), extents)
    assert any(len({*phase.each}) > 1 for phase in found.phases)
    assert found.grid == walked(nest, {dim: extents.trips(dim) for dim in nest.grid})


def test_no_groups_where_nothing_has_a_price():
    """A machine may lack a rate that programs of different lengths need."""
    graph = bb.fuse(bb.lower(bb.trace(causal, q="H M D", k="H N D", v="H N D"))).snapshots[-1]
    sizes = dict(H=16, M=2048, N=2048, D=64)
    made = bb.emit(graph, sizes).derivation.final
    assert "group nest 1 H" in made.schedule
    lacking = replace(made.target.machine, compute={})
    bare = replace(made, draft=made.start, moves=(), target=replace(made.target, machine=lacking))
    lines = [line for line in made.schedule.splitlines() if not line.startswith("group")]
    start = replayed(bare, "\n".join(lines))

    assert grouped(start) is start
