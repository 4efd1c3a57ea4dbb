"""Loops over spans of blocks: what they mean, what is printed, moves at them, what they move."""

from itertools import count, islice
from random import Random

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.interpret.sides import Side, cut_by, cuts
from blockbuster.emit.kernel import written
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import BY_NAME, MOVES
from blockbuster.emit.schedule.site import EVERYWHERE
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.program import For, statements
from blockbuster.emit.tile.traffic import arithmetic
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.interp.setting import SIZES
from blockbuster.ir.types import size_class
from blockbuster.runtime.launch import run_batch, run_interpreted
from tests.emit.cases import FOLDER
from tests.emit.counting import count_run, tile_traffic
from tests.emit.numpy_runs import run_numpy
from tests.emit.parse_tiles import parse_tiles
from tests.emit.random_spans import with_spans
from tests.emit.random_tiles import all_cut, applications, is_cut, lowered, random_graph, some_moves

RANDOMS = st.integers(0, 2**32 - 1).map(Random)
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)


def spanned_start(random, most=3):
    """A tile program with spans after some moves: with blocks for all dims, or for none."""
    scheduled = lowered(random_graph(random), random)
    if random.random() < 0.7:
        scheduled = all_cut(scheduled, random)
    return some_moves(with_spans(scheduled, random), random, most)


def spans_in(program):
    loops = (s for nest in program.nests for s in statements(nest.body) if isinstance(s, For))
    return [loop.span for loop in loops if loop.span is not None]


def assert_proved(start, scheduled, made, **asked):
    """``made`` means what ``start`` does. A span may leave rows empty that divide by their sum:
    then nothing is settled, for the reason that ``start`` gives beside itself."""
    proof = prove_tiles(start, made, **asked)
    unsettled = proof.equal is None and proof.reason == prove_tiles(start, start, **asked).reason
    assert proof.equal or unsettled, f"\n{scheduled.schedule}\n{proof}"


@settings(max_examples=settings().max_examples // 12, phases=UNSHRUNK)
@given(RANDOMS)
def test_every_move_keeps_what_a_program_with_spans_means(random):
    start = spanned_start(random)
    for move in MOVES:
        for site, args in applications(move, start, random, most=1):
            after = move.apply(start, site, **args)
            assert_proved(start.draft, after, after.draft, trials=2, seed=random.randint(0, 99))


@settings(max_examples=settings().max_examples // 4, phases=UNSHRUNK)
@given(RANDOMS)
def test_what_is_printed_of_spans_means_what_the_draft_does(random):
    start = with_spans(all_cut(lowered(random_graph(random), random), random), random)
    end = some_moves(start, random, 3)
    if not is_cut(end):
        return
    assert parse_tiles(end.program.show()) == end.program
    seed = random.randint(0, 99)
    assert_proved(start.draft, end, end.program, trials=4, seed=seed, lanes=True)


@settings(max_examples=settings().max_examples * 2 // 5, phases=UNSHRUNK)
@given(RANDOMS)
def test_traffic_of_spans_in_closed_form_is_what_a_run_counts(random):
    end = spanned_start(random)
    for program in (end.draft, end.program) if is_cut(end) else (end.draft,):
        verify_tiles(program)
        (cut,) = cuts([Side(program)], 1, np.random.default_rng(random.randint(0, 99)), SIZES)
        small, sizes, blocks = cut_by(program, cut), cut.setting.sizes, cut.setting.block_sizes
        counted = count_run(small, sizes, blocks)
        assert tile_traffic(small, sizes, blocks) == counted.moved
        assert arithmetic(small, sizes, blocks).matrix == counted.flops["matrix"]


@settings(max_examples=25, phases=UNSHRUNK)
@given(RANDOMS)
def test_numpy_text_runs_over_spans(random):
    program = with_spans(lowered(random_graph(random), random), random).draft
    (cut,) = cuts([Side(program)], 1, np.random.default_rng(random.randint(0, 99)), SIZES)
    sizes, blocks = cut.setting.sizes, cut.setting.block_sizes
    inputs = {
        b.name: np.random.default_rng(3).integers(-3, 4, shape_of(b, sizes)).astype(float)
        for b in program.inputs
    }
    wanted = run_tiles(program, inputs, sizes, blocks)
    made = run_numpy(program, inputs, sizes, blocks, folder=FOLDER)
    for name, array in wanted.items():
        np.testing.assert_allclose(made[name], array, rtol=1e-9, atol=1e-9)


def shape_of(buffer, sizes):
    return [1 if axis.dim is None else sizes[size_class(axis.dim)] for axis in buffer.axes]


def test_moves_meet_spans():
    """Of the seeds, each move that may meet a loop with a span has met one."""
    tried = dict.fromkeys((move.name for move in MOVES), 0)
    for seed in range(30):
        random = Random(seed)
        cut = all_cut(lowered(random_graph(random), random), random)
        for start in (
            with_spans(cut, random),
            with_spans(lowered(random_graph(random), random), random),
        ):
            if spans_in(start.draft):
                for move in MOVES:
                    tried[move.name] += any(applications(move, start, random, most=1))
    asked = ("finish", "split", "chunk", "defer", "warps", "stage")  # others make spans, or refuse
    assert min(tried[name] for name in asked) >= 3, tried


# hand-written -----------------------------------------------------------------------------

BAND = """
tiles {
  inputs X: [M, N]
  outputs Y: [M]
  nest 1 {
    forall M {
      t1: [] = index M at first
      t2: [] = index M at last
      t3: [] = block N of t1
      t4: [] = block N of t2
      t5: [] = t4 + 1
      t6: [M] = init +
      for N from t3 to t5 {
        t7: [M, N] = load X[M, N]
        t8: [M] = row_sum(t7)
        t6 += t8
      }
      store Y[M] = t6
    }
  }
}
"""
BY_DATA = """
tiles {
  inputs X: [M, N], L: [M]
  outputs Y: [M]
  units M
  nest 1 {
    forall M {
      t1: [] = load L[M]
      t2: [] = neg(t1)
      t3: [] = block N of t2
      t4: [] = 0 - t3
      t6: [] = init +
      for N from 0 to t4 {
        t7: [N] = load X[M, N]
        t8: [] = row_sum(t7)
        t6 += t8
      }
      store Y[M] = t6
    }
  }
}
"""


ENDS = np.array([0.0, 1.0, 2.5, 7.0, 8.0, 100.0, 1e30, np.inf, -3.0, -np.inf, np.nan])


def band(x, bm, bn):
    m, n = x.shape
    y = np.zeros(m)
    for i in range(m):
        first = i // bm * bm
        last = min(first + bm, m) - 1
        y[i] = sum(x[i, j] for j in range(n) if first // bn <= j // bn <= last // bn)
    return y


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("bm", "bn"), [(1, 1), (2, 3), (3, 2), (7, 4), (2, 16), (16, 2)])
@pytest.mark.parametrize(("m", "n"), [(7, 11), (11, 5), (1, 3)])
def test_a_band(m, n, bm, bn, padded):
    x = np.random.default_rng(m * n).integers(-9, 9, (m, n)).astype(float)
    program, sizes, blocks = parse_tiles(BAND), {"M": m, "N": n}, {"M": bm, "N": bn}
    verify_tiles(program)
    wanted = band(x, bm, bn)

    for made in (
        run_tiles(program, {"X": x}, sizes, blocks, padded=padded),
        run_numpy(program, {"X": x}, sizes, blocks, padded=padded, folder=FOLDER),
    ):
        np.testing.assert_array_equal(made["Y"], wanted)


@pytest.mark.parametrize("bn", [1, 2, 4, 16])
def test_bounds_from_data(bn):
    """Numbers that are far away, infinite, NaN or no whole numbers are bounds, too."""
    ends = ENDS
    x = np.random.default_rng(bn).integers(-9, 9, (len(ends), 7)).astype(float)
    blocks_below = np.where(np.isnan(ends), 7, np.clip(np.ceil(ends / bn) * bn, 0, 7))
    wanted = [row[: int(stop)].sum() for row, stop in zip(x, blocks_below, strict=True)]
    program, sizes = parse_tiles(BY_DATA), {"M": len(ends), "N": 7}
    inputs = {"X": x, "L": ends}

    for made in (
        run_tiles(program, inputs, sizes, {"N": bn}),
        run_numpy(program, inputs, sizes, {"N": bn}, folder=FOLDER),
    ):
        np.testing.assert_array_equal(made["Y"], wanted)


# in Triton's interpreter ------------------------------------------------------------------

TYPED_DATA = """
tiles {
  dots in f32
  inputs X: f32[M, N], L: f32[M]
  outputs Y: f32[M]
  units M
  nest 1 {
    blocks N 4? warps 4
    forall M {
      t1: f32[] = load L[M]
      t2: f32[] = neg(t1)
      t3: int[] = block N of t2
      t4: int[] = 0 - t3
      t5: f32[] = init +
      for N 4? from 0 to t4 {
        t6: f32[N 4?] = load X[M, N]
        t7: f32[] = row_sum(t6)
        t5 += t7
      }
      store Y[M] = t5
    }
  }
}
"""


@pytest.mark.interpreter
def test_bounds_from_data_in_triton():
    graph = bb.lower(bb.trace(lambda X, L: bb.sum(X, axis=1) + L, X="M N", L="M"))
    sizes = {"M": len(ENDS), "N": 7}
    x = np.random.default_rng(4).integers(-9, 9, (len(ENDS), 7)).astype(np.float32)
    scheduled = unscheduled(parse_tiles(TYPED_DATA), sizes, target_of("sm_90"))
    arrays = {"X": x, "L": ENDS.astype(np.float32)}
    wanted = run_tiles(scheduled.draft, arrays, sizes)

    made = run_interpreted(written(scheduled, graph), arrays)
    np.testing.assert_array_equal(made["Y"], wanted["Y"])


@pytest.mark.interpreter
def test_random_spans_in_triton():
    """As the interpreter of tile programs has them, which knows no printer."""
    found = list(islice(filter(None, map(kernel_with_spans, count())), 5))
    jobs = [(written(scheduled, graph), given) for scheduled, graph, given in found]
    wanted = [run_tiles(scheduled.draft, given, scheduled.sizes) for scheduled, _, given in found]

    for (kernel, _), results, right in zip(jobs, run_batch(jobs), wanted, strict=True):
        for name, array in right.items():
            largest = np.abs(array[np.isfinite(array)]).max(initial=1e-3)
            close = np.isclose(results[name], array, 2e-5, 2e-5 * largest, equal_nan=True)
            assert close.all(), kernel.source


def kernel_with_spans(seed):
    """What a seed gives that can be printed: scheduled, with its graph and inputs; or nothing."""
    random = Random(seed)
    graph = random_graph(random)
    scheduled = with_spans(all_cut(lowered(graph, random), random), random)
    if not BY_NAME["split"].why_not(scheduled, EVERYWHERE):
        scheduled = BY_NAME["split"].apply(scheduled, EVERYWHERE)
    scheduled = BY_NAME["warps"].apply(some_moves(scheduled, random, 1), EVERYWHERE, count=4)
    draft, sizes = scheduled.draft, scheduled.sizes
    per_block = any(axis.per_block for b in draft.outputs for axis in b.axes)
    if not (is_cut(scheduled) and spans_in(draft) and draft.dtype == "float32") or per_block:
        return None
    numbers = np.random.default_rng(seed)
    given = {
        b.name: (numbers.integers(-3, 4, shape_of(b, sizes)) / 4).astype(b.dtype)
        for b in draft.inputs
    }
    return scheduled, graph, given


def test_the_loads_of_a_loop_over_a_span_still_run_ahead():
    """Triton's pipeliner takes loops whose bounds are computed: as much shared memory is asked."""

    def causal(q, k, v):
        i, j = bb.arange(q.shape[0])[:, None], bb.arange(k.shape[0])
        return bb.softmax(bb.where(i >= j, q @ k.T, -np.inf)) @ v

    graph = bb.fuse(bb.lower(bb.trace(causal, q="M D", k="N D", v="N L"))).final
    sizes = {"M": 4096, "N": 4096, "D": 128, "L": 128}
    cut, staged = "block M 64, D 128 whole, N 64, L 128 whole\nwarps 4\n", "stage nest 1 N 3\n"
    asked = [
        compile_kernel(bb.emit(graph, sizes, schedule=text))[0]
        for text in (cut, cut + staged, f"{cut}narrow nest 1 N\n{staged}")
    ]

    assert asked[0].shared < asked[1].shared == asked[2].shared
    assert not any(report.spills for report in asked)
