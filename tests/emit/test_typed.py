"""Dtypes of tile programs: given once, kept by every move, and what breaks each of their rules."""

from dataclasses import replace
from string import ascii_uppercase

import numpy as np
import pytest

from blockbuster.emit.print.numpy.run import run_numpy
from blockbuster.emit.schedule.narrow_workspaces import narrow_workspaces, not_narrow
from blockbuster.emit.schedule.wide_sums import wide_sums
from blockbuster.emit.target.compiler import TARGETS
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_cpu, typed_for_gpu
from blockbuster.emit.tile.dataflow import retargeted
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import (
    INPUT,
    OUTPUT,
    WORKSPACE,
    Await,
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
from blockbuster.emit.tile.typed import retyped, typed, with_dtypes
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError, VerifyError
from blockbuster.ir.expr import Arg, Const, call
from blockbuster.ir.ops import Cast, Functional, Pointwise, Relabel
from blockbuster.rules import fuse, safe
from blockbuster.selection.default_schedule import default_schedule
from tests.emit.cases import FOLDER, TEXTS, graph_of, inputs_for, sizes_of
from tests.frontend.programs import OPAQUE, PROGRAMS

NARROW = ("float16", "bfloat16")


def lets(program, kind):
    """The operators of a class in a program."""
    stmts = (stmt for nest in program.nests for stmt in statements(nest.body))
    return [stmt for stmt in stmts if isinstance(stmt, Let) and isinstance(stmt.op, kind)]


# what a program is given ---------------------------------------------------------------


def attention(dtype="float16"):
    graph = graph_of("attention safe")
    return typed_for_gpu(graph, lower_to_tiles(graph), given_by(dtype))


@pytest.mark.parametrize("dtype", NARROW)
def test_what_a_dot_takes_is_cast_where_it_is_computed(dtype):
    program = attention(dtype)
    (cast,) = lets(program, Cast)
    dots = [let for let in lets(program, Functional) if let.op.name == "dot"]

    assert cast.op == Cast(dtype)
    assert cast.args[0].dtype == "float32"
    assert cast.target.dtype == dtype
    assert [cast.target in dot.args for dot in dots] == [False, True]
    assert {arg.dtype for dot in dots for arg in dot.args} == {dtype}
    assert {dot.target.dtype for dot in dots} == {"float32"}
    assert {b.dtype for b in (*program.inputs, *program.outputs)} == {dtype}


def test_nothing_is_cast_in_float32():
    assert lets(attention("float32"), Cast) == []


def test_a_program_without_dtypes_stays_without():
    program = lower_to_tiles(graph_of("attention safe"))

    assert retyped(program) is program
    assert narrow_workspaces(program) is program
    assert wide_sums(program) is program


@pytest.mark.parametrize("dtype", [*NARROW, "float32", {"X": "float16"}])
@pytest.mark.parametrize("name", [*TEXTS, *(name for name in PROGRAMS if name not in OPAQUE)])
def test_every_program_is_typed_and_stays_so(name, dtype):
    graph = graph_of(name)
    fused = graph if name in TEXTS else safe(fuse(graph).final)
    tiles = lower_to_tiles(fused)
    if isinstance(dtype, dict):  # several dtypes, by turns
        turns = (*NARROW, "float32")
        dtype = {b.name: turns[at % 3] for at, b in enumerate(tiles.inputs)}
    try:
        program = typed_for_gpu(graph, tiles, given_by(dtype))
    except EmitError as error:
        assert "a cast to float64" in str(error)  # noqa: PT017
        return
    verify_tiles(program)
    assert retyped(program) == program
    sizes = sizes_of(fused, dict.fromkeys(ascii_uppercase, 70))  # ragged, in several blocks
    try:
        scheduled = default_schedule(program, sizes, device=TARGETS["sm_90"])
    except EmitError:
        return  # no tiles for such sizes
    verify_tiles(scheduled.draft)
    verify_tiles(scheduled.program)


@pytest.mark.parametrize("arithmetic", ["float32", "float64"])
@pytest.mark.parametrize("name", TEXTS)
def test_programs_for_the_cpu_are_typed(name, arithmetic):
    program = typed_for_cpu(lower_to_tiles(graph_of(name)), arithmetic)

    verify_tiles(program)
    verify_tiles(wide_sums(program))
    assert program.dtype == arithmetic
    assert (wide_sums(program) == program) == (arithmetic == "float64")


@pytest.mark.parametrize("name", TEXTS)
def test_dtypes_do_not_change_numpy_text_in_float64(name):
    graph = graph_of(name)
    sizes, plain = sizes_of(graph), lower_to_tiles(graph)
    inputs = inputs_for(graph, sizes)
    program = typed_for_cpu(plain, "float64")

    found = run_numpy(program, inputs, sizes, folder=FOLDER)
    for array, wanted in run_numpy(plain, inputs, sizes, folder=FOLDER).items():
        np.testing.assert_array_equal(found[array], wanted)


def test_casts_to_a_wider_dtype_than_the_arithmetic_are_refused():
    cast = Let(Tile("t2", ("M",)), Cast("float64"), (Tile("t1", ("M",)),))
    program = one(Load(Tile("t1", ("M",)), X1), cast, Store(Y1, cast.target))

    with pytest.raises(EmitError, match="a cast to float64: kernels compute in float32"):
        typed(program, {"X": "float32", "Y": "float32"}, "float32")
    assert typed(program, {"X": "float64", "Y": "float64"}, "float64").dtype == "float64"


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


# rules, each with a program that breaks it ----------------------------------------------


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
    )
    inner = (
        Iota(at, "M"),
        Let(before, Pointwise(call("lt", Arg(0), 5.0), ("M",)), (at,)),
        Init(total, "+"),
        loop,
        Let(product, Pointwise(call("mul", Arg(0), Arg(1)), ("M", "N")), (total, before)),
        Store(Y, product),
    )
    body = (For("M", True, (For("N", True, inner),)),)
    program = TileProgram((X.buffer, W.buffer), (Y.buffer,), (), (Nest(body),))
    return typed(program, ARRAYS, "float16")


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


# casts ------------------------------------------------------------------------------------


def two_dots(before, between=(), last=None):
    """Two dots of one tile with W; what stands before and between them."""
    a, w = Tile("t1", ("M", "D")), Tile("t2", ("N", "D"))
    c, d = Tile("t8", ("M", "N")), Tile("t9", ("M", "N"))
    e = Tile("t10", ("M", "N"))
    body = (
        *before,
        Load(w, W),
        Let(c, Functional("dot"), (a, w)),
        *between,
        Let(d, Functional("dot"), (a, w)),
        Let(e, Pointwise(call("add", Arg(0), Arg(1)), ("M", "N")), (c, d)),
        Store(Y, e),
    )
    return TileProgram((X.buffer, W.buffer), (Y.buffer,), (), (Nest(body),))


def test_two_dots_share_a_cast():
    x, a = Tile("t3", ("M", "D")), Tile("t1", ("M", "D"))
    made = (Load(x, X), Let(a, Pointwise(call("exp", Arg(0)), ("M", "D")), (x,)))
    program = typed(two_dots(made), ARRAYS, "float16")

    assert len(lets(program, Cast)) == 1


def test_what_an_accumulator_holds_is_cast_where_it_is_read():
    x, a = Tile("t3", ("M", "D")), Tile("t1", ("M", "D"))
    made = (Load(x, X), Init(a, "+"), Fold(a, "+", x))
    program = typed(two_dots(made, (Fold(a, "+", x),)), ARRAYS, "float16")
    casts = lets(program, Cast)

    assert len(casts) == 2
    assert len({cast.target for cast in casts}) == 2
    order = [s for s in program.nests[0].body if s in casts or isinstance(s, Fold)]
    assert [type(stmt) for stmt in order] == [Fold, Let, Fold, Let]


def test_a_cast_that_changes_nothing_goes_but_the_user_s_stays():
    x, a = Tile("t3", ("M", "D")), Tile("t1", ("M", "D"))
    made = (Load(x, X), Let(a, Pointwise(Arg(0), ("M", "D")), (x,)))
    wide = typed(two_dots(made), {**ARRAYS, "X": "float32"}, "float16")
    narrow = retyped(with_dtypes(wide, {"X": "float16"}))
    said = (Load(x, X), Let(a, Cast("float16"), (x,)))

    assert len(lets(wide, Cast)) == 1
    assert lets(narrow, Cast) == []
    verify_tiles(narrow)
    assert len(lets(typed(two_dots(said), ARRAYS, "float16"), Cast)) == 1


# workspaces -------------------------------------------------------------------------------


def by(*kinds):
    """A program whose workspace is read in these ways."""

    def readers(held):
        found = []
        for at, kind in enumerate(kinds):
            found += kind(held, at)
        return found

    x, e, held = Tile("t1", ("M", "N")), Tile("t2", ("M", "N")), Tile("t3", ("M", "N"))
    given = replace(X.buffer, axes=(M, N))
    first = (
        Load(x, View(given, ("M", "N"))),
        Let(e, Pointwise(call("exp", Arg(0)), ("M", "N")), (x,)),
        Store(P, e),
    )
    second = (Load(held, P), *readers(held))
    program = TileProgram((given, W.buffer), (Y.buffer,), (P.buffer,), (Nest(first), Nest(second)))
    return typed(program, ARRAYS, "float16")


def dotted(held, at):
    w, made = Tile(f"w{at}", ("L", "N")), Tile(f"d{at}", ("M", "L"))
    view = replace(W, dims=("L", "N"))
    return Load(w, view), Let(made, Functional("dot"), (held, w)), stored(made, "L")


def summed(held, at):
    made = Tile(f"s{at}", ("M", "N"))
    op = Pointwise(call("mul", Arg(0), 2.0), ("M", "N"))
    return Let(made, op, (held,)), stored(made, "N")


def rounded_twice(held, at):
    other = Tile(f"b{at}", ("M", "N"))
    return Let(other, Cast("bfloat16"), (held,)), *dotted(other, at)


def stored(tile, dim):
    return Store(replace(Y, dims=("M", dim)), tile)


def test_what_only_dots_read_is_kept_narrow():
    program = by(dotted)
    narrow = narrow_workspaces(program)

    assert [b.dtype for b in program.workspaces] == ["float32"]
    assert len(lets(program, Cast)) == 1
    assert [b.dtype for b in narrow.workspaces] == ["float16"]
    assert lets(narrow, Cast) == []
    verify_tiles(narrow)
    assert narrow_workspaces(narrow) == narrow
    assert not_narrow(narrow) == {"I1": "I1 is float16, not wider than float16"}


@pytest.mark.parametrize(
    ("kinds", "reason"),
    [
        ((dotted, summed), "I1 is read as float32"),
        ((summed,), "I1 is read as float32"),
        ((rounded_twice,), "I1 is read as float32"),
        ((), "nothing reads I1"),
    ],
)
def test_what_else_is_read_stays_wide(kinds, reason):
    program = by(*kinds)

    assert not_narrow(program) == {"I1": reason}
    assert narrow_workspaces(program) == program


def test_workspaces_hold_what_is_stored():
    x, t = Tile("t1", ("M",)), Tile("t2", ("M",))
    space = View(Buffer("I1", (M,), WORKSPACE), ("M",))
    held = Tile("t3", ("M",))
    for op, dtype in (
        (Pointwise(call("lt", Arg(0), 1.0), ("M",)), "bool"),
        (Pointwise(call("exp", Arg(0)), ("M",)), "float32"),
        (Cast("bfloat16"), "bfloat16"),
    ):
        nests = (
            Nest((Load(x, X1), Let(t, op, (x,)), Store(space, t))),
            Nest((Load(held, space), Store(Y1, held))),
        )
        program = TileProgram((X1.buffer,), (Y1.buffer,), (space.buffer,), nests)
        made = typed(program, ARRAYS, "float16")
        assert [b.dtype for b in made.workspaces] == [dtype]
        assert made.nests[1].body[0].target.dtype == dtype

    at = Tile("t4", ("M",))
    both = (Load(x, X1), Iota(at, "M"), Store(space, x), Store(space, at))
    nests = (Nest(both), Nest((Load(held, space), Store(Y1, held))))
    program = TileProgram((X1.buffer,), (Y1.buffer,), (space.buffer,), nests)
    assert [b.dtype for b in typed(program, ARRAYS, "float16").workspaces] == ["float32"]
