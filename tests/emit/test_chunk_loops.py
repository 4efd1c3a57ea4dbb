"""Loops in chunks: which, how many, what the rest reads; test_tile_programs has the numbers."""

import re
from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.closing.bind import bind
from blockbuster.emit.closing.hoist import hoist
from blockbuster.emit.schedule.chunkable import not_chunkable
from blockbuster.emit.schedule.split_nests import split_nests
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.target.targets import TARGETS
from blockbuster.emit.tile.listing import listing
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import Fold, For, Init, Load, Store, Tile, statements
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError, LaunchError, VerifyError
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.parse import parse
from blockbuster.rules.safety import safe
from blockbuster.runtime.launch import run_batch, run_interpreted
from blockbuster.selection.decisions.chunk_sizes import ChunkSizes, in_chunks
from blockbuster.selection.decisions.deferral import deferred
from blockbuster.selection.priors import PRIORS
from tests.emit.cases import (
    FOLDER,
    SAFE_ATTENTION,
    bare,
    chunk_loops,
    free_sizes,
    inputs_for,
    scheduled_of,
)
from tests.emit.numpy_runs import run_numpy
from tests.emit.test_defer_lane_sums import EXTREMES, PRODUCTS, ROWS, WHOLE

VECTOR = """
graph(X: N[N]) {
  S = map N (x in !X) { e = x * x  r = row_sum(e)  yield +r }
  Y = map N (x in !X, s = S) { y = x / s over [N]  yield y }
  return S, Y
}
"""
CENTERED = """
graph(X: M,N[M,N]) {
  V = map M (x in !X) {
    s = map N (b in !x) { r = row_sum(b)  yield +r }
    v = map N (b in !x, c = s) {
      d = b - c / |N| over [M,N]
      q = d * d
      r = row_sum(q)
      yield +r
    }
    yield v
  }
  return V
}
"""
SPLIT_K = """
graph(X: M,K[M,K], W: N,K[N,K]) {
  Y = map M (x in !X, w = !W) {
    y = map N (r in !w, x2 = !x) {
      s = map K (a in !x2, b in !r) { d = dot(a, b)  yield +d }
      t = s * s
      yield t
    }
    yield y
  }
  return Y
}
"""


def chunked(text, processors=1 << 20, asked=None, **options):
    program = hoist(split_nests(lower_to_tiles(parse(text))))
    made = chunk_loops(program, processors=processors, asked=asked, **options)
    verify_tiles(made)
    return made


def chunk_sizes(text, **options):
    scheduled = scheduled_of(lower_to_tiles(parse(text)), **options)
    return ChunkSizes(scheduled, scheduled.draft.nests[0])


def loops_of(text):
    program = hoist(lower_to_tiles(parse(text)))
    body = program.nests[0].body
    while isinstance(body[0], For) and body[0].parallel:
        body = body[0].body
    at = next(at for at, stmt in enumerate(body) if isinstance(stmt, For))
    return body[at], body[:at], body[at + 1 :]


# what comes out ------------------------------------------------------------------


def test_rows_are_added_in_chunks():
    made = chunked(ROWS, size=32)

    assert listing(made) == (
        "forall m in range(M):\n"
        " forall n_chunk in range(N_chunk):\n"
        "  for n in chunk n_chunk of range(N):\n"
        "   t2 = load(X[m,n])\n"
        "   t3 = exp(t2)\n"
        "   t1 += row_sum(t3)\n"
        "  store(t1,I1[m,n_chunk])\n"
        "forall m in range(M):\n"
        " t4 = load(I1[m,:])\n"
        " t1 = row_sum(t4)\n"
        " store(t1,O[m])\n"
    )
    assert [nest.grid for nest in bind(made).nests] == [("M", "N_chunk"), ("M",)]


def test_what_follows_is_run_in_chunks_too():
    """Every chunk of the second loop combines what the chunks of the first found."""
    made = chunked(CENTERED, size=64)
    grids = [nest.grid for nest in bind(made).nests]
    loads = [
        [s.view.buffer.name for s in statements(nest.body) if isinstance(s, Load)]
        for nest in made.nests
    ]

    assert grids == [("M", "N_chunk"), ("M", "N_chunk"), ("M",)]
    assert loads == [["X"], ["I1", "X"], ["I2"]]


def test_a_short_loop_around_a_long_one_is_distributed():
    program = hoist(lower_to_tiles(parse(WHOLE)))
    made = chunk_loops(program, sizes={"M": 4, "N": 1000}, processors=132)
    verify_tiles(made)

    assert [nest.grid for nest in bind(made).nests] == [("M", "N_chunk"), ()]
    assert made.chunks[0].count == 128


def test_the_same_dim_counts_chunks_once():
    program = hoist(split_nests(lower_to_tiles(parse(EXTREMES))))
    scheduled = in_chunks(scheduled_of(program, size=64))
    (chunks,) = scheduled.draft.chunks
    (block,) = {b for nest in scheduled.draft.nests for b in nest.blocks if b.dim == chunks.lanes}

    assert chunks.number in scheduled.draft.units
    assert (block.whole, block.ragged) == (True, False)
    assert scheduled.sizes[chunks.number] == block.lanes == chunks.count


def test_names_that_are_taken():
    made = chunked(ROWS.replace("M", "N_chunk"))

    assert {c.dim: c.number for c in made.chunks} == {"N": "N_chunk2"}


# how many ------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("rows", [1, 3, 16, 50])
def test_every_processor_gets_a_program(target, rows):
    loop, *_ = loops_of(ROWS)
    sizes = {"M": 2 * rows, "N": 10**6}
    count = chunk_sizes(ROWS, sizes=sizes, processors=target.processors).chunks(loop, ("M",), 1)

    busy = PRIORS.programs_per_processor * target.processors
    assert busy <= rows * count < 2 * busy


def test_a_dot_keeps_a_processor_busy_alone():
    loop, *_ = loops_of(PRODUCTS)

    assert chunk_sizes(PRODUCTS, size=10**6, processors=132).chunks(loop, (), 1) == 256


def test_chunks_keep_iterations_and_busy_devices_are_left_alone():
    loop, *_ = loops_of(ROWS)

    def count(rows, columns):
        sizes = {"M": 2 * rows, "N": 2 * columns}
        return chunk_sizes(ROWS, sizes=sizes, processors=132).chunks(loop, ("M",), 1)

    assert count(265, 1000) == count(1000, 1000) == 0
    assert count(264, 1000) == 2
    assert count(66, 1000) == 8
    for columns in range(200):
        assert columns // max(count(1, columns), 1) >= min(PRIORS.chunk_iterations, columns)
    assert count(1, PRIORS.chunk_saved_iterations) == 0
    assert count(1, PRIORS.chunk_saved_iterations + 3) == 4
    assert count(1, 0) == 0


def test_busy_programs_stay_as_they_are():
    program = hoist(split_nests(lower_to_tiles(parse(ROWS))))

    assert chunk_loops(program, size=10_000, processors=132) == program


# what is refused -----------------------------------------------------------------


def test_reasons_to_stay_whole():
    loop, before, behind = loops_of(ROWS)
    (fold,) = (s for s in loop.body if isinstance(s, Fold))
    (store,) = (s for s in behind if isinstance(s, Store))
    inside = replace(loop, body=(*loop.body, store))
    running = replace(store, view=replace(store.view, dims=("N",)), value=fold.target)
    lanes = replace(fold.target, axes=("M", "N"), per_lane=("N",))
    by_lane = replace(loop, body=(*loop.body[:-1], replace(fold, target=lanes)))
    outside = replace(fold, target=Tile("t99", ("M",)))

    assert not_chunkable(loop, before, behind) == ""
    assert not_chunkable(loop, (), behind).endswith("does not start beside the loop")
    assert not_chunkable(inside, before, ()).endswith("store out at one place")
    assert not_chunkable(replace(loop, body=(*loop.body, running)), before, behind).endswith(
        "is read in the loop, before it is complete"
    )
    assert not_chunkable(loop, before, (fold,)).endswith("is folded at two places")
    assert not_chunkable(by_lane, (Init(lanes, "+"),), ()).endswith("has an entry per lane")
    assert not_chunkable(loop, (*before, outside), ()).endswith("is folded before the loop")


def test_what_rescales_in_another_way_is_not_known_to_combine():
    text = SAFE_ATTENTION.replace("x * exp(sub0(r, r2))", "x * (r - r2)")

    with pytest.raises(EmitError, match=r"no loop over N .* is not known to combine"):
        chunked(text, asked={"N": 4})


@pytest.mark.parametrize(
    ("chunks", "why"),
    [
        ({"N": 3}, "N in 3 chunks, expected a power of two of at least 2"),
        ({"Q": 4}, "unknown dim 'Q' in chunks"),
    ],
)
def test_chunks_that_cannot_be(chunks, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        emit(parse(ROWS), {"M": 4, "N": 4000}, chunks=chunks)
    with pytest.raises(EmitError, match="no loop over M can be run in chunks: no nest has"):
        emit(parse(ROWS), {"M": 4, "N": 4000}, chunks={"M": 2})


def test_a_chunk_needs_a_loop_over_chunks():
    made = chunked(ROWS)
    (inner,) = (s for s in statements(made.nests[0].body) if isinstance(s, For) and s.chunk)
    (outer,) = (s for s in statements(made.nests[0].body) if isinstance(s, For) and inner in s.body)
    nest = replace(made.nests[0], body=(replace(made.nests[0].body[0], body=outer.body),))

    with pytest.raises(VerifyError, match="chunk of N outside a loop over N_chunk"):
        verify_tiles(replace(made, nests=(nest, *made.nests[1:])))


def test_chunks_of_one_place_are_no_chunks():
    """A store that all chunks make would be a race."""
    made = chunked(ROWS)
    program = bind(made)
    store = program.nests[0].body[-1]
    alone = replace(store, view=replace(store.view, dims=("M", None)))
    nest = replace(program.nests[0], body=(*program.nests[0].body[:-1], alone))

    with pytest.raises(VerifyError, match="iterations over N_chunk store I1 at one place"):
        verify_tiles(replace(program, nests=(nest, *program.nests[1:])))


# numbers -------------------------------------------------------------------------


def test_two_levels_of_sums_round_less():
    x = np.random.default_rng(1).uniform(size=(512, 64)).astype(np.float32)
    exact = np.exp(x.astype(np.float64)).sum()
    errors = []
    for cut in (False, True):
        program = hoist(split_nests(lower_to_tiles(parse(WHOLE))))
        scheduled = scheduled_of(program, size=512, block=1, processors=132)
        run = bind(bare(deferred(in_chunks(scheduled) if cut else scheduled)))
        (found,) = run_numpy(
            run, {"X": x}, None, {"M": 1, "N": 1}, dtype=np.float32, padded=True, folder=FOLDER
        ).values()
        errors.append(abs(found - exact))

    assert errors[1] < errors[0] / 2


CASES = [
    (ROWS, {"M": 5, "N": 90}, {"M": 4, "N": 16}, {"N": 4}),
    (WHOLE, {"M": 37, "N": 20}, {"M": 2, "N": 16}, {"M": 8}),
    (WHOLE, {"M": 5, "N": 90}, {"M": 2, "N": 16}, {"N": 4}),
    (CENTERED, {"M": 3, "N": 100}, {"M": 2, "N": 16}, {"N": 4}),
    (EXTREMES, {"M": 3, "N": 100}, {"M": 2, "N": 16}, {"N": 4}),
    (VECTOR, {"N": 1000}, {"N": 32}, {"N": 8}),
    (SPLIT_K, {"M": 20, "N": 18, "K": 100}, {"M": 16, "N": 16, "K": 16}, {"K": 4}),
    (PRODUCTS, {"M": 20, "N": 70, "K": 20}, {"M": 16, "N": 16, "K": 16}, {"N": 2}),
    (SAFE_ATTENTION, {"M": 9, "N": 90, "D": 20, "L": 17}, {"M": 16, "N": 16}, {"N": 4}),
]


def close(graph, sizes, arrays, results):
    assert not isinstance(results, LaunchError), results
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    expected = evaluate(graph, wide, sizes=sizes)
    for name, right in expected.items():
        largest = np.abs(right, where=np.isfinite(right), out=np.ones(right.shape)).max(initial=1)
        np.testing.assert_allclose(results[name], right, rtol=0, atol=5e-6 * largest)


@pytest.mark.interpreter
def test_in_the_interpreter_at_any_sizes():
    """Ragged, one element, empty, and strided; workspaces start full of NaN."""
    jobs, known = [], []
    for text, sizes, tiles, chunks in CASES:
        graph = parse(text)
        kernel = emit(graph, sizes, "float32", tiles=tiles, chunks=chunks)
        assert dict(kernel.chunks) == chunks
        (cut,) = chunks
        for size in (2 * sizes[cut] + 3, 1, 0):
            now = {**sizes, cut: size}
            arrays = {n: a.astype(np.float32) for n, a in inputs_for(graph, now).items()}
            if size > 1:
                arrays = {n: np.repeat(a, 2, axis=-1)[..., ::2] for n, a in arrays.items()}
            jobs.append((kernel, arrays | free_sizes(safe(graph), now)))
            known.append((graph, now, arrays))

    for (graph, sizes, arrays), results in zip(known, run_batch(jobs), strict=True):
        close(graph, sizes, arrays, results)


@pytest.mark.interpreter
def test_every_run_gives_the_same_bits():
    graph, sizes = parse(SAFE_ATTENTION), {"M": 9, "N": 90, "D": 20, "L": 17}
    kernel = emit(graph, sizes, "float32", tiles={"M": 16, "N": 16}, chunks={"N": 4})
    arrays = {n: a.astype(np.float32) for n, a in inputs_for(graph, sizes).items()}
    first, second = run_interpreted(kernel, arrays), run_interpreted(kernel, arrays)

    assert "atomic" not in kernel.source
    assert [a.tobytes() for a in first.values()] == [a.tobytes() for a in second.values()]


@pytest.mark.parametrize("target", TARGETS)
def test_compiles_for(target, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    sizes, chunks = {"M": 8192, "N": 8192}, {"M": 1024}
    kernel = emit(parse(WHOLE), sizes, "float32", target, chunks=chunks)
    reports = compile_kernel(kernel)

    assert dict(kernel.chunks) == chunks
    assert [report.spills for report in reports] == [0, 0]


# reports -------------------------------------------------------------------------


def test_files_and_reports_say_so():
    sizes = {"M": 65536, "N": 64}
    compiled, rows = (
        bb.compile(bb.trace(fn, x="M N"), sizes, machine="h100", dtype="float32")
        for fn in (lambda x: bb.sum(x, axis=0), lambda x: bb.sum(x, axis=-1))
    )

    details = compiled.report.details
    (count,) = re.findall(r"\n    a loop over M is run in (\d+) chunks, side", details)
    assert int(count) >= TARGETS["sm_90"].processors
    assert f"Loops run in chunks, side by side: over M in {count}." in compiled.plan.source
    assert re.search(r"tl\.store\(I1_ptr.*# chunk-loops", compiled.plan.source)
    assert (compiled.plan.kernels, rows.plan.kernels) == (2, 1)
    assert "chunks" not in str(rows.report)


@pytest.mark.parametrize("chunks", [{}, {"N": 8}])
@pytest.mark.parametrize("size", [2, 70])
def test_extremes_under_a_running_exponent_start_from_nothing(size, chunks):
    """-inf times exp(-inf - m) would be NaN: in the first iteration, and for an empty chunk."""

    def extremes(x, w):
        e = bb.exp(x)
        total = bb.sum(e, axis=1)
        return bb.max(w * e, axis=1) / total, bb.min(w * e, axis=1) / total

    random = np.random.default_rng(0)
    arrays = {name: random.standard_normal((3, size)).astype(np.float32) for name in "xw"}
    arrays["x"][0, : size // 2] = -np.inf
    graph = bb.fuse(bb.lower(bb.trace(extremes, x="M N", w="M N"))).final
    sizes, tiles = {"M": 3, "N": 331}, {"M": 16, "N": 16}
    kernel = emit(graph, sizes, "float32", tiles=tiles, chunks=chunks)

    assert dict(kernel.chunks) == chunks
    found = run_interpreted(kernel, arrays)
    right = extremes(**{name: array.astype(np.float64) for name, array in arrays.items()})
    for ours, exact in zip(found.values(), right, strict=True):
        np.testing.assert_allclose(ours, exact, rtol=1e-5, atol=1e-6)
