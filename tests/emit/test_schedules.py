"""Schedules as text: replayed byte for byte, refused with the line and the reason, complete."""

from itertools import cycle, islice, product

import pytest

import blockbuster as bb
from bench.programs import OURS
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import BY_NAME, MOVES, not_complete, parsed, replayed
from blockbuster.emit.schedule.site import Applied, Site, loops_of
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import Await, Issue, statements
from blockbuster.errors import EmitError, ParseError
from blockbuster.ir.parse import parse
from blockbuster.rules import safe
from tests.emit.cases import SAFE_ATTENTION
from tests.emit.test_defer_lane_sums import PRODUCTS, ROWS
from tests.parameters import one_in

SIZES = {"M": 256, "N": 4096, "D": 64, "L": 64}
ATTENTION = parse(SAFE_ATTENTION)
GOOD = "block M 64, N 64, D 64 whole, L 64 whole\nwarps 4\nstage nest 1 N 3\n"
PARTIAL = """
graph(X: M,N[M,N]) {
  P = map M (x in !X) { y = map N (b in !x) { t = row_sum(b)  yield t }  yield y }
  S = map M (y in !P) { s = reduce + N (!y)  yield s }
  return S
}
"""


def start_of(graph, sizes, dtype="float16"):
    program = typed_for_gpu(graph, lower_to_tiles(safe(graph)), given_by(dtype))
    return unscheduled(program, sizes, target_of("sm_90"))


def refused(text, graph=ATTENTION, sizes=SIZES, error=EmitError):
    with pytest.raises(error) as found:
        emit(graph, sizes, schedule=text)
    return str(found.value)


@pytest.mark.parametrize("workload", one_in(10, OURS, first=2), ids=lambda workload: workload.name)
def test_a_kernels_schedule_gives_the_kernel_again(workload):
    """Sizes of each kind and both dtypes by turns, from snapshot to snapshot."""
    derivation = bb.fuse(bb.lower(bb.trace(workload.fn, **workload.inputs)))
    settings = cycle(product(("timed", "ragged"), ("float16", "float32")))
    for graph, (kind, dtype) in zip(derivation.snapshots, settings, strict=False):
        sizes = workload.sizes_of(kind)
        kernel = emit(graph, sizes, dtype)
        again = emit(graph, sizes, dtype, schedule=kernel.schedule)

        assert again.source == kernel.source
        assert again.schedule == kernel.schedule


def test_lines_comments_and_semicolons():
    joined = emit(ATTENTION, SIZES, schedule=f"# a comment\n{GOOD.replace(chr(10), ' ; ')}  # end")

    assert joined.schedule == GOOD
    assert [line.number for line in parsed("warps 4\n\nwarps 8;warps 2")] == [1, 3, 3]


def test_the_second_loop_over_a_dim_has_a_number():
    text = ROWS.replace(
        "yield s\n", "q = map N (b in !x) { f = row_max(b)  yield max f }\n yield s  yield q\n"
    )
    text = text.replace("  S =", "  S, Q =").replace("return S", "return S, Q")
    start = start_of(parse(text), {"M": 64, "N": 4096})
    sites = [str(site) for site, _ in loops_of(start.draft)]

    assert sites == ["nest 1 M", "nest 1 N", "nest 1 N#2"]
    (line,) = parsed("stage nest 1 N#2 3")
    assert (line.site, line.args) == (Site(1, "N", 2), {"stages": 3})


@pytest.mark.parametrize(
    ("text", "why", "column"),
    [
        ("blok M 64", "unknown move 'blok'", 0),
        ("  warps four", "expected COUNT, got 'four'", 8),
        ("warps 4 8", "expected COUNT, got '4 8'", 6),
        ("warps", "expected COUNT, got ''", 5),
        ("block M", "expected DIM LANES or DIM LANES whole, got 'M'", 6),
        ("block M 64 half", "expected DIM LANES or DIM LANES whole, got 'M 64 half'", 6),
        ("stage N 3", "stage takes a loop, such as nest 1 N", 6),
        ("stage nest N 3", "expected the number of a nest", 11),
        (f"stage nest {'9' * 5000} N 3", "expected the number of a nest", 11),
        ("stage nest 1", "stage takes a loop, such as nest 1 N", 12),
        ("defer nest 1 N", "defer takes a statement, such as nest 1 @7", 13),
        ("split nest 1", "split takes no place", 0),
        ("split 4", "nothing follows the place of split", 6),
        ("warps 4; chunk nest 1 N 8 twice", "expected COUNT, got '8 twice'", 24),
    ],
)
def test_mistakes_are_pointed_at(text, why, column):
    said = refused(f"{GOOD}{text}", error=ParseError)

    assert f"line 4 of the schedule: {why}" in said
    assert f"    {text}\n    {' ' * column}^" in said


def test_a_move_that_is_nearly_named_is_suggested():
    said = refused(f"{GOOD}blok M 64", error=ParseError)

    assert "hint: did you mean 'block'? known: join, group-heads" in said


def test_the_loops_are_listed_for_one_that_is_not_there():
    assert "hint: the loops are nest 1 M, nest 1 N" in refused(f"{GOOD}stage nest 1 Q 2")
    assert "the loops are" not in refused(f"{GOOD}stage nest 1 N 1")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("block M 63", "the block of M is 63, expected a power of two of at least 16"),
        ("block M 8", "the block of M is 8, expected a power of two of at least 16"),
        ("block Q 64", "no dim Q here; not cut yet: M, "),
        ("block M 64; block M 64", "M is cut already"),
        ("block M 64, M 32", "M is cut twice"),
        ("block nest 2 M 64", "there is no nest 2: block takes a nest"),
        ("block M 64 whole", "M has 256 elements, more than one block of 64"),
        ("split", "no nest loads what it stores"),
        ("stage nest 1 Q 2", "there is no nest 1 Q: stage takes a loop"),
        ("stage nest 1 N 1", "with 1 stages no load runs ahead: give at least 2"),
        ("stage nest 1 M 2", "the iterations over M are parallel: none runs before another"),
        ("stage nest 1 N 2", "the loop over N holds another loop"),
        ("chunk nest 1 N 3", "the number of chunks is 3, expected a power of two of at least 2"),
        ("chunk nest 1 M 2", "the loop over M is on the grid already"),
        ("warps 3", "the number of warps is 3, expected a power of two of at least 1"),
        ("warps 64", "the number of warps is 64, more than 32"),
        ("defer nest 1 @99", "there is no nest 1 @99: defer takes a statement"),
        ("defer nest 1 @1", "it is no fold"),
        ("finish nest 1 @1", "it makes no reciprocal, and no logarithm with an exponent"),
        (f"{GOOD}stage nest 1 N 3", "the loop over N has stages already"),
    ],
)
def test_a_move_that_does_not_apply_says_why(text, why):
    said = refused(text)

    assert why in said
    assert f"of the schedule, '{text.splitlines()[-1].split('; ')[-1]}': " in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "nest 1 does not cut"),
        ("block M 64, N 64, D 64 whole; warps 4", "nest 1 does not cut L: add 'block L 64'"),
        (
            "block M 64, N 64, D 64 whole, L 64 whole",
            "nest 1 has no number of warps: add 'warps 4'",
        ),
    ],
)
def test_a_schedule_says_everything(text, why):
    assert f"the schedule is not complete: {why}" in refused(text)


def test_what_loads_what_it_stores_has_to_be_split():
    graph = parse(PARTIAL)
    start = replayed(start_of(graph, {"M": 64, "N": 4096}), "block M 16, N 64; warps 4")

    assert len(start.draft.nests) == 2 or "add 'split'" in not_complete(start)


def test_a_schedule_and_tiles_exclude_each_other():
    with pytest.raises(ValueError, match="give it, or these, not both"):
        emit(ATTENTION, SIZES, schedule=GOOD, tiles={"M": 64})


@pytest.mark.parametrize(
    ("count", "why"),
    [
        (1 << 21, "has more than the 1048576 elements that Triton takes"),
        (8, ""),
    ],
)
def test_rows_of_all_chunks_fit_in_one_tile(count, why):
    start = replayed(start_of(parse(ROWS), {"M": 64, "N": 1 << 16}), "block M 64, N 64")
    move, site = BY_NAME["chunk"], Site(1, "N")

    assert why in move.why_not(start, site, count=count, at_once=True)
    assert bool(why) == bool(move.why_not(start, site, count=count, at_once=True))


def test_blocks_are_not_combined_at_once():
    text = "block M 64, N 64, D 64 whole, L 64 whole\nchunk nest 1 N 4 at once"

    assert "is a block" in refused(text) or "lacks an axis" in refused(text)


def test_nests_cut_dims_in_their_own_way():
    graph, sizes = parse(ROWS), {"M": 64, "N": 1 << 16}
    kernel = emit(
        graph,
        sizes,
        schedule="chunk nest 1 N 8\nblock nest 1 M 1, N 1024\nblock nest 2 M 16\nwarps 4",
    )
    first, second = kernel.tile_program.nests

    assert {b.dim: b.lanes for b in first.blocks} == {"M": 1, "N": 1024}
    assert {b.dim: b.lanes for b in second.blocks}["M"] == 16
    assert "BLOCK_M=1," in kernel.source
    assert "BLOCK_M=16," in kernel.source


def test_a_nest_cuts_no_dim_of_which_it_reads_only_the_size():
    graph = parse(
        "graph(x: N[N], y: M[M]) { Y = map N (a in !x) { b = exp(a)  yield b }"
        "  Z = map M (c in !y) { d = c * (1 / |N|)  yield d } return Y, Z }"
    )
    kernel = emit(graph, {"N": 100, "M": 100}, schedule="block N 16, M 32; warps 4")

    blocks = [[block.dim for block in nest.blocks] for nest in kernel.tile_program.nests]
    assert blocks == [["N"], ["M"]]


def test_what_runs_ahead_is_awaited():
    kernel = emit(ATTENTION, SIZES, schedule=GOOD)
    (nest,) = kernel.tile_program.nests
    ahead = [stmt for stmt in statements(nest.body) if isinstance(stmt, Issue)]

    assert [(stmt.token, stmt.ahead, stmt.slots) for stmt in ahead] == [("KT", 2, 3), ("VT", 2, 3)]
    assert sum(isinstance(stmt, Await) for stmt in statements(nest.body)) == 2
    assert "num_warps=4, num_stages=3" in kernel.source


def test_a_tile_that_is_used_twice_does_not_run_ahead():
    """A target predicate: bench/repro/pipeliner_race.py shows what happens otherwise."""
    text = PRODUCTS.replace("t = row_sum(y)", "t = row_sum(y)").replace(
        "d = dot(a, b)  yield +d", "d = dot(a, b)  e = row_sum(b)  yield +d  yield +e"
    )
    text = text.replace("      y = map K", "      y, z = map K").replace(
        "t = row_sum(y)", "t0 = col_scale(y, z)  t = row_sum(t0)"
    )
    sizes = {"M": 64, "N": 64, "K": 256}

    said = refused("block M 16, N 16, K 16\nstage nest 1 K 2", parse(text), sizes)
    assert "W feeds the matrix units and arithmetic: Triton's pipeliner races" in said


def test_proofs_go_through_the_moves():
    report = check_schedule(ATTENTION, GOOD, SIZES)
    names = [entry.name for entry in report.entries]

    assert report.equal
    assert names == ["lowered to tiles", *GOOD.split("\n")[:-1], "leads first, guards, grid"]


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.name)
def test_every_place_and_argument_reads_back(move):
    cut = replayed(start_of(ATTENTION, SIZES), "block M 64, N 64, D 64 whole, L 64 whole")
    rows = start_of(parse(ROWS), {"M": 64, "N": 4096}, "float32")
    starts = (start_of(ATTENTION, SIZES), cut, rows)
    found = [
        (site, args)
        for start in starts
        for site in move.sites(start)
        for args in islice(move.arguments(start, site), 4)
    ]
    for site, args in found:
        (line,) = parsed(str(Applied(move.name, site, move.show(**args))))
        assert (line.move, line.site, line.args) == (move, site, args)

    nowhere = (
        "join", "group-heads", "regroup", "split", "finish", "narrow", "fill", "part", "keep",
        "spread", "overlap", "split-float", "spell", "turn", "sink", "inline", "unroll", "skip",
    )  # fmt: skip
    assert found or move.name in nowhere
