"""Each rule of dtypes in tile programs, with the broken program that it catches."""

from dataclasses import replace

import pytest

from blockbuster.emit.tile.dataflow import retargeted
from blockbuster.emit.tile.program import (
    INPUT,
    LAST,
    OUTPUT,
    WORKSPACE,
    Await,
    BlockOf,
    Buffer,
    BufferAxis,
    Fold,
    For,
    Guard,
    Init,
    Iota,
    Issue,
    Let,
    Load,
    Nest,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.result_dtypes import INDEX, WHOLE, call_dtype, literal_dtype, value_dtype
from blockbuster.emit.tile.typed import typed, with_dtypes
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import VerifyError
from blockbuster.ir.expr import Arg, Const, Size, call
from blockbuster.ir.ops import Cast, Functional, Pointwise, Relabel
from tests.emit.cases import lets

M, N, D = BufferAxis("M"), BufferAxis("N"), BufferAxis("D")
X1 = View(Buffer("X", (M,), INPUT), ("M",))
Y1 = View(Buffer("Y", (M,), OUTPUT), ("M",))
ARRAYS = {"X": "float16", "Y": "float16", "W": "float16"}
X = View(Buffer("X", (M, D), INPUT), ("M", "D"))
W = View(Buffer("W", (N, D), INPUT), ("N", "D"))
Y = View(Buffer("Y", (M, N), OUTPUT), ("M", "N"))
P = View(Buffer("I1", (M, N), WORKSPACE), ("M", "N"))


def one(*body, inputs=(X1.buffer,), outputs=(Y1.buffer,), workspaces=()):
    return TileProgram(inputs, outputs, workspaces, (Nest(body),))


def matmul():
    """exp(X) @ W, with indices and truth values beside it: every rule has a statement."""
    x, w, e = Tile("t1", ("M", "D")), Tile("t2", ("N", "D")), Tile("t3", ("M", "D"))
    made, total = Tile("t4", ("M", "N")), Tile("t5", ("M", "N"))
    at, before = Tile("t6", ("M",)), Tile("t7", ("M",))
    product, held = Tile("t8", ("M", "N")), Tile("t9", ("N", "D"))
    loop = For(
        "D",
        False,
        (
            Issue("W", w, W, 1, 2),
            Load(x, X),
            Let(e, Pointwise(call("exp", Arg(0)), ("M", "D")), (x,)),
            Await(w, "W"),
            Guard(held, w, "D", 0.0),
            Let(made, Functional("dot"), (e, held)),
            Fold(total, "+", made),
        ),
        span=(None, Tile("t13", ())),
    )
    last, block, half = Tile("t12", ()), Tile("t13", ()), Tile("t14", ())
    inner = (
        Iota(at, "M"),
        BlockOf(Tile("t11", ("M",)), "D", at),
        Iota(last, "M", at=LAST),
        BlockOf(block, "D", last),
        Let(half, Pointwise(call("mul", Size("D"), 0.5), ()), ()),
        Let(before, Pointwise(call("lt", Arg(0), 5.0), ("M",)), (at,)),
        Init(total, "+"),
        loop,
        Let(product, Pointwise(call("mul", Arg(0), Arg(1)), ("M", "N")), (total, before)),
        Store(Y, product),
    )
    body = (For("M", True, (For("N", True, inner),)),)
    program = TileProgram((X.buffer, W.buffer), (Y.buffer,), (), (Nest(body),))
    return typed(program, ARRAYS, "float16")


def bounded_by(program, name):
    """``program`` whose loops over spans end before a block that another tile tells."""
    lets = (s for nest in program.nests for s in statements(nest.body) if isinstance(s, Let))
    (other,) = (let.target for let in lets if let.target.name == name)

    def over(body):
        return tuple(
            replace(s, body=over(s.body), span=s.span and (None, other))
            if isinstance(s, For)
            else s
            for s in body
        )

    nests = tuple(replace(nest, body=over(nest.body)) for nest in program.nests)
    return replace(program, nests=nests)


def with_tile(program, name, **changed):
    """``program`` with a tile of that name that is different, wherever it stands."""
    tiles = {
        tile
        for nest in program.nests
        for stmt in statements(nest.body)
        for tile in (
            getattr(stmt, "target", None),
            getattr(stmt, "tile", None),
            getattr(stmt, "value", None),
            *getattr(stmt, "args", ()),
        )
        if isinstance(tile, Tile) and tile.name == name
    }
    assert tiles
    new = {tile: replace(tile, **changed) for tile in tiles}

    def over(body):
        return tuple(
            replace(stmt, body=over(stmt.body)) if isinstance(stmt, For) else retargeted(stmt, new)
            for stmt in body
        )

    nests = tuple(replace(nest, body=over(nest.body)) for nest in program.nests)
    return replace(program, nests=nests)


def test_the_program_that_the_others_break():
    program = matmul()
    verify_tiles(program)
    tiles = {
        tile.name: tile.dtype
        for nest in program.nests
        for stmt in statements(nest.body)
        if isinstance(tile := getattr(stmt, "target", None), Tile)
    }
    assert tiles == {
        "t1": "float16", "t2": "float16", "t3": "float32", "t4": "float32", "t5": "float32",
        "t6": "int", "t7": "bool", "t8": "float32", "t9": "float16", "t10": "float16",
        "t11": "int", "t12": "int", "t13": "int", "t14": "float32",
    }  # fmt: skip


BROKEN = {
    "X has dtype ''": lambda p: with_dtypes(p, {"X": ""}),
    "X has dtype 'int'": lambda p: with_dtypes(p, {"X": "int"}),
    "t3 has dtype ''": lambda p: with_tile(p, "t3", dtype=""),
    "X has dtype 'float16' in a program without dtypes": lambda p: replace(p, dtype=""),
    "X is loaded as float32, not float16": lambda p: with_tile(p, "t1", dtype="float32"),
    "W is loaded as float32, not float16": lambda p: with_tile(p, "t2", dtype="float32"),
    "the indices of M are float32, not int": lambda p: with_tile(p, "t6", dtype="float32"),
    "t7 is float32, but its operator gives bool": lambda p: with_tile(p, "t7", dtype="float32"),
    "numbers of blocks of D are float32, not int": lambda p: with_tile(p, "t11", dtype="float32"),
    "the bounds of the loop over D are float32, not int": lambda p: bounded_by(p, "t14"),
    "t3 is float16, but its operator gives float32": lambda p: with_tile(p, "t3", dtype="float16"),
    "t10 is float32, but its operator gives float16": lambda p: with_tile(
        p, "t10", dtype="float32"
    ),
    "t10, of float16, is read by a dot of bfloat16": lambda p: replace(p, dtype="bfloat16"),
    "t2 is guarded as bfloat16, not float16": lambda p: with_tile(p, "t9", dtype="bfloat16"),
    "the accumulator t5 is float16": lambda p: with_tile(p, "t5", dtype="float16"),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_broken(reason):
    with pytest.raises(VerifyError) as caught:
        verify_tiles(BROKEN[reason](matmul()))

    assert reason in str(caught.value)


def test_dots_of_operands_as_they_are_computed_are_ill_formed():
    program = matmul()
    (cast,) = lets(program, Cast)
    (dot,) = lets(program, Functional)
    broken = replace_in(program, {dot: replace(dot, args=(cast.args[0], dot.args[1]))})

    with pytest.raises(VerifyError, match="t3, of float32, is read by a dot of float16"):
        verify_tiles(broken)


def replace_in(program, new):
    """``program`` with other statements."""

    def over(body):
        return tuple(
            replace(stmt, body=over(stmt.body)) if isinstance(stmt, For) else new.get(stmt, stmt)
            for stmt in body
        )

    nests = tuple(replace(nest, body=over(nest.body)) for nest in program.nests)
    return replace(program, nests=nests)


# the dtype of what an operator gives ----------------------------------------------------


GIVEN = [
    (Cast("bfloat16"), ["float32"], "bfloat16"),
    (Relabel("M", "N"), ["float16"], "float16"),
    (Relabel("M", "N"), ["bool"], "bool"),
    (Functional("dot"), ["float16", "float16"], "float32"),
    (Functional("row_max"), ["float16"], "float32"),
    (Pointwise(Arg(0), ("M",)), ["float16"], "float16"),
    (Pointwise(call("exp", Arg(0)), ("M",)), ["float16"], "float32"),
    (Pointwise(call("lt", Arg(0), Arg(1)), ("M",)), ["float16", "float32"], "bool"),
    (Pointwise(call("not", Arg(0)), ("M",)), ["bool"], "bool"),
    (Pointwise(call("add", Arg(0), 3.0), ("M",)), [INDEX], INDEX),
    (Pointwise(call("sub", Arg(0), Arg(1)), ("M",)), [INDEX, INDEX], INDEX),
    (Pointwise(call("add", Arg(0), 0.5), ("M",)), [INDEX], "float32"),
    (Pointwise(call("add", Arg(0), Arg(1)), ("M",)), [INDEX, "float16"], "float32"),
    (Pointwise(call("mul", Arg(0), 2.0), ("M",)), [INDEX], "float32"),
    (Pointwise(Const(2.0), ("M",)), [], "float32"),
    (Pointwise(call("where", Arg(0), Arg(1), 0.0), ("M",)), ["bool", "float16"], "float32"),
]


@pytest.mark.parametrize(("op", "operands", "dtype"), GIVEN)
def test_what_an_operator_gives(op, operands, dtype):
    assert value_dtype(op, operands) == dtype
    wide = value_dtype(op, ["float64" if d.startswith("float") else d for d in operands], "float64")
    if dtype == "float32":
        assert wide == "float64"


def test_literals():
    assert [literal_dtype(x) == WHOLE for x in (2.0, -3.0, 0.5, float("inf"), 1e300)] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert call_dtype("add", [WHOLE, WHOLE]) == "float32"  # no index among them
