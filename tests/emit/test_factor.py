"""The move factor: what it makes, that results stay, also at infinities and NaN, and why not."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import factor
from blockbuster.emit.schedule.factor import Factor
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.site import EVERYWHERE, Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.ir.fitting import fitted
from blockbuster.runtime.launch import run_interpreted
from tests.emit.cases import FOLDER
from tests.emit.numpy_runs import run_numpy
from tests.emit.parse_tiles import parse_tiles
from tests.parameters import one_in

INF = float("inf")
HEADS = dict(q="M D", k="N D", v="N L")
SIZES = dict(M=6, N=7, D=3, L=2)
BLOCKS = dict(M=2, N=3, D=3, L=2)


def scores(q, k):
    return (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5


def distance(q, k):
    return bb.arange(q.shape[-2])[:, None] - bb.arange(k.shape[-2])


def plain(q, k, v):
    return bb.softmax(scores(q, k), axis=-1) @ v


def causal(q, k, v):
    return bb.softmax(bb.where(distance(q, k) >= 0, scores(q, k), -INF), axis=-1) @ v


def divided(q, k, v):
    return bb.softmax(bb.where(distance(q, k) < 3, -INF, 2 * (q @ k.T) / 3.0), axis=-1) @ v


def sloped(q, k, v):
    return bb.softmax(scores(q, k) - 0.5 * distance(q, k), axis=-1) @ v


def capped(q, k, v):
    return bb.softmax(20.0 * bb.tanh(scores(q, k) / 20.0), axis=-1) @ v


def totals(q, k, v):
    s = scores(q, k)
    most = bb.max(s, axis=-1)
    return bb.log(bb.sum(bb.exp(s - most[:, None]), axis=-1)) + most


def rows(x):
    return bb.softmax(x, axis=-1)


def features(q, k, v):
    s = scores(q, k)
    return (bb.exp(s - bb.max(s, axis=-1)[:, None]) + 1e-4) @ v


PROGRAMS = {
    fn.__name__: fn for fn in (plain, causal, divided, sloped, capped, totals, rows, features)
}


def graph_of(fn):
    inputs = dict(x="M N") if fn.__code__.co_argcount == 1 else HEADS
    return bb.safe(bb.fuse(bb.lower(bb.trace(fn, **inputs))).final)


def start_of(fn, dtype="float32"):
    if isinstance(fn, str):
        return unscheduled(parse_tiles(fn), SIZES, target_of("sm_90"))
    graph = graph_of(fn)
    tiles = typed_for_gpu(graph, lower_to_tiles(graph), given_by(dtype))
    return unscheduled(tiles, fitted(SIZES, tiles.rules), target_of("sm_90"))


def factored(fn):
    start = start_of(fn)
    return start, Factor().apply(start, EVERYWHERE)


def runs(before, after, seed):
    """What two programs give for the same inputs, some of which are extreme."""
    random = np.random.default_rng(seed)
    extremes = ([0.0], [-INF, 0.0], [INF], [np.nan], [-INF, INF, np.nan], [1e4, -1e4])[seed % 6]
    inputs = drawn(before, random, extremes)
    with np.errstate(all="ignore"):
        return [run_numpy(p, inputs, SIZES, BLOCKS, folder=FOLDER) for p in (before, after)]


def drawn(program, random, extremes):
    """Inputs, some elements of which are ``extremes``."""
    made = {}
    for buffer in program.inputs:
        array = random.normal(size=[SIZES[axis.dim] for axis in buffer.axes])
        places = random.random(array.shape) < 0.15
        made[buffer.name] = np.where(places, random.choice(extremes, array.shape), array)
    return made


def test_an_element_takes_a_product_a_difference_and_a_power_of_two():
    _, made = factored(causal)

    text = str(made.draft)
    assert "exp(" not in text
    assert "where(" in text
    assert text.count("2 ** (") == 2  # of elements, and of the row's old sums
    assert parse_tiles(text) == made.draft
    verify_tiles(made.draft)


def test_a_value_of_the_row_may_be_added():
    before, made = factored(features)

    assert " + r_" in str(before.draft)
    assert "exp(" not in str(made.draft)
    assert re.search(r"2 \*\* \(.* \+ bits_", str(made.draft))


@pytest.mark.parametrize("fn", PROGRAMS.values(), ids=PROGRAMS)
def test_results_stay_also_at_infinities_and_nan(fn):
    start, made = factored(fn)
    for seed in range(12):
        wanted, found = runs(start.draft, made.draft, seed)
        for name, array in wanted.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-9, atol=1e-12, err_msg=str(seed))


@pytest.mark.parametrize("fn", one_in(3, PROGRAMS.values()), ids=PROGRAMS)
def test_it_is_proved(fn):
    start, made = factored(fn)

    proof = prove_tiles(start.draft, made.draft, trials=2)

    assert proof.equal, proof
    assert proof.tier in ("A", "B")


def test_kernels_give_the_same_at_infinities_and_nan():
    graph = graph_of(causal)
    sizes = dict(M=40, N=40, D=16, L=16)
    plain_text = "block M 16, D 16 whole, N 16, L 16 whole\nwarps 4\n"
    kernels = [
        emit(graph, sizes, "float16", schedule=text)
        for text in (plain_text, plain_text.replace("warps", "factor\nwarps"))
    ]
    assert ["_sub0(" in kernel.source for kernel in kernels] == [True, False]
    random = np.random.default_rng(0)
    arrays = {
        name: random.normal(size=[sizes[d] for d in dims.split()]).astype("float16")
        for name, dims in HEADS.items()
    }
    arrays["q"][3], arrays["q"][7, 2], arrays["q"][11, 5] = 60000.0, INF, np.nan
    arrays["k"][20, 1] = -INF

    with np.errstate(all="ignore"):
        wanted, found = (run_interpreted(kernel, arrays)["out"] for kernel in kernels)

    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)


def test_a_value_that_others_read_stays():
    def stored(q, k, v):
        s = scores(q, k)
        return bb.softmax(s, axis=-1) @ v, s

    start, made = factored(stored)

    assert "log2" not in str(made.draft)
    assert prove_tiles(start.draft, made.draft, trials=2).equal


@pytest.mark.parametrize(
    "fn",
    [lambda x: bb.exp(x), lambda x: bb.exp(x - 1.0), lambda x: bb.sum(bb.exp(x), axis=-1)],
)
def test_without_a_difference_by_row_there_is_nothing_to_do(fn):
    start = start_of(fn)

    assert list(Factor().sites(start)) == []
    reason = "no exponential takes the difference of a tile and a value of its row"
    assert Factor().why_not(start, EVERYWHERE) == reason
    assert Factor().why_not(start, Site(7)).startswith("there is no nest 7")


@pytest.mark.parametrize(("function", "sizes"), [("causal", None), ("rows", dict(M=6, N=7))])
def test_the_default_uses_it_where_results_have_16_bits(function, sizes):
    graph = graph_of({"causal": causal, "rows": rows}[function])
    narrow, wide = (emit(graph, sizes or SIZES, d).schedule for d in ("float16", "float32"))

    assert "factor" in narrow
    assert "factor" not in wide


# z changes between two powers: in a loop, and before and after a statement
CHANGING = """
tiles {
  dots in f32
  inputs x: f32[M, N]
  outputs y: f32[M, N], z: f32[M, N]
  nest 1 {
    forall M {
      t1: f32[M] = init max
      for N {
        t2: f32[M, N] = load x[M, N]
        t3: f32[M, N] = sub0(t2, t1)
        t4: f32[M, N] = exp(t3)
        store y[M, N] = t4
        t5: f32[M] = row_max(t2)
        t1 max= t5
        t6: f32[M, N] = sub0(t2, t1)
        t7: f32[M, N] = exp(t6)
        store z[M, N] = t7
      }
    }
  }
}
"""


UNSAFE = CHANGING.replace("sub0(t2, t1)", "t2 - t1")


# two values of a row in one exponent; t9 is read twice where a text says so
ROWS = """
tiles {
  dots in f32
  inputs x: f32[M, N], r: f32[M], s: f32[M]
  outputs y: f32[M, N], z: f32[M, N]
  nest 1 {
    forall M {
      t1: f32[M] = load r[M]
      t2: f32[M] = load s[M]
      forall N {
        t3: f32[M, N] = load x[M, N]
        t4: f32[M, N] = t3 + t1
        t5: f32[M, N] = t4 - t2
        t6: f32[M, N] = exp(t5)
        store y[M, N] = t6
        store z[M, N] = t3
      }
    }
  }
}
"""
ADDED = ROWS.replace("t4 - t2", "t4 + t2")
TWICE = ROWS.replace("store z[M, N] = t3", "store z[M, N] = t4")
COLUMNS = (
    ROWS.replace("r: f32[M]", "r: f32[N]")
    .replace("      t1: f32[M] = load r[M]\n", "")
    .replace("      t4:", "      t1: f32[N] = load r[N]\n        t4:")
)


def gathered(text):
    start = start_of(text)
    return start, Factor().apply(start, EVERYWHERE)


@pytest.mark.parametrize(("text", "sign"), [(ROWS, "-"), (ADDED, "+")])
def test_two_values_of_a_row_are_added_first(text, sign):
    start, made = gathered(text)

    assert re.search(rf"= \(t2 {re.escape(sign)} t1\) \* 1.44", str(made.draft)), made.draft
    assert "t4" not in str(made.draft)
    assert prove_tiles(start.draft, made.draft, trials=3).equal


@pytest.mark.parametrize("text", [TWICE, COLUMNS])
def test_a_sum_that_others_read_and_one_of_row_and_column_stay(text):
    start, made = gathered(text)

    assert "t4: f32[M, N] = t3 + t1" in str(made.draft)
    assert prove_tiles(start.draft, made.draft, trials=3).equal


MUTANTS = [
    ("finite(Arg(0))", "Arg(0)"),
    ('Pointwise(call("mul", total, LOG2_E)', 'Pointwise(call("mul", total, 1.0)'),
    ('call("add" if power.added else "sub", Arg(0), Arg(1))', 'call("add", Arg(0), Arg(1))'),
    ("x.scaling(Const(LOG2_E))", "Const(LOG2_E)"),
    ("Pointwise(found.scaling(Arg(0)), stmt.target.axes)", "Pointwise(Arg(0), stmt.target.axes)"),
    ("if not {by[0], by[2]} & {*changed}", "if True"),
    ('fn == "sub0")', "True)"),
]


def is_same(start, move):
    made = move.apply(start, EVERYWHERE)
    for seed in range(6):
        wanted, found = runs(start.draft, made.draft, seed)
        for name, array in wanted.items():
            if not np.allclose(found[name], array, rtol=1e-9, atol=1e-12, equal_nan=True):
                return False
    return True


@pytest.mark.parametrize(("old", "new"), MUTANTS)
def test_every_part_of_it_matters(old, new, monkeypatch):
    path = Path(factor.__file__)
    text = path.read_text(encoding="utf-8")
    assert old in text
    mutant = types.ModuleType(factor.__name__)
    monkeypatch.setitem(sys.modules, factor.__name__, mutant)
    exec(compile(text.replace(old, new), str(path), "exec"), vars(mutant))
    cases = [start_of(fn) for fn in (*PROGRAMS.values(), CHANGING, UNSAFE, ROWS)]

    assert all(is_same(start, Factor()) for start in cases)
    assert not all(is_same(start, mutant.Factor()) for start in cases)
