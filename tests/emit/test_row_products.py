"""Products along an axis: rows of kernels are multiplied as they are added up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.closing import guard
from blockbuster.emit.interpret.lanes import check_lanes
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import Fold, Guard, statements
from blockbuster.ir.ops import Accumulate, Functional, Map, Rescale
from blockbuster.ir.types import Type
from blockbuster.runtime.launch import run_interpreted

PROGRAMS = {
    "of rows": (lambda x: bb.prod(x, axis=-1), "A M N"),
    "of a middle axis": (lambda x: bb.prod(x * 2 - 1, axis=1), "A M N"),
    "of all": (lambda x: bb.prod(x) + 1, "M N"),
    "of two axes": (lambda x: bb.prod(x, axis=(0, 2), keepdims=True) * x, "A M N"),
    "beside a sum": (lambda x: bb.prod(x, axis=1) - bb.sum(x, axis=1), "M N"),
    "of sums": (lambda x: bb.prod(bb.sum(x, axis=2), axis=1), "A M N"),
    "of a product": (lambda x: bb.prod(x @ x.T, axis=1), "M N"),
    "of exponentials": (lambda x: bb.prod(bb.exp(x), axis=1), "M N"),
    "of a softmax": (lambda x: bb.prod(bb.softmax(x, axis=1), axis=0), "M N"),
    "of chosen elements": (lambda x: bb.prod(bb.where(x > 0, x, 1.0), axis=1), "M N"),
}


@pytest.mark.parametrize("name", PROGRAMS)
@given(st.data())
def test_fused_programs_compute_what_the_oracle_does(name, data):
    fn, axes = PROGRAMS[name]
    program = bb.trace(fn, x=axes)
    sizes = {axis: data.draw(st.integers(1, 4), label=axis) for axis in axes.split()}
    x = np.random.default_rng(sum(sizes.values())).integers(-2, 3, [*sizes.values()]).astype(float)
    graph = bb.lower(program)
    for made in (graph, bb.fuse(graph).final, bb.safe(bb.fuse(graph).final)):
        np.testing.assert_allclose(
            bb.evaluate(made, {"x": x})["out"], program.numpy({"x": x})["out"], rtol=1e-9
        )


@pytest.mark.parametrize("name", PROGRAMS)
def test_proofs_and_safe_forms(name):
    fn, axes = PROGRAMS[name]
    graph = bb.lower(bb.trace(fn, x=axes))
    fused = bb.fuse(graph).final

    assert bb.prove_equal(graph, fused)
    assert bb.prove_equal(graph, bb.safe(fused))
    assert bb.parse(str(fused)) == fused


def test_no_exponent_leaves_a_product():
    """exp(a) exp(b) has the exponent a + b, and the larger of the two is no exponent of it."""
    fn, axes = PROGRAMS["of exponentials"]
    safe = bb.safe(bb.fuse(bb.lower(bb.trace(fn, x=axes))).final)

    maps = [node.op for _, level in safe.walk() for node in level.nodes if isinstance(node.op, Map)]
    folds = [result for op in maps for result in op.results]
    assert Accumulate("prod") in folds
    assert not any(isinstance(result, Rescale) for result in folds)


ROWS = "graph(X: A,M,N[M,N]) { y = map A (x in !X) { p = map M (u in !x) { q = map N (v in !u) "
ROWS += "{ r = row_prod(v) yield prod r } yield q } yield p } return y }"
SCHEDULES = (
    "block M 8, N 16\nwarps 4\n",
    "block M 4, N 64 whole\nwarps 2\n",
    "chunk nest 1 N 2\nblock nest 1 M 8, N 8\nblock nest 2 M 8\nwarps 4\n",
)


@pytest.mark.parametrize("text", SCHEDULES)
@pytest.mark.parametrize("sizes", [dict(A=2, M=5, N=37), dict(A=1, M=16, N=48)])
def test_kernels_multiply_no_lanes_past_the_end(text, sizes):
    """Lanes past the end hold 0 when they are loaded: a product needs 1 there."""
    graph = bb.parse(ROWS)
    kernel = emit(graph, sizes, "float32", schedule=text)
    assert check_schedule(graph, text, sizes, trials=2)
    x = np.random.default_rng(0).uniform(0.5, 1.5, [*sizes.values()]).astype(np.float32)
    (found,) = run_interpreted(kernel, {"X": x}).values()
    np.testing.assert_allclose(found, x.prod(-1), rtol=1e-5)


def test_lanes_past_the_end_are_ones():
    kernel = emit(bb.parse(ROWS), dict(A=2, M=5, N=37), "float32", schedule=SCHEDULES[0])
    body = [stmt for nest in kernel.tile_program.nests for stmt in statements(nest.body)]

    assert [stmt.fill for stmt in body if isinstance(stmt, Guard)] == [1.0]
    assert [stmt.monoid for stmt in body if isinstance(stmt, Fold)] == ["prod"]
    assert "tl.reduce(" in kernel.source
    assert "_product)" in kernel.source


def test_products_are_kernels_of_their_own_dtype():
    plan = bb.jit(lambda x: bb.prod(x, axis=1), machine="h100").plan_for(
        np.ones((8, 16, 33), np.float16)
    )

    assert plan.kernels == 1
    assert not plan.calls
    assert plan.result_dtypes == ("float16",)


def test_integers_are_multiplied_by_a_library():
    x = np.arange(1, 13).reshape(3, 4)
    compiled = bb.jit(lambda x: bb.prod(x, axis=1))

    np.testing.assert_array_equal(compiled(x), x.prod(1))


def test_halves_are_multiplied_in_single_precision():
    """300 * 300 is no half, but 300 * 300 / 300 is one."""
    x = np.array([[300.0, 300.0, 1 / 300.0]], np.float16)
    found = bb.jit(lambda x: bb.prod(x, axis=1))(x)

    assert found.dtype == np.float16
    np.testing.assert_allclose(found, x.astype(np.float64).prod(1), rtol=1e-3)


def test_functional_operators_know_their_monoid():
    kept = Functional("row_prod").result_types((Type((), ("M", "N")),))
    assert str(kept[0]) == "[M]"


@pytest.mark.parametrize(("fill", "right"), [(1.0, True), (0.0, False)])
def test_lanes_that_hold_no_ones_are_caught(fill, right, monkeypatch):
    """What the check of padded lanes says of a product with zeros past the end."""
    monkeypatch.setitem(guard.IGNORED, "row_prod", fill)
    sizes = dict(A=1, M=3, N=21)
    tiles = lower_to_tiles(bb.parse(ROWS))
    guarded = guard.guard(tiles, ("N",))
    if right:
        check_lanes(guarded, sizes, {"M": 4, "N": 8})
        return
    with pytest.raises(Hazard):
        check_lanes(guarded, sizes, {"M": 4, "N": 8})
