"""pair-accesses: elements at even and at odd places of rows are loaded and stored as rows."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.costs import work_of
from blockbuster.emit.closing.pair_accesses import pair_accesses
from blockbuster.emit.tile.program import ACCESSES, statements
from blockbuster.runtime.launch import run_interpreted
from tests.emit.parse_tiles import parse_tiles


def rotated(x, c, s):
    even, odd = x[..., ::2], x[..., 1::2]
    pairs = (even * c - odd * s, even * s + odd * c)
    return bb.reshape(bb.stack(pairs, -1), x.shape)


def emitted(columns):
    derivation = bb.fuse(bb.lower(bb.trace(rotated, x="M D", c="M E", s="M E")))
    sizes = dict(M=6, D=2 * columns, E=columns)
    schedule = "block M 4, E 8\nwarps 1"
    return bb.emit(derivation, sizes, "float16", "sm_90", schedule=schedule)


def accesses(program):
    return [s for nest in program.nests for s in statements(nest.body) if isinstance(s, ACCESSES)]


def paired(program):
    return [access.view.paired for access in accesses(program)]


@pytest.mark.parametrize("columns", [16, 13])
def test_even_and_odd_elements_are_accessed_as_rows(columns):
    kernel = emitted(columns)

    assert paired(kernel.tile_program).count(True) == 4
    assert kernel.source.count("tl.split(") == kernel.source.count("tl.join(") == 1
    assert parse_tiles(kernel.tile_program.show()) == kernel.tile_program
    assert kernel.derivation.prove(trials=1).equal


@pytest.mark.interpreter
@pytest.mark.parametrize("columns", [16, 13])
def test_what_is_accessed_as_rows_is_right(columns):
    random = np.random.default_rng(columns)
    x = random.normal(size=(6, 2 * columns)).astype(np.float16)
    c, s = random.normal(size=(2, 6, columns)).astype(np.float16)
    (out,) = run_interpreted(emitted(columns), {"x": x, "c": c, "s": s}).values()

    expected = rotated(*(array.astype(float) for array in (x, c, s)))
    np.testing.assert_allclose(out, expected, rtol=2e-3, atol=2e-3)


def with_zero_rows(x, y):
    """Zeros before the first row and behind the last one, at places that have no lanes."""
    padded = bb.pad(x, ((1, 1), (0, 0)))
    return padded[:, None, ::2] * 2.0 + padded[:, None, 1::2] * y


@pytest.mark.interpreter
@pytest.mark.parametrize("columns", [16, 13])
def test_rows_of_zeros_around_an_array_are_not_read(columns):
    derivation = bb.fuse(bb.lower(bb.trace(with_zero_rows, x="N D", y="A M B")))
    sizes = dict(N=3, D=2 * columns, A=5, M=7, B=columns)
    kernel = bb.emit(derivation, sizes, "float32", "sm_90")
    random = np.random.default_rng(columns)
    x, y = random.normal(size=(3, 2 * columns)), random.normal(size=(5, 7, columns))
    (out,) = run_interpreted(
        kernel, {"x": x.astype(np.float32), "y": y.astype(np.float32)}
    ).values()

    assert any(paired(kernel.tile_program))
    np.testing.assert_allclose(out, with_zero_rows(x, y), rtol=1e-5, atol=1e-5)


def test_rows_are_copied_many_elements_at_a_time():
    kernel = emitted(16)
    alone = kernel.tile_program.show().replace(" paired", "")
    programs = kernel.tile_program, parse_tiles(alone)
    works = [work_of(program, kernel.sizes, "sm_90")[0] for program in programs]
    together, apart = (sum(phase.instructions for phase in work.phases) for work in works)

    assert together < 0.8 * apart


PROGRAM = """tiles {
  dots in f16
  inputs x: f16[M, D]
  outputs out: f16[M, D]
  sizes |E| = |D| / 2
  nest 1 {
    blocks M 4?, E 8?
    forall M {
      forall E {
        a: f16[M 4?, E 8?] = load x[M, D[E = |D| / 2 step 2]]
        b: f16[M 4?, E 8?] = load x[M, D[E = |D| / 2 step 2 from 1]]
        store out[M, D[E = |D| / 2 step 2 of |D|]] = b
        store out[M, D[E = |D| / 2 step 2 from 1 of |D|]] = a
      }
    }
  }
}
"""

SPOILED = {
    "the same places": ("b: f16[M 4?, E 8?] = load x[M, D[E = |D| / 2 step 2 from 1]]",
                        "b: f16[M 4?, E 8?] = load x[M, D[E = |D| / 2 step 2]]", [0, 0, 1, 1]),
    "another step": ("= load x[M, D[E = |D| / 2 step 2 from 1]]",
                     "= load x[M, D[E = |D| / 2 step 1 from 1]]", [0, 0, 1, 1]),
    "turned": ("b: f16[M 4?, E 8?] = load", "b: f16[E 8?, M 4?] = load", [0, 0, 0, 0]),
    "masks": ("x: f16[M, D]", "x: bool[M, D]", [0, 0, 1, 1]),
    "read between": ("        store out[M, D[E = |D| / 2 step 2 from",
                     "        c: f16[M 4?, E 8?] = load out[M, D[E = |D| / 2 step 2]]\n"
                     "        store out[M, D[E = |D| / 2 step 2 from", [1, 1, 0, 0, 0]),
}  # fmt: skip
"""An edit of the program, and which of its accesses are paired then."""


def test_both_pairs_of_the_program_are_found():
    assert paired(pair_accesses(parse_tiles(PROGRAM))) == [True] * 4


@pytest.mark.parametrize("spoiled", SPOILED)
def test_other_accesses_stay_alone(spoiled):
    old, new, expected = SPOILED[spoiled]
    program = parse_tiles(PROGRAM.replace(old, new))

    assert paired(pair_accesses(program)) == [bool(one) for one in expected]
