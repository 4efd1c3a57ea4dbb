"""Every part of what passes do about spans matters: broken, a program means something else."""

import pytest

from blockbuster.emit.closing import hoist, lead_first, merge_repeats
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import drop_unit_loops
from blockbuster.emit.schedule.block import Cut
from blockbuster.emit.schedule.script import BY_NAME
from blockbuster.emit.schedule.site import EVERYWHERE
from blockbuster.emit.tile import cut, dataflow
from blockbuster.errors import EmitError
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import anew, moved, mutated, passed, scheduled, verdicts
from tests.emit.test_spans import BAND

# a span whose ends are of several blocks; the number of the first is made twice
WIDE = """
tiles {
  inputs X: [M, N]
  outputs Y: [M]
  nest 1 {
    forall M {
      t1: [] = index M at first
      t2: [] = index M at last
      t3: [] = t2 * 2
      t4: [] = block N of t1
      t5: [] = block N of t3
      t6: [] = block N of t1
      t7: [M] = init +
      for N from t6 to t5 {
        t8: [M, N] = load X[M, N]
        t9: [M] = row_sum(t8)
        t7 += t9
      }
      t10: [M] = t7 + t4 over [M]
      store Y[M] = t10
    }
  }
}
"""
# the bound of an inner loop is of the block that the loop around is at
NESTED = """
tiles {
  inputs X: [M, N, K]
  outputs Y: [M]
  nest 1 {
    forall M {
      t1: [M] = init +
      for N {
        t2: [] = index N at last
        t3: [] = block K of t2
        for K from 0 to t3 {
          t4: [M, N, K] = load X[M, N, K]
          t5: [M, N] = row_sum(t4)
          t6: [M] = row_sum(t5)
          t1 += t6
        }
      }
      store Y[M] = t1
    }
  }
}
"""
# what bounds the second loop is made before the nest has to be split
SPLIT = """
tiles {
  dots in f32
  inputs X: f32[M, N]
  outputs Z: f32[M, N], Y: f32[M]
  nest 1 {
    forall M {
      t1: int[] = index M at last
      t2: int[] = block N of t1
      t3: int[] = t2 + 1
      forall N {
        t4: f32[M, N] = load X[M, N]
        t5: f32[M, N] = exp(t4)
        store Z[M, N] = t5
      }
      t6: f32[M] = init +
      for N from 0 to t3 {
        t7: f32[M, N] = load Z[M, N]
        t8: f32[M] = row_sum(t7)
        t6 += t8
      }
      store Y[M] = t6
    }
  }
}
"""
# the lead's own value bounds a loop: under another lead it would run otherwise
LED = """
tiles {
  inputs X: [M, N], W: [K]
  outputs Y: [M], S: [M]
  units M
  nest 1 {
    forall M {
      t1: [] = init max
      t2: [] = init +
      t3: [] = init +
      for N {
        t4: [N] = load X[M, N]
        t5: [] = row_max(t4)
        t6: [N] = exp(sub0(t4, t5))
        t7: [] = row_sum(t6)
        for K from t5 {
          t8: [K] = load W[K]
          t9: [] = row_sum(t8)
          t3 += t9
        }
        t1 max= t5
          with t2 += t7 by x * exp(sub0(r, r2))
      }
      store Y[M] = t2
      store S[M] = t3
    }
  }
}
"""


def of(text):
    return parse_tiles(text)


MUTANTS = [
    (merge_repeats, "return Iota, target.axes, dim, at", "return Iota, target.axes, dim",
     passed("merge_repeats"), [of(WIDE)]),
    (merge_repeats, "return BlockOf, target.axes, dim, value", "return BlockOf, target.axes, dim",
     passed("merge_repeats"), [of(WIDE)]),
    (merge_repeats, "loop = rebound(stmt, alias)", "loop = stmt", passed("merge_repeats"),
     [of(WIDE)]),
    (hoist, "if isinstance(stmt, Iota) and stmt.at and stmt.dim == loop.dim:", "if False:",
     passed("hoist"), [of(NESTED)]),
    (cut, "case BlockOf(target) if target in bounds:", "case BlockOf(target) if False:",
     moved("split"), [of(SPLIT)]),
    (cut, "waiting.extend(operands(again[tile]))", "pass", moved("split"), [of(SPLIT)]),
    (dataflow, "return stmt.bounds", "return ()", moved("split"), [of(SPLIT)]),
    (lead_first, "(*operands(stmt), *reads(stmt.body))", "reads(stmt.body)",
     passed("lead_first"), [of(LED)]),
]  # fmt: skip
IDS = [f"{module.__name__.rpartition('.')[2]}: {old[:40]}" for module, old, *_ in MUTANTS]


@pytest.mark.parametrize(("module", "old", "new", "apply", "programs"), MUTANTS, ids=IDS)
def test_a_broken_predicate_is_caught(monkeypatch, module, old, new, apply, programs):
    assert set(verdicts(apply, programs)) <= {True}

    mutated(monkeypatch, module, old, new)
    assert False in verdicts(apply, [anew(program) for program in programs])


def test_a_loop_over_a_span_stays_though_its_dim_is_one_block(monkeypatch):
    """Its span may be empty: then its body must not run."""
    program = of(BAND)
    with pytest.raises(EmitError, match="runs over a span of blocks, which may be empty"):
        drop_unit_loops.drop_unit_loops(program, ("N",))

    monkeypatch.setattr(drop_unit_loops, "in_spans", lambda program, dim: "")
    dropped = drop_unit_loops.drop_unit_loops(program, ("N",))
    assert prove_tiles(program, dropped, trials=8).equal is False


def test_blocks_are_not_cut_that_spans_are_of():
    """Other blocks would be other iterations."""
    start, move = scheduled(of(WIDE)), BY_NAME["block"]
    for dim in ("M", "N"):
        args = {"cuts": (Cut(dim, 4),)}
        assert "cut it before" in move.why_not(start, EVERYWHERE, **args)
        other = move.rewritten(start, EVERYWHERE, **args)
        assert prove_tiles(start.draft, other, trials=16).equal is False
