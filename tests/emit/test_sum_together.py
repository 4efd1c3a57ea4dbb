"""sum-together: two sums across lanes that do not need each other are exchanged together."""

from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.closing import sum_together as module
from blockbuster.emit.closing.sum_together import not_together, sum_together
from blockbuster.emit.tile.program import (
    OUTPUT,
    Buffer,
    BufferAxis,
    Guard,
    Let,
    Store,
    Tile,
    View,
    statements,
)
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import VerifyError
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.ops import Functional, Pointwise
from blockbuster.runtime.launch import run_interpreted

SUM = Functional("row_sum")


def norm(x, g, b):
    return bb.layer_norm(x, g, b)


def moments(x):
    return bb.sum(x, axis=-1), bb.sum(x * x, axis=-1)


def emitted(function, sizes=None, schedule="block M 2, N 64 whole\nwarps 1", **shapes):
    graph = bb.fuse(bb.lower(bb.trace(function, **shapes)))
    return bb.emit(graph, sizes or dict(M=8, N=64), "float32", "sm_90", schedule=schedule)


def paired(kernel):
    lets = [s for n in kernel.tile_program.nests for s in statements(n.body) if isinstance(s, Let)]
    return [let.target.name for let in lets if let.beside]


NORM = dict(x="M N", g="N", b="N")


def test_the_sums_of_deviations_and_of_their_squares_are_exchanged_together():
    kernel = emitted(norm, **NORM)

    assert len(paired(kernel)) == 1
    assert kernel.source.count("tl.reduce((") == kernel.source.count("tl.sum(") == 1
    assert kernel.derivation.prove(trials=2).equal


@pytest.mark.interpreter
@pytest.mark.parametrize(("function", "shapes"), [(norm, NORM), (moments, dict(x="M N"))])
def test_numbers_stay(function, shapes, monkeypatch):
    rng = np.random.default_rng(0)
    sizes = dict(M=8, N=64)
    given = {
        name: rng.normal(size=[sizes[d] for d in dims.split()]).astype("float32")
        for name, dims in shapes.items()
    }
    kernel = emitted(function, **shapes)
    found = run_interpreted(kernel, given)
    monkeypatch.setattr(module, "not_together", lambda *stmts: "no")
    apart = emitted(function, **shapes)

    assert paired(kernel)
    assert not paired(apart)
    for name, array in run_interpreted(apart, given).items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5)


def test_sums_in_loops_stay_apart():
    kernel = emitted(moments, dict(M=8, N=256), "block M 2, N 64\nwarps 1", x="M N")
    assert not paired(kernel)


def tile(name, *axes, dtype="float32"):
    return Tile(name, axes, dtype=dtype)


A, B = tile("t1", "M", "N"), tile("t2", "M", "N")
S, T = tile("t3", "M"), tile("t4", "M")
FIRST, SECOND = Let(S, SUM, (A,)), Let(T, SUM, (B,))
OUT = View(Buffer("Y", (BufferAxis("M"),), OUTPUT), ("M",))
SHIFTED = Let(B, Pointwise(call("add", Arg(0), Arg(1)), ("M", "N")), (A, S))


@pytest.mark.parametrize(
    ("first", "second", "between", "reason"),
    [
        (FIRST, SECOND, (), ""),
        (FIRST, SECOND, (Guard(B, A, "N", 0.0),), ""),
        (FIRST, SECOND, (SHIFTED,), "t3 is needed before t4"),
        (FIRST, SECOND, (Store(OUT, S),), "an order of its own"),
        (FIRST, replace(SECOND, op=Functional("row_max")), (), "one of them is no sum"),
        (FIRST, replace(SECOND, args=(tile("t5", "M", "K"),)), (), "have other lanes"),
        (FIRST, replace(SECOND, target=tile("t6", "M", dtype="int64")), (), "in float32"),
    ],
)
def test_which_sums_go_together(first, second, between, reason):
    found = not_together(first, second, between)
    assert reason in found if reason else not found


def test_a_pair_that_is_torn_apart_is_no_program():
    program = emitted(norm, **NORM).tile_program
    (nest,) = program.nests
    at = next(i for i, s in enumerate(nest.body) if isinstance(s, Let) and s.beside)

    def with_body(*body):
        return replace(program, nests=(replace(nest, body=body),))

    verify_tiles(program)
    assert sum_together(program) == program
    torn = (*nest.body[:at], *nest.body[at + 1 : at + 3], nest.body[at], *nest.body[at + 3 :])
    alone = replace(nest.body[at + 1], beside=True)
    for broken in (torn, (*nest.body[: at + 1], alone, *nest.body[at + 2 :])):
        with pytest.raises(VerifyError):
            verify_tiles(with_body(*broken))


def test_without_its_predicate_a_sum_would_be_read_before_it_is_made(monkeypatch):
    monkeypatch.setattr(module, "not_together", lambda first, second, between: _always(first))
    with pytest.raises((VerifyError, KeyError)):
        verify_tiles(emitted(norm, **NORM).tile_program)


def _always(first):
    return "" if isinstance(first, Let) and first.op == SUM else "no sum"
