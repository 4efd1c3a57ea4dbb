"""Loads that run ahead, as the interpreter of tile programs runs them: rings, waits, slots."""

from dataclasses import replace

import numpy as np
import pytest

from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import (
    OUTPUT,
    Await,
    Buffer,
    BufferAxis,
    For,
    Issue,
    Let,
    Load,
    Nest,
    Store,
    Tile,
    TileProgram,
    View,
)
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.parse import parse
from tests.emit.counting import count_run

DOTS = parse("""
graph(A: M,K[M,K], B: N,K[N,K]) {
  Y = map M (a in !A, b = !B) {
    y = map N (c in !b, a2 = !a) {
      s = map K (x in !a2, z in !c) { d = dot(x, z)  yield +d }
      yield s
    }
    yield y
  }
  return Y
}
""")


def ahead(program, by, slots, *, behind=False, waiting=True):
    """``program`` with the loads of serial loops issued ahead: first in the body, or last."""

    def walked(body):
        return tuple(
            stmt
            if not isinstance(stmt, For)
            else replace(stmt, body=walked(stmt.body))
            if stmt.parallel
            else replace(stmt, body=looped(stmt.body))
            for stmt in body
        )

    def looped(body):
        loads = [s for s in body if isinstance(s, Load)]
        issues = [Issue(f"p{s.target.name}", s.target, s.view, by, slots) for s in loads]
        rest = [Await(s.target, f"p{s.target.name}") if s in loads else s for s in body]
        if not waiting:
            rest = [s for s in rest if not isinstance(s, Await)]
        return tuple((*rest, *issues) if behind else (*issues, *rest))

    nests = tuple(replace(nest, body=walked(nest.body)) for nest in program.nests)
    return replace(program, nests=nests)


DOT_SIZES = {"M": 3, "N": 3, "K": 7}
DOT_INPUTS = {"A": np.arange(21.0).reshape(3, 7), "B": np.arange(21.0).reshape(3, 7) - 9}
DOT_BLOCKS = {"M": 2, "N": 2, "K": 2}


def dots(program):
    return run_tiles(program, DOT_INPUTS, block_sizes=DOT_BLOCKS, seed=4)["out"]


@pytest.mark.parametrize(
    ("by", "slots", "behind"),
    [(1, 2, False), (2, 3, False), (3, 4, False), (9, 10, False), (1, 1, True), (2, 2, True)],
)
def test_rings_that_are_large_enough(by, slots, behind):
    made = dots(ahead(lower_to_tiles(DOTS), by, slots, behind=behind))

    np.testing.assert_array_equal(made, DOT_INPUTS["A"] @ DOT_INPUTS["B"].T)


def test_loads_that_run_ahead_count_as_loads():
    plain = lower_to_tiles(DOTS)
    for by in (1, 2, 9):
        counts = count_run(ahead(plain, by, by + 1), DOT_SIZES, DOT_BLOCKS)
        assert counts == count_run(plain, DOT_SIZES, DOT_BLOCKS)


@pytest.mark.parametrize(
    ("by", "slots", "behind", "waiting", "reason"),
    [
        (1, 1, False, True, "takes slot 0 of 1, into which that for iteration 0 is on its way"),
        (2, 2, False, True, "takes slot 0 of 2, into which that for iteration 0 is on its way"),
        (3, 2, True, True, "takes slot 0 of 2, into which that for iteration 0 is on its way"),
        (1, 2, False, False, "is read before it is made"),
    ],
)
def test_rings_that_are_too_small(by, slots, behind, waiting, reason):
    with pytest.raises(Hazard, match=reason) as found:
        dots(ahead(lower_to_tiles(DOTS), by, slots, behind=behind, waiting=waiting))
    assert "\n>" in str(found.value)  # with the line


def loop_of(*body, buffers=()):
    """A serial loop over N, which reads X[N] and stores to Y[N]."""
    x, y = Buffer("X", (BufferAxis("N"),), "input"), Buffer("Y", (BufferAxis("N"),), OUTPUT)
    return TileProgram((x,), (y, *buffers), (), (Nest((For("N", False, body),)),))


T1, T2 = Tile("t1", ("N",)), Tile("t2", ("N",))
X = View(Buffer("X", (BufferAxis("N"),), "input"), ("N",))
Y = View(Buffer("Y", (BufferAxis("N"),), OUTPUT), ("N",))
NEXT = Issue("x", T1, X, 1, 2)
TWICE = Let(T2, Pointwise(call("mul", Arg(0), 2), ("N",)), (T1,))


def run_loop(*body):
    return run_tiles(loop_of(*body), {"X": np.arange(5.0)}, block_sizes={"N": 2})["Y"]


def test_a_loop_with_a_ring():
    np.testing.assert_array_equal(
        run_loop(NEXT, Await(T1, "x"), TWICE, Store(Y, T2)), 2 * np.arange(5.0)
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ((replace(NEXT, slots=1), Await(T1, "x"), Store(Y, T1)), "is on its way"),
        ((Await(T1, "x"), replace(NEXT, slots=1), Store(Y, T1)), "iteration 0 reads t1 in slot 0"),
        ((NEXT, Store(Y, T1), Await(T1, "x")), "t1 is read before it is made"),
        ((NEXT, Load(T1, X), Store(Y, T1)), "takes slot 0 of 2"),
        ((replace(NEXT, ahead=9, slots=9), Load(T1, X), Store(Y, T1)), "nobody waits for the load"),
        ((Await(T1, "x"), Store(Y, T1)), "waits for x, which no load brings"),
        (
            (replace(NEXT, ahead=0), Store(Y, T1)),
            "t1 is read before it is made",
        ),
        (
            (Load(T2, X), Store(Y, T2), Issue("y", T1, Y, 1, 2), Await(T1, "y")),
            r"Y\[0\] is read before it is written",
        ),
    ],
)
def test_waits_and_slots_that_are_wrong(body, reason):
    with pytest.raises(Hazard, match=reason):
        run_loop(*body)


def test_what_is_stored_while_it_is_loaded():
    """The first iteration writes an entry that the load for the second has on its way."""
    first = Nest((For("N", False, (Load(T2, X), Store(Y, T2))),))
    inner = (
        replace(NEXT, view=Y), Await(T1, "x"), TWICE, Store(Y, T2), For("N'", False, (Store(
            View(Y.buffer, ("N'",)), Tile("t3", ("N'",))),)),
    )  # fmt: skip
    everywhere = (
        Load(Tile("t3", ("N'",)), View(X.buffer, ("N'",))),
        Store(View(Y.buffer, ("N'",)), Tile("t3", ("N'",))),
    )
    body = (*inner[:4], For("N'", False, everywhere))
    program = replace(loop_of(), nests=(first, Nest((For("N", False, body),))))

    with pytest.raises(Hazard, match="Y is written while t1 is loaded from it"):
        run_tiles(program, {"X": np.arange(4.0)}, block_sizes={"N": 2})
