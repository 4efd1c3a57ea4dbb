"""Chunks are combined in one tile where it is small enough with few rows, else one by one."""

import re

import pytest

import blockbuster as bb
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.site import Site, loops_of
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import For, Load, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.ir.parse import parse
from blockbuster.selection.decisions.combining import (
    CHUNK,
    combining_warps,
    in_one_tile,
    programs,
    rows_spread,
    widest,
)
from blockbuster.selection.nearby.roles import Roles
from blockbuster.selection.nearby.settings import usual
from blockbuster.selection.priors import PRIORS
from tests.emit.cases import SAFE_ATTENTION, scheduled_of
from tests.emit.test_defer_lane_sums import ROWS

TILES = dict(M=16, N=64, D=128, L=128)
TWO_LOOPS = """
graph(X: M,N[M,N], W: N[D,N], V: L[L,D]) {
  O = map M (x in !X, w = !W, v = !V) {
    p = map N (a in !x, k in !w) { d = dot(a, k)  yield +d }
    y = map L (c in !v, p2 = p) { d = dot(p2, c)  yield d }
    yield y
  }
  return O
}
"""


def cut(text, *, processors=132, **sizes):
    program = lower_to_tiles(parse(text))
    blocks = {dim: TILES[dim] for dim in sizes}
    return scheduled_of(program, processors=processors, sizes=sizes, blocks=blocks)


def lanes_of(scheduled, nest, dim):
    return tiling_of(scheduled.draft, scheduled.draft.nests[nest - 1]).block(dim)


def test_a_program_combines_all_chunks_of_its_rows_at_once():
    start = cut(SAFE_ATTENTION, M=64, N=4096, D=128, L=128)
    made = in_one_tile(start, Site(1, "N"), 32)
    combining = made.draft.nests[1]
    loads = [stmt for stmt in statements(combining.body) if isinstance(stmt, Load)]

    moves = ["chunk nest 1 N 32 all at once", "recut nest 2 M 1"]
    assert [str(move) for move in made.moves] == moves
    assert not any(isinstance(stmt, For) for stmt in body_inside_grid(combining)[1])
    assert all("N_chunks" in load.target.axes for load in loads)
    assert widest(made.draft, combining) == 1 * 128 * 32


def test_rows_stay_together_where_their_tile_fits_and_the_device_is_busy():
    start = cut(SAFE_ATTENTION, processors=4, M=64, N=4096, D=128, L=128)
    made = in_one_tile(start, Site(1, "N"), 2)

    assert lanes_of(made, 2, "M") == 16
    assert programs(made, made.draft.nests[1]) == 4
    assert widest(made.draft, made.draft.nests[1]) == 16 * 128 * 2


def test_more_programs_than_processors_where_a_tile_would_be_too_wide():
    start = cut(SAFE_ATTENTION, processors=4, M=64, N=4096, D=128, L=128)
    made = in_one_tile(start, Site(1, "N"), 16)

    assert lanes_of(made, 2, "M") == 4
    assert widest(made.draft, made.draft.nests[1]) == PRIORS.combined_lanes


def test_what_is_too_wide_in_single_rows_is_combined_one_by_one():
    start = cut(SAFE_ATTENTION, M=64, N=1 << 16, D=128, L=128)

    assert PRIORS.combined_lanes // 128 == 64
    assert in_one_tile(start, Site(1, "N"), 64) is not None
    assert in_one_tile(start, Site(1, "N"), 128) is None


def test_what_accumulates_rows_alone_has_tiles_of_its_own():
    """They are combined at once as they are."""
    assert in_one_tile(cut(ROWS, M=64, N=4096), Site(1, "N"), 8) is None


def test_a_kernel_with_another_loop_combines_one_by_one():
    """Its rows are those of the loop behind, too, which would load all of V for each of them."""
    start, site = cut(TWO_LOOPS, M=64, N=4096, D=128, L=512), Site(1, "N")

    assert not CHUNK.why_not(start, site, count=8, at_once=True, blocks=True)
    assert in_one_tile(start, site, 8) is None


@pytest.mark.parametrize("heads", [1, 8, 32])
def test_a_decoding_attention_combines_in_a_program_for_each_row(heads):
    def attention(q, k, v):
        return bb.softmax(q @ k.swapaxes(-1, -2), axis=-1) @ v

    graph = bb.fuse(bb.lower(bb.trace(attention, q="H M D", k="H N D", v="H N L"))).final
    kernel = bb.emit(graph, dict(H=heads, M=1, N=8192, D=128, L=128), "float16")
    lines = kernel.schedule.splitlines()

    assert any(re.fullmatch(r"chunk nest 1 N \d+ all at once", line) for line in lines)
    assert "recut nest 2 M 1" in lines


@pytest.mark.parametrize(("chunks", "warps"), [(8, 1), (32, 1), (64, 2)])
def test_as_few_warps_combine_as_hold_the_tile(chunks, warps):
    made = in_one_tile(cut(SAFE_ATTENTION, M=64, N=1 << 16, D=128, L=128), Site(1, "N"), chunks)
    parts, combining = made.draft.nests

    assert combining_warps(made.draft, combining) == warps
    assert combining_warps(made.draft, parts) == 0
    assert [setting.warps for setting in usual(made)][1] == warps


@pytest.mark.parametrize(
    ("rows", "warps"),
    [pytest.param(2, 1, id="1"), pytest.param(4, 2, id="2"), pytest.param(16, 4, id="at most 4")],
)
def test_warps_that_share_no_results_when_there_are_results_for_them(rows, warps):
    """Two chunks: one warp would hold all of them."""
    start = cut(SAFE_ATTENTION, processors=64 // rows, M=64, N=4096, D=128, L=128)
    made = in_one_tile(start, Site(1, "N"), 2)
    combining = made.draft.nests[1]

    assert lanes_of(made, 2, "M") == rows
    assert combining_warps(made.draft, combining) == warps


def test_a_running_exponent_is_rescaled_for_64_lanes_at_least():
    """Of other dims that dots sum over, half as many may be tried."""
    roles = Roles.of(cut(SAFE_ATTENTION, M=64, N=4096, D=128, L=128))
    product = Roles.of(cut(TWO_LOOPS, M=64, N=4096, D=128, L=512))

    assert (roles.running, roles.least("N")) == (("N",), PRIORS.running_lanes)
    assert (product.running, product.least("N")) == ((), PRIORS.narrowest_dot_lanes)


LARGEST = """
graph(X: M,K[M,K], W: N,K[N,K]) {
  O = map M (x in !X, w = !W) {
    m = map N (y = !x, v in !w) {
      p = map K (a in !y, b in !v) { d = dot(a, b)  yield +d }
      r = row_max(p)
      yield max r
    }
    yield m
  }
  return O
}
"""


def largest_in_chunks(processors):
    program = lower_to_tiles(parse(LARGEST))
    blocks, sizes = dict(M=128, K=64, N=64), dict(M=1024, K=64, N=8192)
    start = scheduled_of(program, processors=processors, sizes=sizes, blocks=blocks)
    site = next(site for site, loop in loops_of(start.draft) if loop.dim == "N")
    return start, CHUNK.apply(start, site, count=32, at_once=True), site


def test_chunks_of_rows_are_combined_in_as_many_programs_as_there_are_processors():
    start, made, site = largest_in_chunks(132)
    spread = rows_spread(start, made, site)

    assert programs(made, made.draft.nests[1]) == 8
    assert str(spread.moves[-1]) == "recut nest 2 M 4"
    assert programs(spread, spread.draft.nests[1]) == 256


def test_where_no_processor_is_idle_rows_stay_together():
    start, made, site = largest_in_chunks(8)
    assert rows_spread(start, made, site) == made
