"""The space of schedules: what moves offer, and the edits of a script."""

from dataclasses import replace
from itertools import islice

import pytest

import blockbuster as bb
from bench.ablation import named
from bench.peers.cases import BY_KEY, CASES
from blockbuster.emission import check_schedule
from blockbuster.emit.schedule.block import ways_of
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import BY_NAME, not_complete, replayed
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.rules import safe
from blockbuster.selection.contest import best_schedule
from blockbuster.selection.decisions.default_schedule import default_schedule
from blockbuster.selection.nearby.variations import variations
from blockbuster.selection.space import Space

H100 = target_of("sm_90")
PRODUCT = "block M 64, K 32, N 64\nwarps 4\nstage nest 1 K 3\n"


def program_of(fn, **inputs):
    graph = bb.fuse(bb.lower(bb.trace(fn, **inputs))).final
    return graph, typed_for_gpu(graph, lower_to_tiles(safe(graph)), given_by("float16"))


@pytest.fixture(scope="module")
def product():
    return program_of(lambda x, w: x @ w, x="M K", w="K N")


def scheduled(program, text, **sizes):
    return replayed(unscheduled(program, sizes, H100), text)


@pytest.fixture(scope="module")
def start(product):
    return scheduled(product[1], PRODUCT, M=512, K=1024, N=512)


# neighbours ----------------------------------------------------------------------


def test_neighbours_are_complete_schedules_of_other_programs(start):
    found = [near.scheduled for near in Space(start).neighbours(start)]

    assert len(found) > 30
    assert len({one.draft for one in found} | {start.draft}) == len(found) + 1
    for one in found:
        assert not not_complete(one)
        bare = unscheduled(start.start, start.known, H100)
        assert replayed(bare, one.schedule).draft == one.draft, "its text makes it again"


def test_an_edit_changes_inserts_or_drops_one_line(start):
    edits = {near.edit: near.scheduled.schedule for near in Space(start).neighbours(start)}

    changed = "block M 64, K 32, N 64 -> block M 128, K 32, N 64"
    assert edits[changed] == PRODUCT.replace("M 64", "M 128")
    assert edits["warps 4 -> warps 8"] == PRODUCT.replace("warps 4", "warps 8")
    assert edits["drop stage nest 1 K 3"] == PRODUCT.replace("stage nest 1 K 3\n", "")
    assert "stage nest 1 K 3 -> stage nest 1 K 3 by descriptors" in edits
    assert "insert persist nest 1 132" in edits
    assert not [edit for edit in edits if edit.startswith(("drop block", "drop warps"))]


def test_lines_follow_their_nests(start):
    """A loop in chunks is two nests; the line that stages it still names the first of them."""
    space = Space(start)
    chunked = next(
        near.scheduled
        for near in space.neighbours(start)
        if near.edit == "insert chunk nest 1 K 4"
    )
    assert len(chunked.draft.nests) == 2
    assert "stage nest 1 K 3\n" in chunked.schedule
    back = next(
        near.scheduled
        for near in space.neighbours(chunked)
        if near.edit == "drop chunk nest 1 K 4"
    )
    assert back.draft == start.draft


def test_a_line_whose_nest_is_gone_is_left_out(product):
    text = "block M 64, K 32, N 64\nchunk nest 1 K 4\nrecut nest 2 M 16\nwarps 4\n"
    start = scheduled(product[1], text, M=512, K=1024, N=512)
    dropped = next(
        near.scheduled
        for near in Space(start).neighbours(start)
        if near.edit == "drop chunk nest 1 K 4"
    )
    assert "recut" not in dropped.schedule


def test_numbers_of_programs_and_chunks_stop_at_the_blocks(start):
    """More chunks than blocks would be programs without work, which the closed form likes."""
    loops = {near.edit for near in Space(start).neighbours(start)}

    assert "insert chunk nest 1 K 32" in loops, "1024 elements are 32 blocks"
    assert "insert walk nest 1 M 8" not in loops, "512 rows are 8 blocks"


def test_the_space_is_the_same_each_time(start):
    first, second = (
        [near.edit for near in Space(start).neighbours(start)] for _ in range(2)
    )
    assert first == second


PROGRAMS = {
    "product": (lambda x, w: x @ w, dict(x="M K", w="K N"), dict(M=96, K=64, N=80)),
    "softmax": (lambda x: bb.softmax(x, axis=-1), dict(x="M N"), dict(M=20, N=70)),
    "norm-product": (
        lambda x, w: bb.rms_norm(x) @ w, dict(x="M K", w="K N"), dict(M=40, K=64, N=48)
    ),
    "attention": (
        lambda q, k, v: bb.softmax(q @ k.swapaxes(-1, -2), axis=-1) @ v,
        dict(q="H M D", k="H N D", v="H N L"),
        dict(H=2, M=40, N=70, D=16, L=16),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_neighbours_compute_the_same(name):
    """Every move is proven on the way, by running the programs before and after it."""
    fn, inputs, sizes = PROGRAMS[name]
    graph, program = program_of(fn, **inputs)
    start = default_schedule(program, sizes, device=H100)

    for near in islice(Space(start).neighbours(start), 0, None, 9):
        text = near.scheduled.schedule
        assert check_schedule(graph, text, sizes, trials=2).equal, near.edit


# what is in the space ------------------------------------------------------------


def offers(move, scheduled, site, args):
    """True if a move has this place and these arguments. Of cuts it is asked dim by dim: there are
    as many as the product of what each dim can have, and a line may leave dims to later lines.
    """
    if move.name == "block":
        legal = not move.why_not(scheduled, site, **args)
        return legal and all(cut in ways_of(cut.dim, scheduled, site) for cut in args["cuts"])
    return site in [*move.sites(scheduled)] and args in [*move.arguments(scheduled, site)]


def not_offered(space, script):
    """The first line of a script that no move offers where it stands, or ""."""
    for at, line in enumerate(script):
        before, move = space.after(script[:at]), BY_NAME[line.move]
        if before is None or not offers(move, before, line.site, line.args):
            return str(line)
    return ""


def test_lines_that_no_move_offers_are_named(start):
    cut, warps, staged = start.moves
    odd = replace(staged, words="99", args={"stages": 99})

    assert not_offered(Space(start), start.moves) == ""
    assert not_offered(Space(start), (cut, warps, odd)) == "stage nest 1 K 99"
    assert not_offered(Space(start), (warps, replace(cut, site=Site(2)), staged)) == (
        "block nest 2 M 64, K 32, N 64"
    )


BY_NAME_ALONE = [case for case in CASES if " 128" not in " ".join(case.inputs.values())]
ONE_OF_EACH = list({(c.suite, c.family, c.dtype): c.key for c in BY_NAME_ALONE}.values())


@pytest.mark.slow
@pytest.mark.parametrize("key", ONE_OF_EACH)
def test_all_that_decisions_reach_is_in_the_space(key):
    """The choice for a program of the committed benchmark, and every schedule that it beat."""
    case = BY_KEY[key]
    graph = bb.fuse(bb.lower(bb.trace(named(case), **case.inputs))).final
    dtypes = {**dict.fromkeys(case.inputs, case.dtype), **case.own} if case.own else case.dtype
    program = typed_for_gpu(graph, lower_to_tiles(safe(graph)), given_by(dtypes))
    default = default_schedule(program, dict(case.sizes), device=H100)
    space = Space(default)

    for made in (default, best_schedule(default), *(v.scheduled for v in variations(default))):
        assert not_offered(space, made.moves) == ""
