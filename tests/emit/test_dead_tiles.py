"""Stored results under a mask: tiles that it empties are filled by loops over the other blocks."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.kernel import written
from blockbuster.emit.schedule import dead_iterations, fill
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import BY_NAME, replayed
from blockbuster.emit.schedule.site import EVERYWHERE, Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.interp.evaluate import evaluate
from blockbuster.runtime.launch import run_interpreted
from tests.emit.counting import tile_traffic
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import mutated, verdicts

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


# the move ---------------------------------------------------------------------------------

FILL = BY_NAME["fill"]


def scores(q, k):
    i, j = bb.arange(q.shape[0])[:, None], bb.arange(k.shape[0])
    return bb.where(i >= j, q @ k.T, -np.inf)


def probabilities(q, k):
    return bb.softmax(scores(q, k))


def finite(q, k):
    i, j = bb.arange(q.shape[0])[:, None], bb.arange(k.shape[0])
    return bb.where((i >= j) & (i - j < 3), q @ k.T, -7.0)


def scheduled_of(function, sizes, dtype="float32"):
    graph = bb.safe(bb.fuse(bb.lower(bb.trace(function, q="M D", k="N D"))).final)
    tiles = typed_for_gpu(graph, lower_to_tiles(graph), given_by(dtype))
    cut = replayed(unscheduled(tiles, sizes, target_of("sm_90")), "block M 16, N 16, D 16 whole")
    split = BY_NAME["split"]
    return graph, cut if split.why_not(cut, EVERYWHERE) else split.apply(cut, EVERYWHERE)


def all_filled(scheduled):
    while sites := list(FILL.sites(scheduled)):
        scheduled = FILL.apply(scheduled, sites[0])
    return scheduled


SIZES = {"M": 75, "N": 60, "D": 16}


@pytest.mark.parametrize(("function", "loads"), [(scores, 14), (finite, 7), (probabilities, 14)])
def test_tiles_that_a_mask_empties_are_not_computed(function, loads):
    _, start = scheduled_of(function, SIZES)
    end = all_filled(start)
    proof = prove_tiles(start.draft, end.draft, trials=8)

    assert end.moves != start.moves
    assert proof.equal, proof
    assert prove_tiles(start.draft, end.program, trials=4, lanes=True).equal
    before, after = (tile_traffic(s.draft, SIZES)["k"].tiles_loaded for s in (start, end))
    assert (before, after) == (20, loads)


@pytest.mark.interpreter
@pytest.mark.parametrize("function", [scores, finite, probabilities])
def test_filled_results_in_triton(function):
    graph, start = scheduled_of(function, SIZES)
    kernel = written(replayed(all_filled(start), "warps 4"), graph)
    numbers = np.random.default_rng(2)
    given = {
        n: numbers.standard_normal((SIZES[d], 16)).astype(np.float32)
        for n, d in (("q", "M"), ("k", "N"))
    }
    wanted = evaluate(graph, {n: x.astype(float) for n, x in given.items()}, sizes=SIZES)

    made = run_interpreted(kernel, given)
    for name, array in wanted.items():
        np.testing.assert_allclose(made[name], array, rtol=1e-4, atol=1e-5)


def shifted(q, k):
    i, j = bb.arange(q.shape[0])[:, None], bb.arange(k.shape[0])
    return bb.where(i >= j, q @ k.T, q @ k.T - 1.0)


def summed(q, k):
    made = scores(q, k)
    return made, bb.sum(bb.where(made > -np.inf, made, 1.0), axis=1)


def unmasked(q, k):
    return q @ k.T


@pytest.mark.parametrize(
    ("function", "reason"),
    [(shifted, "leaves more than one number"), (unmasked, "no mask in the loop over N")],
)
def test_what_is_computed_under_a_dead_mask_stays(function, reason):
    _, start = scheduled_of(function, SIZES)
    assert not list(FILL.sites(start))
    assert reason in FILL.why_not(start, Site(1, "N"))


MUTANTS = [
    (fill, "rest += [(end, None)] if end is not None else []", "pass"),
    (fill, "rest: list[Span] = [(None, begin)] if begin is not None else []", "rest: list = []"),
    (fill, "Const(self.stored[stmt])", "Const(0.0)"),
    (
        dead_iterations,
        "return known, next(unknown, run.changed)",
        'return known, next(unknown, "")',
    ),
    (
        dead_iterations,
        "known = {stmt: value for stmt, value in run.stored.items() if isinstance(value, float)}",
        "known = dict.fromkeys(run.stored, 0.0)",
    ),
]


@pytest.mark.parametrize(("module", "old", "new"), MUTANTS)
def test_a_broken_move_is_caught(monkeypatch, module, old, new):
    def pairs(*functions):
        for function in functions:
            _, start = scheduled_of(function, SIZES)
            yield start.draft, all_filled(start).draft

    functions = [finite, scores, shifted, summed]
    assert set(verdicts(pairs, functions)) <= {True}

    mutated(monkeypatch, module, old, new)
    found = verdicts(pairs, functions)
    assert False in found or any(isinstance(verdict, str) for verdict in found)


def heads(q, k):
    i, j = bb.arange(q.shape[1])[:, None], bb.arange(k.shape[1])
    return bb.where(i >= j, q @ k.transpose(0, 2, 1), -np.inf)


@pytest.mark.parametrize(("count", "filled"), [(16, True), (1, False)])
def test_by_default_tiles_are_filled_where_enough_programs_are_left(count, filled):
    graph = bb.fuse(bb.lower(bb.trace(heads, q="H M D", k="H N D"))).final
    kernel = bb.emit(graph, {"H": count, "M": 2048, "N": 2048, "D": 64})

    assert ("fill nest 1 N" in kernel.schedule) == filled
