"""One rule for dtypes: jit, emit, plans and the documentation agree, and the values are right."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.value_dtypes import casts, output_dtypes
from blockbuster.frontend.numerics import cast
from blockbuster.ir.ops import Misc
from blockbuster.ir.types import size_class
from blockbuster.runtime.run_plan import rounded, run_in_interpreter
from tests.compile.dtype_programs import (
    COLUMNS,
    DTYPES,
    ENDS,
    ONE,
    ROWS,
    SEEN,
    TWO,
    random_function,
    right,
)

UNITS = {"": 2e-6, "bool": 0, "float64": 2e-6, "float32": 2e-6, "float16": 4e-3, "bfloat16": 3e-2}
INPUTS = {"x": "M N", "y": "M N"}


def held(dtype):
    """What NumPy holds arrays of a dtype in."""
    return "float32" if dtype == "bfloat16" else dtype


def drawn(seed):
    """A program, its inputs, and the dtype in which they meet."""
    random = Random(seed)
    function = random_function(random)
    kinds = [random.choice(DTYPES[:2]) for _ in INPUTS]
    if random.random() < 0.15:
        kinds[0] = "float64"
    rng = np.random.default_rng(seed)
    arrays = {
        name: (3 * rng.standard_normal((ROWS, COLUMNS))).astype(kind)
        for name, kind in zip(INPUTS, kinds, strict=True)
    }
    return function, arrays, str(np.result_type(*kinds))


def check_values(results, wanted):
    for result, exact, dtype in zip(results, wanted.arrays, wanted.dtypes, strict=True):
        unit = max(UNITS[wanted.narrow], UNITS[dtype])
        if dtype == "bool":
            assert result.shape == exact.shape
            assert wanted.narrow or (result == exact).mean() > 0.9
            continue
        largest = max(np.abs(exact).max(initial=0), 1)
        np.testing.assert_allclose(
            result.astype(float), exact.astype(float), rtol=0, atol=unit * largest
        )


@given(st.integers(0, 2**32))
def test_jit_emit_and_the_declared_rule_agree(seed):
    function, arrays, common = drawn(seed)
    program = bb.trace(function, **INPUTS)
    wanted = right(program, arrays)
    SEEN.clear()

    jitted = bb.jit(function)
    results = jitted(**arrays)

    assert [str(r.dtype) for r in results] == [held(d) for d in wanted.dtypes]
    assert list(jitted.plan_for(**arrays).result_dtypes) == wanted.dtypes
    assert set(SEEN) <= {held(dtype).replace("bool", common) for dtype in wanted.opaque}
    check_values(results, wanted)
    graph = bb.lower(program)
    derivation = bb.fuse(graph)
    for snapshot in (graph, derivation.final, *derivation.snapshots):
        given_dtypes = {name: str(array.dtype) for name, array in arrays.items()}
        assert list(output_dtypes(snapshot, common, given_dtypes).values()) == wanted.dtypes


@given(st.integers(0, 2**32))
def test_emitted_files_hold_the_declared_dtypes(seed):
    function, arrays, common = drawn(seed)
    program = bb.trace(function, **INPUTS)
    wanted = right(program, arrays)
    if common == "float64" or "float64" in wanted.dtypes or wanted.opaque:
        return
    given_dtypes = {name: str(array.dtype) for name, array in arrays.items()}
    graph = bb.fuse(bb.lower(program)).final
    if list(graph.of_type(Misc)) or "float64" in casts(graph):
        return  # a copy of a view, or a wide value inside: no kernel holds it
    tiles = lower_to_tiles(bb.safe(graph))
    known = {b.name: given_dtypes[b.name] for b in tiles.inputs}
    typed = typed_for_gpu(graph, tiles, given_by({**known}))
    if len(set(known.values())) < len(set(given_dtypes.values())):
        return  # an input is not read: the kernel has no other dtype to meet

    assert [buffer.dtype for buffer in typed.outputs] == wanted.dtypes


def test_the_generator_makes_programs_of_every_kind():
    functions = [random_function(Random(seed)) for seed in range(300)]
    used = Counter(name for f in functions for name, _ in (*f.steps, *f.ends))

    assert all(used[name] >= 10 for name in (*ONE, *TWO, *ENDS)), used


def test_bfloat16_is_rounded_alike_everywhere():
    x = np.random.default_rng(0).normal(size=(50, 40)).astype(np.float32)
    x[0, :3] = np.inf, -np.inf, np.nan
    one = rounded(x, "bfloat16")

    np.testing.assert_array_equal(one, cast(x, dtype="bfloat16"))
    np.testing.assert_array_equal(one, bb.jit(lambda x: bb.astype(x, "bfloat16"))(x))


# casts act on what was computed -----------------------------------------------------------


def products(dtype):
    """x @ w is 82944 everywhere, more than float16 holds."""
    return np.full((4, 64), 36, dtype), np.full((64, 4), 36, dtype)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: (x @ w).astype("float32"),
        lambda x, w: (x @ w).astype("float32")[:, :2],
        lambda x, w: bb.concat([(x @ w).astype("float32"), (x @ w).astype("float32")], axis=0),
        lambda x, w: bb.transpose((x @ w).astype("float32")),
        lambda x, w: (x @ w).astype("float32").astype("float32"),
        lambda x, w: (x @ w, (x @ w).astype("float32"))[1],
        lambda x, w: np.sort((x @ w).astype("float32"), axis=-1),
        lambda x, w: (np.sort(x, axis=-1) @ w).astype("float32"),
        lambda x, w: (np.sort(x @ w, axis=-1), (x @ w).astype("float32"))[1],
        lambda x, w: ((x @ w) + 0 * np.sort(x[:, :4], axis=-1)).astype("float32"),
        lambda x, w: (bb.concat([x @ w, w.T[:, :4]], axis=0) @ w[:4] / 144).astype("float32")[:4],
    ],
)
def test_a_wider_cast_does_not_see_rounded_values(function):
    x, w = products("float16")

    result = bb.jit(function)(x, w)

    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, 82944)


def crossing(x, w):
    """y goes to np.sort, as float16, and to a later piece, as it was computed."""
    y = x @ w
    return np.sort(y, axis=-1), (y * 0.5 + 0 * np.sort(x, axis=-1)[:, :4]).astype("float32")


def test_a_cut_rounds_only_what_the_function_is_given():
    x, w = products("float16")

    rounded, later = bb.jit(crossing)(x, w)

    assert (rounded.dtype, later.dtype) == (np.float16, np.float32)
    np.testing.assert_array_equal(rounded, np.inf)
    np.testing.assert_array_equal(later, 41472)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("to", ["float16", "bfloat16", "float32", "float64"])
def test_casts_of_tensors(torch, dtype, to):
    x = torch.linspace(-3, 3, 200).reshape(4, 50).to(getattr(torch, dtype))

    result = bb.jit(lambda x: bb.astype(bb.exp(x), to))(x)

    assert result.dtype == getattr(torch, to)
    exact = torch.exp(x.double())
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 1e-7, "float64": 1e-15}[to]
    assert ((result.double() - exact).abs() / exact).max() <= 1.01 * unit


def test_a_cast_to_float64_is_computed_in_it():
    x = np.linspace(-3, 3, 200).astype(np.float32).reshape(4, 50)

    wide = bb.jit(lambda x: bb.sum(bb.exp(bb.astype(x, "float64")), axis=-1))(x)
    kept = bb.jit(lambda x: bb.astype(bb.sum(bb.exp(x), axis=-1), "float64"))(x)

    exact = np.exp(x.astype(float)).sum(-1)
    assert (wide.dtype, kept.dtype) == (np.float64, np.float64)
    np.testing.assert_allclose(wide, exact, rtol=1e-15)
    np.testing.assert_allclose(kept, exact, rtol=1e-15)


# one choice of tiles ----------------------------------------------------------------------


def sorted_products(x, w, u):
    """Pieces that read float16 only, in a program that also reads float32."""
    return np.sort(bb.exp(x) @ w, axis=-1) @ u


MIXED = {"x": "float16", "w": "float16", "u": "float32"}


@pytest.mark.parametrize("size", [64, 96, 200, 512])
def test_a_file_has_the_tiles_that_were_chosen(size):
    arrays = [np.zeros((size, size), dtype) for dtype in MIXED.values()]

    plan = bb.jit(sorted_products, machine="h100").plan_for(*arrays)

    assert plan.result_dtypes == ("float32",)
    for file in plan.files:
        module, best = load_module(file.text), file.considered.best
        assert {size_class(d): n for d, n in best.blocks.items()} == module.BLOCKS
        assert all(size % n == 0 for n in module.MULTIPLES.values())
        assert set(module.DTYPES.values()) <= {"float16", "float32"}


@pytest.mark.interpreter
@pytest.mark.parametrize("function", [sorted_products, crossing])
def test_plans_of_mixed_dtypes_run(function):
    rng = np.random.default_rng(0)
    shapes = {"x": (96, 33), "w": (33, 40), "u": (40, 17)}
    if function is crossing:
        shapes = {"x": (20, 33), "w": (33, 4)}
    arrays = {n: rng.standard_normal(s).astype(MIXED[n]) for n, s in shapes.items()}
    plan = bb.jit(function, machine="h100").plan_for(**arrays)

    found = run_in_interpreter(plan, arrays)

    wanted = bb.jit(function)(**arrays)
    for result, right_one in zip(found, wanted if len(found) > 1 else (wanted,), strict=True):
        assert result.dtype == right_one.dtype
        # its first product takes halves, as eager execution holds what it multiplies
        halves = result.dtype == np.float16 or function is sorted_products
        unit = 2e-3 if halves else 2e-5
        largest = np.abs(right_one.astype(float)).max()
        np.testing.assert_allclose(
            result.astype(float), right_one.astype(float), rtol=0, atol=unit * largest
        )
