"""Loads behind the loops of programs that take several places: which go there, and which stay."""

import pytest

from blockbuster.emit.closing import load_late, place_waits
from blockbuster.emit.closing.bind import bind
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.tile import dataflow
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import VerifyError
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import mutated


def program(programs="at most 2 programs"):
    """Row sums with a factor, which the loop needs, and numbers that it does not need."""
    return parse_tiles(f"""
tiles {{
  dots in f32
  inputs X: f32[M, N], F: f32[M], S: f32[M]
  outputs Y: f32[M], Z: f32[M]
  units M
  nest 1 {{
    grid M warps 4
    {programs}
    t1: f32[] = load S[M]
    t2: f32[] = t1 + 1
    t10: f32[] = t1 * 3
    t3: f32[] = load F[M]
    t4: f32[] = t3 * 2
    t5: f32[] = init +
    for N {{
      t6: f32[N] = load X[M, N]
      t7: f32[N] = t6 * t4
      t8: f32[] = row_sum(t7)
      t5 += t8
    }}
    t9: f32[] = t5 * t2
    store Y[M] = t9
    store Z[M] = t10
  }}
}}
""")


LATE = ["t5", "t3", "t4", "For", "t1", "t2", "t10", "t9", "Store", "Store"]


def names(made):
    found = []
    for stmt in made.nests[0].body:
        tile = getattr(stmt, "target", None)
        found.append(tile.name if tile else type(stmt).__name__)
    return found


def test_what_the_loop_does_not_need_goes_behind_it():
    made = load_late.load_late(program())
    verify_tiles(made)

    assert names(made) == LATE
    assert prove_tiles(program(), made, trials=3).equal


def masked(term):
    """A product with a mask of rows and columns; ``term``: what its loop adds."""
    return parse_tiles(f"""
tiles {{
  dots in f32
  inputs X: f32[M, K], W: f32[N, K]
  outputs Y: f32[M, N]
  nest 1 {{
    grid M, N warps 4
    t1: int[M] = index M
    t2: int[N] = index N
    t3: bool[M, N] = t1 <= t2
    t4: bool[M, N] = not(t3)
    t5: f32[M, N] = init +
    for K {{
      t6: f32[M, K] = load X[M, K]
      t7: f32[N, K] = load W[N, K]
      t8: f32[M, N] = dot(t6, t7)
      t9: f32[M, N] = {term}
      t5 += t9
    }}
    t10: f32[M, N] = where(t4, t5, 0)
    store Y[M, N] = t10
  }}
}}
""")


def test_a_mask_of_rows_and_columns_is_made_behind_the_loop():
    made = load_late.load_late(masked("t8 + t8"))
    verify_tiles(made)

    assert names(made) == ["t1", "t2", "t5", "For", "t3", "t4", "t10", "Store"]
    assert prove_tiles(masked("t8 + t8"), made, trials=2).equal


def test_a_mask_that_the_loop_needs_is_made_before_it():
    made = load_late.load_late(masked("where(t3, t8, 0)"))
    verify_tiles(made)

    assert names(made) == ["t1", "t2", "t5", "t3", "For", "t4", "t10", "Store"]
    assert prove_tiles(masked("where(t3, t8, 0)"), made, trials=2).equal


TWICE = """
tiles {
  dots in f32
  inputs X: f32[M, K], W: f32[N]
  outputs Y: f32[M, N], Z: f32[M, N]
  nest 1 {
    grid M, N warps 4
    t1: f32[M] = init +
    for K {
      t2: f32[M, K] = load X[M, K]
      t3: f32[M] = row_sum(t2)
      t1 += t3
    }
    t4: f32[N] = load W[N]
    t5: f32[M, N] = t4 + t1
    for K {
      t6: f32[M, K] = load X[M, K]
      t7: f32[M] = row_sum(t6)
      t1 += t7
    }
    store Y[M, N] = t5
    t8: f32[M, N] = t4 + t1
    store Z[M, N] = t8
  }
}
"""


def test_what_reads_a_sum_stays_before_the_loop_that_goes_on_with_it(monkeypatch):
    program = parse_tiles(TWICE)
    verify_tiles(program)
    kept = ["t1", "For", "t4", "t5", "For", "Store", "t8", "Store"]

    made = load_late.load_late(program)
    assert names(made) == kept
    assert prove_tiles(program, made, trials=2).equal

    mutated(monkeypatch, load_late, "changes & {*operands(one)}", "False")
    made = load_late.load_late(parse_tiles(TWICE))
    assert names(made) != kept
    assert not prove_tiles(program, made, trials=2).equal


def test_programs_of_one_place_stay_as_they_are():
    assert load_late.load_late(program("")) == program("")


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (dataflow, "if defined(stmt) in used:", "if False:"),
        (dataflow, "used.update(dict.fromkeys(operands(stmt)))", "pass"),
        (dataflow, "tuple(reversed(kept))", "tuple(kept)"),
        (dataflow, "dict.fromkeys((*reads(part),", "dict.fromkeys((*operands(part[0]),"),
        (load_late, "if isinstance(stmt, For):", "if False:"),
    ],
)
def test_each_part_of_the_pass_matters(monkeypatch, module, old, new):
    mutated(monkeypatch, module, old, new)
    made = load_late.load_late(program())
    try:
        verify_tiles(made)
        right = prove_tiles(program(), made, trials=2).equal
    except VerifyError:
        right = False
    assert not right or names(made) != LATE


BESIDE = """
tiles {
  dots in f32
  inputs X: f32[M, K], W: f32[N, K], R: f32[M, N]
  outputs Y: f32[M, N]
  workspaces I1: f32[M, K]
  nest 1 { warps 4 forall M { forall K {
    t1: f32[M, K] = load X[M, K]
    t2: f32[M, K] = t1 + 1
    store I1[M, K] = t2
  } } }
  nest 2 { grid M, N warps 4 PROGRAMS overlaps
    t3: f32[M, N] = init +
    for K {
      t4: f32[M, K] = load I1[M, K]
      t5: f32[N, K] = load W[N, K]
      t6: f32[M, N] = dot(t4, t5)
      t3 += t6
    }
    t7: f32[M, N] = load R[M, N]
    t8: f32[M, N] = t3 + t7
    store Y[M, N] = t8
  }
}
"""


@pytest.mark.parametrize(
    ("programs", "order"),
    [
        ("at most 2 programs", ["Wait", "Init", "For", "Load", "Let", "Store"]),
        ("", ["Init", "Load", "Wait", "For", "Let", "Store"]),
    ],
)
def test_programs_that_take_several_places_load_behind_their_loop(programs, order):
    """The tile would be held through the loop over places and the one inside, which are one."""
    draft = parse_tiles(BESIDE.replace("PROGRAMS", programs))
    placed = place_waits.place_waits(bind(draft))

    assert [type(stmt).__name__ for stmt in placed.nests[1].body] == order
    assert prove_tiles(draft, placed, trials=3).equal
