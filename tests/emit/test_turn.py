"""The move turn: sums of products with their operands exchanged, where, and why not elsewhere."""

import pytest

from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.site import Site, statements_of
from blockbuster.emit.schedule.turn import Turn
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.program import Let
from blockbuster.emit.tile.trips import sized
from blockbuster.errors import EmitError
from blockbuster.selection.decisions.turned import turned
from tests.emit.parse_tiles import parse_tiles

TURN = Turn()

FEATURES = """
tiles {
  inputs P: [F, K], X: [N, K], V: [D, N]
  outputs O: [F, D]
  nest 1 {
    forall F {
      forall D {
        t1: [D, F] = init +
        for N {
          t2: [F, K] = load P[F, K]
          t3: [N, K] = load X[N, K]
          t4: [F, N] = dot(t2, t3)
          t5: [F, N] = exp(t4)
          t6: [D, N] = load V[D, N]
          t7: [D, F] = dot(t6, t5)
          t1 += t7
        }
        store O[F, D] = t1
      }
    }
  }
}
"""


def start(text=FEATURES):
    program = parse_tiles(text)
    return unscheduled(program, dict.fromkeys(sized(program), 64), target_of("sm_90"))


def dot_of(scheduled, name):
    return next(
        site
        for site, stmt in statements_of(scheduled.draft)
        if isinstance(stmt, Let) and stmt.target.name == name
    )


def test_the_operands_and_the_axes_of_the_sum_are_exchanged():
    before = start()
    made = TURN.apply(before, dot_of(before, "t7"))

    assert "t7: [F, D] = dot(t5, t6)" in str(made.draft)
    assert "t1: [F, D] = init +" in str(made.draft)
    assert "store O[F, D] = t1" in str(made.draft)
    assert parse_tiles(str(made.draft)) == made.draft


def test_it_is_proved_and_undone_by_itself():
    before = start()
    made = TURN.apply(before, dot_of(before, "t7"))

    proof = prove_tiles(before.draft, made.draft, trials=2)
    assert proof.equal, proof
    assert proof.tier == "A"
    twice = TURN.apply(made, dot_of(made, "t7"))
    assert TURN.apply(twice, dot_of(twice, "t7")).draft == made.draft


def test_other_operands_are_another_program():
    before = start()
    made = str(TURN.apply(before, dot_of(before, "t7")).draft)
    wrong = parse_tiles(made.replace("[F, D] = dot(t5, t6)", "[F, D] = dot(t4, t6)"))

    assert not prove_tiles(before.draft, wrong, trials=2).equal


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("store O[F, D] = t1", "t8: [D, F] = exp(t1)\n        store O[F, D] = t8", "only stored"),
        ("t1 += t7", "t1 += t7\n          t1 += t7", "not only added up"),
        ("t1 += t7", "t8: [D, F] = exp(t7)\n          t1 += t8", "not only added up"),
        ("t1 += t7", "t1 max= t7", "not only added up"),
        ("t1 += t7", "t8: [D, F] = dot(t6, t5)\n          t1 += t7\n          t1 += t8", "adds up"),
    ],
)
def test_a_sum_that_is_used_otherwise_stays(old, new, reason):
    text = FEATURES.replace(old, new)
    text = text.replace("init +", "init max") if "max=" in new else text
    before = start(text)

    assert reason in TURN.why_not(before, dot_of(before, "t7"))
    with pytest.raises(EmitError, match="does not apply"):
        TURN.apply(before, dot_of(before, "t7"))


def test_what_is_no_dot_is_no_place():
    before = start()

    assert TURN.why_not(before, dot_of(before, "t5")) == "it is no dot of two blocks"
    assert TURN.why_not(before, Site(1, statement=99)).startswith("there is no nest 1 @99")
    assert list(TURN.sites(before)) == [dot_of(before, "t7")]


def test_what_is_computed_becomes_the_left_operand_where_the_other_is_loaded():
    made = turned(start())
    computed = FEATURES.replace("dot(t6, t5)", "dot(t8, t5)").replace(
        "t7: [D, F]", "t8: [D, N] = exp(t6)\n          t7: [D, F]"
    )

    assert [move.move for move in made.moves] == ["turn"]
    assert turned(made) == made
    assert turned(start(computed)).moves == ()
