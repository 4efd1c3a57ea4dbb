"""The move walk: a program of the grid takes several blocks of a dim, one after the other."""

import pytest

from blockbuster.emit.closing.bind import bind
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import walk
from blockbuster.emit.schedule.numbered_chunks import is_walked
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.schedule.walk import Walk
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.program import For
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError, ParseError, VerifyError
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import mutated

SIZES = dict(H=3, M=70, N=5)


def program(*lines, dims=("H", "M")):
    """A nest of these lines in parallel loops over ``dims``."""
    opened = "".join(f"forall {dim} {{\n" for dim in dims)
    return parse_tiles(f"""
tiles {{
  dots in f32
  inputs X: f32[H, M], V: f32[N], W: f32[H]
  outputs Y: f32[H, M]
  units H
  nest 1 {{
    {opened}
      {chr(10).join(lines)}
    {"}" * len(dims)}
  }}
}}
""")


SHIFT = ("t1: f32[] = load W[H]", "t2: f32[M] = load X[H, M]", "t3: f32[M] = t2 + t1",
         "store Y[H, M] = t3")  # fmt: skip
SUM = ("t4: f32[] = init +", "for N {", "t5: f32[N] = load V[N]", "t6: f32[] = row_sum(t5)",
       "t4 += t6", "}", "t2: f32[M] = load X[H, M]", "t3: f32[M] = t2 * t4",
       "store Y[H, M] = t3")  # fmt: skip
PLAIN = program(*SHIFT)


def of(tiles):
    return unscheduled(tiles, SIZES, target_of("sm_90"))


def test_blocks_of_chunks_of_chunks_are_apart():
    made = replayed(of(PLAIN), "block M 16\nwalk nest 1 M 2\nwalk nest 1 M_chunk 2").draft
    verify_tiles(made)
    assert prove_tiles(PLAIN, made, trials=3).equal


def test_what_all_blocks_share_is_loaded_before_the_loop():
    made = replayed(of(PLAIN), "block M 16\nwalk nest 1 M 2").draft
    (nest,) = bind(made).nests

    assert nest.grid == ("H", "M_chunk")
    assert [type(stmt).__name__ for stmt in nest.body] == ["Load", "For"]
    loop = nest.body[-1]
    assert isinstance(loop, For)
    assert (loop.dim, loop.parallel, loop.chunk) == ("M", False, "M_chunk")
    assert prove_tiles(PLAIN, made, trials=3).equal


def test_its_loads_run_ahead():
    made = replayed(of(PLAIN), "block M 16\nwalk nest 1 M 2\nstage nest 1 M 3").draft
    assert prove_tiles(PLAIN, made, trials=3).equal


@pytest.mark.parametrize("count", [2, 4, 16])
@pytest.mark.parametrize(("lines", "cut"), [(SHIFT, "M 16"), (SUM, "M 16, N 4")])
def test_more_programs_than_blocks_and_fewer(lines, cut, count):
    start = program(*lines)
    made = replayed(of(start), f"block {cut}\nwalk nest 1 M {count}").draft
    assert prove_tiles(start, made, trials=4).equal


def test_an_inner_loop_of_the_grid_goes_around_the_walked_one():
    start = program(*SHIFT, dims=("M", "H"))
    made = replayed(of(start), "block M 16\nwalk nest 1 M 2").draft

    assert bind(made).nests[0].grid == ("H", "M_chunk")
    assert prove_tiles(start, made, trials=3).equal


def test_chunks_that_are_combined_are_not_walked():
    walked = replayed(of(PLAIN), "block M 16\nwalk nest 1 M 2").draft
    chunked = replayed(of(program(*SUM)), "block M 16, N 4\nchunk nest 1 N 2").draft

    assert is_walked(walked, *walked.chunks)
    assert not is_walked(chunked, *chunked.chunks)


def test_its_places():
    assert list(Walk().sites(of(program(*SUM)))) == [Site(1, "H", 1), Site(1, "M", 1)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("walk nest 1 N 2", "the loop over N is not on the grid"),
        ("walk nest 1 K 2", "there is no nest 1 K"),
        ("walk nest 1 M 3", "the number of programs is 3, expected a power of two"),
        ("walk nest 1 M 1", "the number of programs is 1, expected a power of two of at least 2"),
        ("walk nest 1 M 2\nwalk nest 1 M 2", "the loop over M is not on the grid"),
        ("block M 16\norder nest 1 M last first\nwalk nest 1 M 2", "is decided already"),
    ],
)
def test_refusals(text, reason):
    with pytest.raises(EmitError, match=reason):
        replayed(of(program(*SUM)), text)


def test_it_takes_one_number():
    with pytest.raises(ParseError, match="expected COUNT, got"):
        replayed(of(PLAIN), "walk nest 1 M")


MUTANTS = [
    ("not_on_the_grid(loop, nest) or not_in_any_order(loop, nest)", '""', "N"),
    ("chunk=chunks.number)", "chunk=None)", "M"),
]


@pytest.mark.parametrize(("text", "other", "dim"), MUTANTS)
def test_a_change_of_the_move_is_caught(monkeypatch, text, other, dim):
    mutated(monkeypatch, walk, text, other)
    start = of(program(*SUM))
    site = Site(1, dim, 1)
    assert not walk.Walk().why_not(start, site, count=2)
    made = walk.Walk().rewritten(start, site, count=2)

    assert not _right(start.draft, made)


def _right(start, made):
    try:
        verify_tiles(made)
    except VerifyError:
        return False
    return bool(prove_tiles(start, made, trials=3).equal)
