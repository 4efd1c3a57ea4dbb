"""Dtypes of tile programs: given once, kept by every move."""

from dataclasses import replace
from string import ascii_uppercase

import numpy as np
import pytest

from blockbuster.emit.closing.guard import guard
from blockbuster.emit.closing.narrow_workspaces import narrow_workspaces, not_narrow
from blockbuster.emit.closing.wide_sums import wide_sums
from blockbuster.emit.target.targets import TARGETS
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_cpu, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.padding import UNKNOWN, LaneState
from blockbuster.emit.tile.program import (
    INPUT,
    OUTPUT,
    WORKSPACE,
    Buffer,
    BufferAxis,
    Fold,
    Guard,
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
from blockbuster.emit.tile.typed import retyped, typed, with_dtypes
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.ops import Cast, Functional, Pointwise
from blockbuster.selection.decisions.default_schedule import default_schedule
from tests.emit.cases import FOLDER, TEXTS, fused_of, graph_of, inputs_for, lets, sizes_of
from tests.emit.numpy_runs import run_numpy
from tests.frontend.programs import OPAQUE, PROGRAMS

NARROW = ("float16", "bfloat16")


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


def in_dtypes():
    """One in four programs in one of four dtypes by turns; the rest is slow, save the texts."""
    for at, name in enumerate([*TEXTS, *(name for name in PROGRAMS if name not in OPAQUE)]):
        for turn, dtype in enumerate((*NARROW, "float32", "several")):
            quick = name in TEXTS or at % 16 == 5 * turn
            yield pytest.param(name, dtype, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("name", "dtype"), [*in_dtypes()])
def test_every_program_is_typed_and_stays_so(name, dtype):
    graph = graph_of(name)
    fused = graph if name in TEXTS else fused_of(name)
    tiles = lower_to_tiles(fused)
    if dtype == "several":  # by turns
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


# arrays of the programs below


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


@pytest.mark.parametrize("others", [(), ("t1",)])
def test_workspaces_hold_no_indices(others):
    x, at, held = Tile("t1", ("M",)), Tile("t4", ("M",)), Tile("t3", ("M",))
    space = View(Buffer("I1", (M,), WORKSPACE), ("M",))
    stores = [Store(space, tile) for tile in (x, at) if tile is at or tile.name in others]
    nests = (
        Nest((Load(x, X1), Iota(at, "M"), *stores)),
        Nest((Load(held, space), Store(Y1, held))),
    )
    program = TileProgram((X1.buffer,), (Y1.buffer,), (space.buffer,), nests)

    assert [b.dtype for b in typed(program, ARRAYS, "float16").workspaces] == ["float32"]


# guards and casts ---------------------------------------------------------------------------


def weighted(*, changing=False):
    """log(X) @ W times the rows' sums of log(X); ``changing``: of an accumulator instead."""
    x, w, e = Tile("t1", ("M", "D")), Tile("t2", ("N", "D")), Tile("t3", ("M", "D"))
    made, total, out = Tile("t4", ("M", "N")), Tile("t5", ("M",)), Tile("t6", ("M", "N"))
    log = Tile("t7", ("M", "D")) if changing else e
    body = (
        Load(x, X),
        Load(w, W),
        Let(log, Pointwise(call("log", Arg(0)), ("M", "D")), (x,)),
        *((Init(e, "+"), Fold(e, "+", log)) if changing else ()),
        Let(total, Functional("row_sum"), (e,)),
        Let(made, Functional("dot"), (e, w)),
        Let(out, Pointwise(call("mul", Arg(0), Arg(1)), ("M", "N")), (made, total)),
        Store(Y, out),
    )
    return typed(
        TileProgram((X.buffer, W.buffer), (Y.buffer,), (), (Nest(body),)), ARRAYS, "float16"
    )


def test_what_a_cast_rounds_is_guarded_once_for_all_its_readers():
    guarded = guard(weighted(), ["D"])
    (made,) = (s for s in guarded.nests[0].body if isinstance(s, Guard))
    (cast,) = lets(guarded, Cast)
    row_sum, dot = lets(guarded, Functional)

    verify_tiles(guarded)
    assert made.value.dtype == made.target.dtype == "float32"
    assert row_sum.args == cast.args == (made.target,)
    assert cast.target in dot.args


def test_the_cast_of_an_accumulator_is_guarded_itself():
    """Its operand may have changed since it was cast."""
    program = weighted(changing=True)
    lanes = LaneState(["D"])
    (cast,) = lets(program, Cast)
    guarded = guard(program, ["D"])
    guards = [s for s in guarded.nests[0].body if isinstance(s, Guard)]

    verify_tiles(guarded)
    assert lanes.lane(cast.target, "D") == UNKNOWN
    assert cast.target in [made.value for made in guards]


@pytest.mark.parametrize(
    ("number", "kept"), [(0.0, True), (1.0, True), (0.375, True), (1 / 3, False), (1e5, False)]
)
def test_what_padded_lanes_hold_after_a_cast(number, kept):
    """A number that every narrow dtype holds is known; another may have been rounded."""
    lanes = LaneState(["M"])
    given, made = Tile("t1", ("M",)), Tile("t2", ("M",))
    lanes.of[given] = {"M": number}
    lanes.step(Let(made, Cast("bfloat16"), (given,)))

    assert lanes.lane(made, "M") == (number if kept else UNKNOWN)
