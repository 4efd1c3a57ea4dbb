"""fold-together: a fold of what a fold gives is one fold, over the axes of both."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.closing.fold_together import fold_together
from blockbuster.emit.interpret.lanes import check_lanes
from blockbuster.emit.tile.program import Let, statements
from blockbuster.ir.ops import Functional
from blockbuster.runtime.launch import run_interpreted
from tests.emit.parse_tiles import parse_tiles


def group_norm(x):
    d = x - bb.mean(x, (1, 2), True)
    return d * bb.rsqrt(bb.mean(bb.square(d), (1, 2), True) + 1e-5)


def less_the_largest(x):
    return x - bb.max(x, (1, 2), True)


def emitted(function, sizes):
    graph = bb.fuse(bb.lower(bb.trace(function, x="A E C")))
    schedule = "block C 8 whole, E 4 whole\nwarps 1"
    return bb.emit(graph, sizes, "float32", "sm_90", schedule=schedule)


def folded_axes(program):
    lets = [s for nest in program.nests for s in statements(nest.body) if isinstance(s, Let)]
    folds = [let for let in lets if isinstance(let.op, Functional)]
    return [len(let.args[0].axes) - len(let.target.axes) for let in folds]


FULL, RAGGED = dict(A=2, E=4, C=8), dict(A=2, E=3, C=5)


@pytest.mark.parametrize(
    ("function", "sizes"),
    [(less_the_largest, FULL), (less_the_largest, RAGGED), (group_norm, RAGGED)],
)
def test_tiles_are_folded_along_both_axes_at_once(function, sizes):
    kernel = emitted(function, sizes)

    assert set(folded_axes(kernel.tile_program)) == {2}
    assert kernel.source.count("tl.reshape(") == len(folded_axes(kernel.tile_program))
    assert kernel.derivation.prove(trials=1).equal
    check_lanes(kernel.tile_program, sizes)


@pytest.mark.interpreter
def test_what_is_folded_at_once_is_right():
    kernel = emitted(group_norm, RAGGED)
    x = np.random.default_rng(0).normal(size=(2, 3, 5)).astype(np.float32)

    (out,) = run_interpreted(kernel, {"x": x}).values()

    np.testing.assert_allclose(out, group_norm(x), rtol=1e-4, atol=1e-5)


PROGRAM = """tiles {
  dots in f32
  inputs x: f32[A, E, C]
  outputs out: f32[A]
  units A
  whole C, E
  nest 1 {
    blocks C 8? whole, E 4? whole
    forall A {
      a: f32[E 4?, C 8?] = load x[A, E, C]
      b: f32[E 4?] = row_sum(a)
      c: f32[] = row_sum(b)
      store out[A] = c
    }
  }
}
"""
"""A fold of a fold, to be spoiled."""

ALONE = {
    "another fold": ("c: f32[] = row_sum(b)", "c: f32[] = row_max(b)"),
    "another reader": ("store out[A] = c", "d: f32[] = row_max(b)\n      store out[A] = d"),
    "another fill": (
        "c: f32[] = row_sum(b)",
        "d: f32[E 4?] = guard b along E with 1\n      c: f32[] = row_sum(d)",
    ),
    "another dtype": ("b: f32[E 4?] = row_sum(a)", "b: f16[E 4?] = row_sum(a)"),
}


@pytest.mark.parametrize("spoiled", ALONE)
def test_other_folds_stay_apart(spoiled):
    program = parse_tiles(PROGRAM)

    assert folded_axes(fold_together(program)) == [2]
    assert set(folded_axes(fold_together(parse_tiles(PROGRAM.replace(*ALONE[spoiled]))))) == {1}
