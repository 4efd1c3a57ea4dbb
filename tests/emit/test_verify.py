"""Each invariant of tile programs, with the broken program that it catches."""

from dataclasses import replace

import pytest

from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import (
    INPUT,
    LAST,
    OUTPUT,
    WORKSPACE,
    BlockOf,
    Buffer,
    BufferAxis,
    Fold,
    For,
    Init,
    Iota,
    Let,
    Load,
    Nest,
    Store,
    Tile,
    TileProgram,
    View,
)
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import VerifyError
from blockbuster.ir.ops import Functional
from tests.emit.cases import TEXTS, graph_of

M, N = BufferAxis("M"), BufferAxis("N")
X = View(Buffer("X", (M, N), INPUT), ("M", "N"))
Y = View(Buffer("Y", (M,), OUTPUT), ("M",))
I1 = View(Buffer("I1", (M, N), WORKSPACE), ("M", "N"))
ONE = Tile("i", ())
A, S, T = Tile("t1", ("M", "N")), Tile("t2", ("M",)), Tile("t3", ("M",))
SUM = Let(S, Functional("row_sum"), (A,))
ACCUMULATE = (Init(T, "+"), For("N", False, (Load(A, X), SUM, Fold(T, "+", S))))


def program(*body, whole=()):
    return TileProgram((X.buffer,), (Y.buffer,), (I1.buffer,), (Nest(body),), whole=whole)


def row_sums(body=ACCUMULATE):
    return program(For("M", True, (*body, Store(Y, T))))


@pytest.mark.parametrize("name", TEXTS)
def test_lowered_programs_are_well_formed(name):
    verify_tiles(lower_to_tiles(graph_of(name)))


def test_the_program_that_the_others_break():
    verify_tiles(row_sums())


SERIAL = ACCUMULATE[1]
BROKEN = {
    "t1 is read where it is not defined": row_sums((ACCUMULATE[0], replace(SERIAL, body=(SUM,)))),
    "t2 is read where it is not defined": row_sums((*ACCUMULATE, Fold(T, "+", S))),
    "t1, made outside the loop over N, is read in it": row_sums(
        (ACCUMULATE[0], Load(A, X), replace(SERIAL, body=SERIAL.body[1:]))
    ),
    "t1 is defined twice": row_sums((Load(A, X), *ACCUMULATE)),
    "t3 is folded into without an init": row_sums((Load(T, Y), SERIAL)),
    "share the accumulator t3": row_sums((ACCUMULATE[0], replace(SERIAL, parallel=True))),
    "t2 is not t3 folded": row_sums(
        (ACCUMULATE[0], replace(SERIAL, body=(*SERIAL.body[:2], Fold(T, "max", S, ahead=True))))
    ),
    "iterations over N store Y at one place": program(
        For("M", True, (For("N", True, (Load(A, X), SUM, Store(Y, S))),))
    ),
    "I1 is loaded before it is stored": program(For("M", True, (For("N", True, (Load(A, I1),)),))),
    "the input X is stored": program(For("M", True, (For("N", True, (Load(A, X), Store(X, A))),))),
    "I1 is loaded at a place that another iteration over M stores": program(
        For(
            "M",
            True,
            (
                For("N", True, (Load(A, X), Store(I1, A))),
                For("N", True, (Load(Tile("t4", ("M'", "N")), replace(I1, dims=("M'", "N"))),)),
            ),
        )
    ),
    "i is read where it is not defined": program(For("N", False, (), span=(ONE, None))),
    "the loop over N has a span without bounds": program(For("N", False, (), span=(None, None))),
    "t2, a bound of the loop over N, is no single number": program(
        For("M", True, (Load(S, Y), For("N", False, (), span=(None, S))))
    ),
    "i, a bound of the loop over N, is an accumulator": program(
        Init(ONE, "+"), Fold(ONE, "+", ONE), For("N", False, (), span=(ONE, None))
    ),
    "i is the index of M at 'middle'": program(Iota(ONE, "M", at="middle")),
    "t2, of indices of M, has the axes": program(Iota(S, "M", at=LAST)),
    "t1, of indices of M, has the axes": program(Iota(A, "M")),
    "i and t2 have other axes": program(Load(S, Y), BlockOf(ONE, "N", S)),
    "a loop over M inside a loop over M": program(For("M", True, (For("M", True, ()),))),
    "a loop over M, which is one block": program(For("M", True, ()), whole=("M",)),
    "Z is no array of the program": program(Load(A, replace(X, buffer=Buffer("Z", (M, N), INPUT)))),
    "t1 has the axis N, which Y lacks": program(Load(A, Y)),
    "X is accessed under the dims": program(Load(A, replace(X, dims=("M", "N", "N")))),
    "two arrays have one name": replace(row_sums(), workspaces=(X.buffer,)),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_broken(reason):
    with pytest.raises(VerifyError) as caught:
        verify_tiles(BROKEN[reason])

    assert reason in str(caught.value)
