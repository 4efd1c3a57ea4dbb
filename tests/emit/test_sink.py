"""The move sink: what stands before a parallel loop is made in it, and the grid runs the loop."""

import pytest

from blockbuster.emit.closing.bind import bind
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import sink
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.sink import Sink
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError, ParseError, VerifyError
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import mutated

SIZES = dict(M=4, N=6, K=5)


def program(*lines):
    """A nest of these lines in a loop over the rows."""
    return parse_tiles(f"""
tiles {{
  dots in f32
  inputs X: f32[M, K], S: f32[M], V: f32[N]
  outputs Y: f32[M, N]
  units M, N
  nest 1 {{
    forall M {{
      {chr(10).join(lines)}
    }}
  }}
}}
""")


SCALE = ("t1: f32[] = load S[M]", "t2: f32[] = rsqrt(t1 * t1 + 1)")
LOOP = ("forall N {", "t3: f32[] = load V[N]", "t4: f32[] = t3 * t2", "store Y[M, N] = t4", "}")
SUM = ("t2: f32[] = init +", "for K {", "t1: f32[K] = load X[M, K]", "t5: f32[] = row_sum(t1)",
       "t2 += t5", "}")  # fmt: skip
PLAIN = program(*SCALE, *LOOP)
STORED = ("t1: f32[N] = load Y[M, N]", "t2: f32[] = row_sum(t1)")


def of(tiles):
    return unscheduled(tiles, SIZES, target_of("sm_90"))


def test_the_grid_runs_the_loop_and_each_program_makes_what_it_needs():
    made = replayed(of(PLAIN), "sink nest 1 N").draft
    (nest,) = bind(made).nests

    assert [bind(PLAIN).nests[0].grid, nest.grid] == [("M",), ("M", "N")]
    assert [type(stmt).__name__ for stmt in nest.body] == ["Load", "Let", "Load", "Let", "Store"]
    assert prove_tiles(PLAIN, made, trials=3).equal


def test_its_places():
    assert list(Sink().sites(of(PLAIN))) == [Site(1, "N", 1)]
    assert list(Sink().sites(of(program(*SUM, *LOOP)))) == []


@pytest.mark.parametrize(
    ("lines", "text", "reason"),
    [
        ((*SCALE, *LOOP), "sink nest 1 M", "the loop over M is on the grid, or not the last"),
        ((*SCALE, *LOOP), "sink nest 1 K", "there is no nest 1 K"),
        ((*SCALE, *LOOP), "sink nest 1 N\nsink nest 1 N", "the loop over N is on the grid"),
        ((*SUM, *LOOP), "sink nest 1 K", "the loop over K is on the grid, or not the last"),
        ((*SUM, *LOOP), "sink nest 1 N", "stands more than loads and operators"),
        (
            ("t9: f32[] = load S[M]", *SUM),
            "sink nest 1 K",
            "the iterations of the loop over K depend on each other",
        ),
    ],
)
def test_refusals(lines, text, reason):
    with pytest.raises(EmitError, match=reason):
        replayed(of(program(*lines)), text)


def test_nothing_follows_the_place():
    with pytest.raises(ParseError, match="nothing follows the place of sink"):
        replayed(of(PLAIN), "sink nest 1 N 4")


MUTANTS = ["loop.body", "(*loop.body, *body[:-1])"]


@pytest.mark.parametrize("other", MUTANTS)
def test_a_change_of_the_move_is_caught(monkeypatch, other):
    mutated(monkeypatch, sink, "(*body[:-1], *loop.body)", other)
    made = sink.Sink().rewritten(of(PLAIN), Site(1, "N", 1))
    with pytest.raises(VerifyError):
        verify_tiles(made)


def test_what_the_loop_stores_is_not_loaded_in_it():
    loop = sink.not_repeatable(program(*STORED, *LOOP).nests[0].body[0].body[:-1], _loop(LOOP))
    assert loop == "the loop stores Y, which is loaded before it"


def _loop(lines):
    return program(*SCALE, *lines).nests[0].body[0].body[-1]
