"""What is deferred and what is not, and that lanes past the end add nothing.

That the numbers stay is tested with every pass, in test_tile_programs and test_random_programs.
"""

import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from blockbuster.emission import emit
from blockbuster.emit.closing.bind import bind
from blockbuster.emit.closing.guard import guard
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import defer_lane_sums as defer
from blockbuster.emit.schedule.defer_lane_sums import not_deferrable, place_of
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops
from blockbuster.emit.tile.listing import listing
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import Fold, For, Guard, Init, Let, Nest, Store, Tile, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import LaunchError, VerifyError
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.parse import parse
from blockbuster.runtime.launch import run_batch
from blockbuster.selection.decisions.default_tiles import choose_warps
from blockbuster.selection.decisions.deferral import deferred as deferred_where_it_pays
from blockbuster.selection.decisions.deferral import does_not_pay
from blockbuster.selection.priors import PRIORS
from tests.emit.cases import FOLDER, defer_lane_sums, graph_of, scheduled_of
from tests.emit.numpy_runs import run_numpy

ROWS = """
graph(X: M,N[M,N]) {
  S = map M (x in !X) {
    s = map N (b in !x) { e = exp(b)  r = row_sum(e)  yield +r }
    yield s
  }
  return S
}
"""
WHOLE = """
graph(X: M,N[M,N]) {
  S = map M (x in !X) {
    s = map N (b in !x) { e = exp(b)  r = row_sum(e)  yield +r }
    t = row_sum(s)
    yield +t
  }
  return S
}
"""
EXTREMES = """
graph(X: M,N[M,N]) {
  A, B = map M (x in !X) {
    a, b = map N (c in !x) { p = row_max(c)  q = row_min(c)  yield max p  yield min q }
    yield a
    yield b
  }
  return A, B
}
"""
PRODUCTS = """
graph(X: M,K[M,K], W: N,K[N,K]) {
  S = map M (x in !X, w = !W) {
    s = map N (r in !w, x2 = !x) {
      y = map K (a in !x2, b in !r) { d = dot(a, b)  yield +d }
      t = row_sum(y)
      yield +t
    }
    yield s
  }
  return S
}
"""


def lowered(text):
    return lower_to_tiles(parse(text))


def deferred(text, **options):
    program = lowered(text)
    return defer_lane_sums(program, **options)


def loop_of(program):
    """The innermost serial loop, and what stands before it."""
    body, before = program.nests[0].body, []
    while loops := [s for s in body if isinstance(s, For)]:
        before, loop = list(body[: body.index(loops[-1])]), loops[-1]
        body = loop.body
    return loop, before


def reason(program, **changed):
    loop, before = loop_of(program)
    (fold,) = (s for s in loop.body if isinstance(s, Fold))
    given = {"fold": fold, "loop": loop, "before": before, "nest": program.nests[0]} | changed
    return not_deferrable(**given)


def test_rows_are_added_lane_by_lane():
    assert listing(deferred(ROWS)) == (
        "forall m in range(M):\n"
        " for n in range(N):\n"
        "  t2 = load(X[m,n])\n"
        "  t1 += exp(t2)\n"
        " t3 = row_sum(t1)\n"
        " store(t3,O[m])\n"
    )


def test_a_whole_matrix_is_reduced_once():
    assert listing(deferred(WHOLE)) == (
        "for m in range(M):\n"
        " for n in range(N):\n"
        "  t3 = load(X[m,n])\n"
        "  t2 += exp(t3)\n"
        " t1 += t2\n"
        "t4 = row_sum(t1)\n"
        "t5 = row_sum(t4)\n"
        "store(t5,O[])\n"
    )


@pytest.mark.parametrize("text", [ROWS, WHOLE, EXTREMES])
@pytest.mark.parametrize("sizes", [(5, 7), (8, 4), (1, 1), (3, 9)])
def test_lanes_past_the_end_add_nothing(text, sizes):
    graph = parse(text)
    inputs = {"X": np.random.default_rng(0).normal(size=sizes) - 3}
    blocks = {"M": 2, "N": 4}
    wanted = evaluate(graph, inputs, block_sizes=blocks)
    program = guard(deferred(text), ("M", "N"))
    verify_tiles(program)
    for padded in (False, True):
        found = run_numpy(program, inputs, None, blocks, padded=padded, folder=FOLDER)
        for name, array in wanted.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-12)


@pytest.mark.parametrize(("text", "lost"), [(ROWS, "N"), (WHOLE, "N"), (WHOLE, "M")])
def test_without_its_guard_padding_would_show(text, lost):
    inputs, blocks = {"X": np.zeros((5, 7))}, {"M": 2, "N": 4}
    program = guard(deferred(text), tuple(d for d in "MN" if d != lost))
    (wrong,) = run_numpy(program, inputs, None, blocks, padded=True, folder=FOLDER).values()
    (right,) = evaluate(parse(text), inputs, block_sizes=blocks).values()

    assert not np.allclose(wrong, right)


def test_a_dim_without_a_loop_is_guarded_once_behind():
    program = drop_unit_loops(lowered(WHOLE), ("N",))
    made = guard(defer_lane_sums(program), ("M", "N"))
    loop, _ = loop_of(made)
    inside = [s.dim for s in loop.body if isinstance(s, Guard)]
    behind = [s.dim for s in made.nests[0].body if isinstance(s, Guard)]

    assert (inside, behind) == (["M"], ["N"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ROWS.replace("r = row_sum(e)", "r = row_max(e)"), "is no row_sum made in the loop"),
        (
            ROWS.replace("yield +r", "yield +r  yield r")
            .replace("    s =", "    s, q =")
            .replace("    yield s", "    yield s  yield q")
            .replace("  S =", "  S, Q =")
            .replace("return S", "return S, Q"),
            "is read elsewhere, too",
        ),
    ],
)
def test_reasons_to_stay(text, why):
    program = lowered(text)

    assert reason(program).endswith(why)
    assert defer_lane_sums(program) == program


def test_a_running_exponent_stays():
    program = lower_to_tiles(graph_of("attention safe"))
    loops = [s for s in statements(program.nests[0].body) if isinstance(s, For)]
    (loop,) = (loop for loop in loops if any(isinstance(s, Fold) and s.members for s in loop.body))
    (fold,) = (s for s in loop.body if isinstance(s, Fold))

    assert "running exponent" in not_deferrable(fold, loop, (), program.nests[0])


def test_accumulators_that_are_not_the_loops_own_stay():
    program = lowered(ROWS)
    loop, before = loop_of(program)
    (fold,) = (s for s in loop.body if isinstance(s, Fold))
    (store,) = (s for s in statements(program.nests[0].body) if isinstance(s, Store))
    read = replace(loop, body=(*loop.body, replace(store, value=fold.target)))
    twice = Nest((*program.nests[0].body, replace(fold, value=before[0].target)))

    assert reason(program) == ""
    assert reason(program, loop=read).endswith("is read in the loop")
    assert reason(program, nest=twice).endswith("is folded at two places")
    assert reason(program, before=[]).endswith("does not start beside the loop")
    assert reason(program, before=[Init(fold.target, "max")]).endswith("beside the loop")


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        (ROWS, {"size": 2}, "the loop over N has one iteration"),
        (ROWS, {"block": 1}, "has one lane along its last axis"),
        (ROWS, {"block": 128}, f"lanes, more than {PRIORS.deferred_lanes}"),
        (PRODUCTS, {"block": 64}, "the loop holds a dot"),
    ],
)
def test_reasons_that_it_does_not_pay(text, options, why):
    program = lowered(text)
    scheduled = scheduled_of(program, **{"size": 1000} | options)
    tiling = tiling_of(program, scheduled.draft.nests[0])
    loops = [s for s in statements(program.nests[0].body) if isinstance(s, For)]
    loop = next(s for s in loops if not s.parallel)
    (fold,) = (s for s in loop.body if isinstance(s, Fold))

    assert why in does_not_pay(fold, loop, tiling, scheduled.sizes)
    assert defer_lane_sums(program, **{"size": 1000} | options) == program


def test_beside_a_dot_few_lanes_are_folded():
    program = lowered(PRODUCTS)
    made = defer_lane_sums(program, size=1000, block=16)

    assert PRIORS.deferred_lanes_beside_dots >= 16 * 16
    assert made != program
    assert prove_tiles(program, made, trials=3).equal


def test_accumulators_share_the_registers():
    program = lowered(EXTREMES)
    wide = []
    for lanes in (PRIORS.deferred_lanes // 16, 3 * PRIORS.deferred_lanes // 16):
        made = defer_lane_sums(program, size=10_000, blocks={"M": 4, "N": lanes})
        inits = (s for s in statements(made.nests[0].body) if isinstance(s, Init))
        wide.append([init.target.per_lane for init in inits])

    assert wide == [[("N",), ("N",)], [("N",), ()]]


def test_lanes_are_no_elements():
    program = deferred(ROWS)
    (body,) = (nest.body for nest in program.nests)
    loop = body[0]
    (init,) = (s for s in loop.body if isinstance(s, Init))
    product = Pointwise(call("mul", Arg(0), Arg(1)), ("M", "N"))
    squared = Let(Tile("t99", ("M", "N")), product, (init.target, init.target))
    broken = replace(loop, body=(*loop.body, squared))

    with pytest.raises(VerifyError, match="has an entry per lane of N, and is read"):
        verify_tiles(replace(program, nests=(Nest((broken,)),)))


def test_many_short_chains_round_less():
    x = np.random.default_rng(1).uniform(size=(512, 64)).astype(np.float32)
    blocks, exact = {"M": 1, "N": 1}, np.exp(x.astype(np.float64)).sum()
    chained = bind(lowered(WHOLE))
    by_lane = defer_lane_sums(chained)
    errors = []
    for program, cut in ((chained, blocks), (by_lane, {"M": 8, "N": 16})):
        (found,) = run_numpy(
            program, {"X": x}, None, cut, dtype=np.float32, padded=True, folder=FOLDER
        ).values()
        errors.append(abs(found - exact))

    assert errors[1] < errors[0] / 2


def test_the_number_of_warps_stays():
    before = lowered(ROWS)
    scheduled = scheduled_of(before, size=10_000, blocks={"M": 4, "N": PRIORS.deferred_lanes // 4})
    made = deferred_where_it_pays(scheduled)
    nests = (scheduled.draft.nests[0], made.draft.nests[0])

    assert made != scheduled
    assert [choose_warps(nest, tiling_of(made.draft, nest)) for nest in nests] == [4, 4]


def test_a_product_is_rounded_before_lanes_add_it():
    """A loop of one iteration leaves the product itself to the reduction."""
    text = ROWS.replace("e = exp(b)", "e = b * b")
    source = emit(parse(text), {"M": 8, "N": 70}, "float32", tiles={"M": 4, "N": 16}).source

    assert "tl.full((BLOCK_M, BLOCK_N), 0.0" in source
    assert re.search(r"tl\.fma\((\w+), \1, 0\.0\)", source)


RUNS = [(text, s) for text in (ROWS, WHOLE, EXTREMES) for s in ((5, 37), (16, 64), (9, 70))]


def job(text, sizes):
    kernel = emit(
        parse(text), dict(zip("MN", sizes, strict=True)), "float32", tiles={"M": 4, "N": 16}
    )
    return kernel, {"X": np.random.default_rng(2).normal(size=sizes).astype(np.float32)}


@pytest.fixture(scope="module")
def results():
    """What all kernels give, from one process: each would import Triton anew."""
    found = run_batch([job(text, sizes) for text, sizes in RUNS])
    assert [result for result in found if isinstance(result, LaunchError)] == []
    return found


@pytest.mark.interpreter
@pytest.mark.parametrize("at", range(len(RUNS)))
def test_in_the_interpreter(at, results):
    text, sizes = RUNS[at]
    kernel, inputs = job(text, sizes)
    wanted = evaluate(parse(text), {"X": inputs["X"].astype(np.float64)})

    assert " = tl.full((BLOCK_M, BLOCK_N)" in kernel.source
    for name, array in results[at].items():
        np.testing.assert_allclose(array, wanted[name], rtol=1e-6)


def test_reads_of_a_body_are_counted_once_for_all_its_folds():
    (nest,) = lower_to_tiles(parse(EXTREMES)).nests
    folds = [stmt for stmt in statements(nest.body) if isinstance(stmt, Fold)]
    with mock.patch.object(defer, "reads", wraps=defer.reads) as asked:
        reasons = [not_deferrable(fold, *place_of(fold, nest.body), nest) for fold in folds]

    assert reasons == ["", ""]
    assert asked.call_count == 2  # of the nest, and of the loop
