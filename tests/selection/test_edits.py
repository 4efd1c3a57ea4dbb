"""Single kernels in other forms: other blocks, fewer programs, two blocks of rows to a program."""

from functools import cache

import pytest

import blockbuster as bb
from blockbuster.costs.registers import ALWAYS, TOTALS, WITH_DOTS, registers
from blockbuster.emit.schedule.jam import Jam
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.layouts import layouts_of
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.machines import machine
from blockbuster.rules import safe
from blockbuster.selection.contest import best_schedule
from blockbuster.selection.decisions.default_schedule import default_schedule
from blockbuster.selection.nearby.arrangements import Arrangement, Arrangements
from blockbuster.selection.nearby.edits import JAM, RECUT, WALK, edits, pairs_in
from blockbuster.selection.nearby.roles import Roles
from blockbuster.selection.price import priced
from blockbuster.selection.priors import PRIORS

BLOCKS = "block M 128, D' 128 whole, N 64, D 128 whole\nfactor nest 1"
MATMUL = "block M 128, K 64, N 128"


def attention(q, k, v):
    return bb.softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5, axis=-1) @ v


def matmul(x, w):
    return x @ w


@cache
def bare(fn, names, **sizes):
    graph = safe(bb.fuse(bb.lower(bb.trace(fn, **dict(names)))).final)
    program = typed_for_gpu(graph, lower_to_tiles(graph), given_by("float16"))
    return unscheduled(program, sizes, target_of("sm_90"))


def near(made, *moves, later=()):
    return ["; ".join(map(str, lines)) for lines in edits(made, later, moves)]


HEADS = (("q", "H M D"), ("k", "H N D"), ("v", "H N D"))


def heads(m, d=128):
    return bare(attention, HEADS, H=16, M=m, N=m, D=d)


@cache
def chosen(m, d=128):
    program = heads(m, d)
    return best_schedule(default_schedule(program.start, program.known, device=program.target))


@pytest.mark.parametrize(("m", "d", "two"), [(4096, 128, True), (4096, 64, False),
                                              (1024, 128, False)])  # fmt: skip
def test_two_blocks_where_they_are_faster_on_an_h200(m, d, two):
    """A program for 256 rows leaves half of the processors idle at 1024 positions."""
    assert ("jam nest 1 M" in chosen(m, d).schedule) == two


def test_a_product_alone_has_no_use_for_them():
    program = replayed(bare(matmul, (("x", "M K"), ("w", "K N")), M=4096, K=4096, N=4096), MATMUL)
    assert near(program, JAM) == []
    assert near(replayed(heads(4096), BLOCKS), JAM) == ["jam nest 1 M"]


def test_a_computed_operand_alone_waits_for_no_dot():
    sizes = dict(M=4096, K=4096, N=4096)
    program = replayed(bare(activated, (("x", "M K"), ("w", "K N")), **sizes), MATMUL)

    assert near(program, JAM) == []


def activated(x, w):
    return bb.maximum(x, 0) @ w


def test_sizes_tell_whether_blocks_come_in_pairs():
    program = replayed(heads(4096), BLOCKS)
    two = replayed(program, "jam nest 1 M")
    ragged = replayed(heads(4096 + 128), BLOCKS)

    assert list(pairs_in(program)) == []
    assert list(pairs_in(two)) == [("M", 256)]
    assert Jam().why_not(ragged, Site(1, "M"))


def test_their_room_is_what_compilers_make_do_with():
    """255 registers and 28 bytes spilled, outside of the loop, by the assembler of CUDA 13."""
    made = replayed(heads(4096), f"{BLOCKS}\njam nest 1 M\nwarps 8\nstage nest 1 N 3")
    (footprint,) = (work.footprint for work in priced(made).works)
    wanted = footprint.registers / footprint.available(machine("h200"))
    assert 1.0 < wanted < PRIORS.jammed_room


def test_a_class_of_sizes_has_pairs_or_not():
    program = bb.trace(attention, **dict(HEADS))
    calls = [
        bb.compile(program, dict(H=16, M=m, N=4096, D=128), machine="h200", library=False)
        for m in (4096, 4224)
    ]
    texts = ["M_half" in call.plan.source for call in calls]
    assert texts == [True, False]


ROWS = dict(M=1 << 16, K=64, N=64)
WHOLE = "block M 128, K 64 whole, N 64 whole"
WEIGHTS = (("x", "M K"), ("w", "K N"))


def product(text, **sizes):
    return replayed(bare(matmul, WEIGHTS, **ROWS | sizes), text)


def test_as_many_programs_as_fill_the_device_with_as_many_rows_and_half():
    assert near(product(WHOLE), WALK) == [
        "walk nest 1 M 256",
        "walk nest 1 M 128",
        "recut nest 1 M 64; walk nest 1 M 256",
        "recut nest 1 M 64; walk nest 1 M 128",
    ]


def test_programs_of_one_block_stay():
    assert near(product(WHOLE, M=512), WALK) == []


def test_kernels_with_loops_are_not_walked():
    assert near(product("block M 128, K 32, N 64 whole"), WALK) == []


def test_one_dim_of_dots_is_cut_anew_or_two_against_each_other_and_the_last_line_counts():
    made = product("block M 128, K 32, N 64 whole")
    wider, fewer = "recut nest 1 M 256", "recut nest 1 K 16"
    assert near(made, RECUT) == [
        wider, "recut nest 1 K 64", "recut nest 1 M 64", fewer,
        f"{wider}; {fewer}", "recut nest 1 K 64; recut nest 1 M 64",
    ]  # fmt: skip
    (first, *_) = edits(made, (), [RECUT])
    assert near(made, RECUT, later=first)[2] == "recut nest 1 M 64"


def test_rows_without_dots_keep_their_blocks():
    made = replayed(bare(lambda x: bb.exp(x), (("x", "M K"),), M=64, K=64), "block M 16, K 16")
    assert near(made, RECUT, WALK, JAM) == []


def test_what_a_dot_leaves_is_in_registers_whole():
    scheduled = product("block M 128, K 64 whole, N 256 whole\nwarps 4", N=256)
    nest = scheduled.program.nests[0]
    words = 128 * 256 / 128

    assert registers(layouts_of(scheduled.program, nest, "sm_90"))[0] >= int(
        ALWAYS + WITH_DOTS + TOTALS * words
    )


def test_a_line_that_does_not_apply_gives_no_schedule():
    program = product("")
    line = WALK.line(Site(2, "M"), count=2)
    assert Arrangements(program, Roles.of(program)).at(Arrangement(later=(line,))) is None


def test_walks_are_chosen_where_kernels_have_no_loops():
    """On an H200 this product takes 11.5 microseconds in turn, 16.2 by the best with loops."""
    program = bb.trace(lambda q, k: q @ k.swapaxes(-1, -2), q="H M D", k="H N D")
    sizes = dict(H=16, M=1024, N=1024, D=64)
    best = bb.compile(program, sizes, "float16", "h200", check=False).plan.files[0].considered.best

    assert "walk nest 1 " in best.scheduled.schedule
