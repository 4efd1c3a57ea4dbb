"""Stored results under a mask: tiles that it empties are filled by loops over the other blocks."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.kernel import written
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.target.compiler import target_of
from blockbuster.emit.tile.parse import parse_tiles
from blockbuster.emit.tile.traffic import tile_traffic
from blockbuster.runtime.launch import run_interpreted

ALL_STORED = """
tiles {
  dots in f32
  inputs X: f32[M, N]
  outputs Y: f32[M, N]
  nest 1 {
    blocks M 4?, N 2? warps 4
    forall M 4? {
      t1: int[M 4?] = index M
      forall N 2? {
        t2: int[N 2?] = index N
        t3: f32[M 4?, N 2?] = load X[M, N]
        t4: bool[M 4?, N 2?] = t1 >= t2
        t5: f32[M 4?, N 2?] = where(t4, t3, -inf)
        store Y[M, N] = t5
      }
    }
  }
}
"""
DEAD_FILLED = """
tiles {
  dots in f32
  inputs X: f32[M, N]
  outputs Y: f32[M, N]
  nest 1 {
    blocks M 4?, N 2? warps 4
    forall M 4? {
      t1: int[M 4?] = index M
      t6: int[] = index M at last
      t7: int[] = block N of t6
      t8: int[] = t7 + 1
      forall N 2? from 0 to t8 {
        t2: int[N 2?] = index N
        t3: f32[M 4?, N 2?] = load X[M, N]
        t4: bool[M 4?, N 2?] = t1 >= t2
        t5: f32[M 4?, N 2?] = where(t4, t3, -inf)
        store Y[M, N] = t5
      }
      forall N 2? from t8 {
        t9: f32[M 4?, N 2?] = -inf
        store Y[M, N] = t9
      }
    }
  }
}
"""


def test_dead_tiles_are_filled_by_another_loop_over_the_rest():
    """A span's complement is a span, or two: parallel loops in turn store each place once."""
    before, after = parse_tiles(ALL_STORED), parse_tiles(DEAD_FILLED)
    sizes = {"M": 10, "N": 13}
    moved = [tile_traffic(program, sizes) for program in (before, after)]

    assert prove_tiles(before, after, trials=8).equal
    assert moved[0]["Y"].elements_stored == moved[1]["Y"].elements_stored == 130
    assert moved[1]["X"].elements_loaded < moved[0]["X"].elements_loaded


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("from t8 {", "from t7 {", "the programs differ as terms"),
        ("block N of t6", "block N of t10", "is never written"),
    ],
)
def test_a_place_that_no_span_or_two_spans_hold(old, new, reason):
    text = DEAD_FILLED.replace(old, new)
    if "t10" in new:  # the first loop ends too early, the second begins where the first should end
        text = text.replace(
            "      t7: int[]", "      t10: int[] = index M at first\n      t7: int[]"
        )
        text = text.replace(
            "      forall N 2? from t8",
            "      t11: int[] = block N of t6\n"
            "      t12: int[] = t11 + 1\n      forall N 2? from t12",
        )
    text = text.replace("\\\n", "\n")
    proof = prove_tiles(parse_tiles(ALL_STORED), parse_tiles(text), trials=8)

    assert proof.equal is False
    assert reason in proof.reason


@pytest.mark.interpreter
def test_dead_tiles_in_triton():
    graph = bb.lower(bb.trace(lambda X: X + 1.0, X="M N"))
    x = np.random.default_rng(1).integers(-9, 9, (10, 13)).astype(np.float32)
    scheduled = unscheduled(parse_tiles(DEAD_FILLED), {"M": 10, "N": 13}, target_of("sm_90"))

    made = run_interpreted(written(scheduled, graph), {"X": x})
    seen = np.arange(10)[:, None] >= np.arange(13)
    np.testing.assert_array_equal(made["Y"], np.where(seen, x, -np.inf))
