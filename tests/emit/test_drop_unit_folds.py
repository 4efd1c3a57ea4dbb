"""drop-unit-folds: a fold of one element is that element."""

import pytest

import blockbuster as bb
from blockbuster.emit.closing.drop_unit_folds import drop_unit_folds
from blockbuster.emit.tile.program import statements
from tests.emit.parse_tiles import parse_tiles

PROGRAM = """tiles {
  inputs x: f32[A, M, N]
  outputs out: f32[M]
  units A
  whole N
  nest 1 {
    blocks M 2, N 8? whole
    forall M {
      e: f32[M 2] = init max
      for A {
        a: f32[M 2, N 8?] = load x[A, M, N]
        b: f32[M 2] = row_max(a)
        c: f32[M 2, A] = b
        d: f32[M 2] = row_max(c)
        e max= d
      }
      store out[M] = e
    }
  }
}
"""

OTHERS = {
    "several elements": ("units A", "units B"),
    "no spread": ("c: f32[M 2, A] = b", "c: f32[M 2, A] = b + 1"),
    "another dtype": ("b: f32[M 2] = row_max(a)", "b: f16[M 2] = row_max(a)"),
    "it changed": ("d: f32[M 2] = row_max(c)", "b max= b\n        d: f32[M 2] = row_max(c)"),
    "it changes": ("d: f32[M 2] = row_max(c)", "d: f32[M 2] = row_max(c)\n        b max= d"),
}


def ends(x):
    return bb.max(x, (0, 2))


def test_a_fold_of_one_element_is_dropped():
    program = drop_unit_folds(parse_tiles(PROGRAM))
    kept = [*statements(program.nests[0].body)]

    assert len([*statements(parse_tiles(PROGRAM).nests[0].body)]) - len(kept) == 2
    assert "e max= b" in program.show()
    assert drop_unit_folds(program).nests[0].body is program.nests[0].body


@pytest.mark.parametrize("spoiled", OTHERS)
def test_other_folds_stay(spoiled):
    program = parse_tiles(PROGRAM.replace(*OTHERS[spoiled]))

    assert drop_unit_folds(program) == program


def test_a_fold_over_single_elements_waits_for_no_lanes_in_its_loop():
    derivation = bb.fuse(bb.lower(bb.trace(ends, x="A M N")))
    schedule = "block M 2, N 128 whole\ndefer nest 1 @6\nwarps 2"
    sizes = dict(A=7, M=512, N=65)
    kernel = bb.emit(derivation, sizes, "float16", "sm_90", schedule=schedule)

    inside = kernel.source.partition("for a0 in")[2].partition("tl.store(")[0]
    assert inside.count("tl.reduce") == 1
    assert "    z = tl.reduce" in inside
    assert kernel.derivation.prove(trials=1).equal
