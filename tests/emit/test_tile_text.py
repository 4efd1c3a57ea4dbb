"""The text form of tile programs: it reads back, says everything, and points at mistakes."""

import dataclasses
import inspect
import math
import random
from dataclasses import replace
from functools import cache
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import BY_NAME, MOVES
from blockbuster.emit.schedule.steps import cost_of
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile import program as tile_programs
from blockbuster.emit.tile import waits
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.forms import FORMS, SHORT, UNWRITTEN, form_of, reserved
from blockbuster.emit.tile.group import Group
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.program import (
    INPUT,
    LAST,
    OUTPUT,
    WORKSPACE,
    Await,
    Block,
    BlockOf,
    Buffer,
    BufferAxis,
    Chunks,
    Fold,
    For,
    Guard,
    Init,
    Iota,
    Issue,
    Let,
    Load,
    Member,
    Nest,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.show import WIDTH, show_tiles
from blockbuster.emit.tile.trips import sized
from blockbuster.emit.tile.waits import Release, Wait
from blockbuster.ir.expr import Arg, Expr, call
from blockbuster.ir.fitting import fitted
from blockbuster.ir.lengths import Rule, share_of, size, whole
from blockbuster.ir.ops import Cast, Elementwise, Functional, Op, Pointwise, Relabel, Transpose
from blockbuster.ir.types import size_class
from blockbuster.ir.views import Run, Strided
from blockbuster.rules.safety import RESCALED
from tests.emit.parse_tiles import parse_tiles
from tests.emit.random_spans import with_spans
from tests.emit.tile_forms import fields_of
from tests.frontend.programs import OPAQUE, PROGRAMS
from tests.parameters import one_in
from tests.random_programs.strategies import block_graphs

KINDS = [
    kind
    for module in (tile_programs, waits)
    for _, kind in inspect.getmembers(module, dataclasses.is_dataclass)
    if kind.__module__ == module.__name__
]


def parts_of(value):
    """Every dataclass value in ``value``, itself included."""
    if isinstance(value, tuple):
        for item in value:
            yield from parts_of(item)
    elif dataclasses.is_dataclass(value):
        yield value
        for field in dataclasses.fields(value):
            yield from parts_of(getattr(value, field.name))


def hints_of(program):
    """The words of tiles and views, which are no part of what a program is."""
    return [part.hint for part in parts_of(program) if isinstance(part, Tile)]


def assert_reads_back(program):
    text = show_tiles(program)
    read = parse_tiles(text)

    assert read == program, text
    assert show_tiles(read) == text
    return text


# one program with every field of every class at a value that is not the usual one ---------

M, N = "M", "N'"
IN = Buffer("X", (BufferAxis("M"), BufferAxis(None), BufferAxis("N")), INPUT, dtype="bfloat16")
MASK = Buffer("odd name", (BufferAxis("M"), BufferAxis("N")), "shared", "bool")
OUT = Buffer("out", (BufferAxis("M"), BufferAxis("N")), OUTPUT, dtype="float32")
KEPT = Buffer(
    "I1", (BufferAxis("M", per_block=True), BufferAxis("C")), WORKSPACE, dtype="int32", pitch=16
)
HALF = Strided("N", (Run(N, size("N") * share_of(2), whole(2)),), whole(1), size("N"))
A, B = Tile("t1", (M, N), "x", dtype="bfloat16"), Tile("t2", (M, N), "a b", (N,), "float32")
C = Tile("t3", (M,), dtype="float64")
D = Tile("sum_4", (M, N))
E = Tile("load", (), "π")
F, G = Tile("t14", (), dtype="int"), Tile("to", (), dtype="int")
ALL = TileProgram(
    inputs=(IN, MASK),
    outputs=(OUT,),
    workspaces=(KEPT,),
    constants=(IN.name,),
    nests=(
        Nest(
            grid=(M, "C"),
            blocks=(Block(M, 64, ragged=False), Block(N, 8, whole=True)),
            warps=4,
            accurate=("div", "exp"),
            last_first=("C", M),
            overlaps=True,
            group=Group(M, 8),
            programs=132,
            stages=3,
            body=(
                Release(),
                Init(B, "max"),
                Init(C, "+"),
                For(
                    N,
                    parallel=False,
                    chunk="C",
                    settled=(C, B),
                    body=(
                        Issue("X ring", A, View(IN, (M, None, HALF), "half"), 2, 3, described=True),
                        Await(A, "X ring", columns=True),
                        Await(Tile("t13", (M, N)), "other ring"),
                        Iota(E, M),
                        Guard(D, A, N, -math.inf),
                        Let(Tile("t5", (N, M)), Transpose((), (N, M)), (D,)),
                        Fold(
                            B,
                            "max",
                            A,
                            (Member(C, "+", E, RESCALED), Member(B, "min", D, Arg(4), (0, 1))),
                            ahead=True,
                        ),
                        Fold(D, "+", D, onto=A, apart="two_steps"),
                    ),
                ),
                For(N, True, (Store(View(KEPT, (M, "C"), "kept"), D),)),
                Iota(F, M, at=LAST),
                BlockOf(G, N, F),
                For("C", False, (For(N, False, (), down=True, within=(N, M)),), flat=True),
                *(For(N, False, (), span=span) for span in ((None, G), (F, None))),
                For(N, False, (Next(N, G),), span=(F, G), full=True),
            ),
        ),
        Nest(
            (
                Wait(),
                Load(C, View(KEPT, (M, "C")), columns=True),
                Load(Tile("t12", (M,)), View(KEPT, (M, "C"), paired=True)),
                Let(Tile("t6", (M,)), Cast("float16"), (C,)),
                Let(Tile("t7", ("M'",)), Relabel("M", "M'"), (C,)),
                Let(Tile("t8", (M,)), Functional("add"), (C, C), into=C, apart="from_zero"),
                Let(Tile("t13", (M,)), Functional("dot"), (C, C), split=True, beside=True),
                Let(Tile("t9", (M,)), Elementwise(call("sub", Arg(1), Arg(0))), (C, C)),
                Let(Tile("t10", (M,)), Pointwise(call("sub", Arg(1), Arg(0)), (M,)), (C, C)),
                Let(Tile("t11", (M,)), Elementwise(call("exp", Arg(0))), (C,)),
            )
        ),
    ),
    units=("C",),
    whole=(N, "Cs"),
    rules=(Rule("C", whole(4)), Rule("N", size("M") + whole(1), exact=False)),
    chunks=(Chunks(N, 4, "C", "Cs"),),
    dtype="bfloat16",
)


def test_everything_that_a_program_holds_is_written():
    assert_reads_back(ALL)


def test_words_of_users_are_read_back():
    read = parse_tiles(show_tiles(ALL))
    assert hints_of(read) == hints_of(ALL)
    assert [p.hint for p in parts_of(read) if isinstance(p, View)] == ["half", "kept", "", ""]


def test_every_field_of_every_class_is_in_its_form():
    for kind in KINDS:
        fields = {field.name for field in dataclasses.fields(kind)} - {*UNWRITTEN}
        assert fields == {*fields_of(kind)}, kind.__name__
    assert {*KINDS} <= {*FORMS}


def test_every_field_of_the_example_is_not_as_usual_somewhere():
    """So that the test that everything is written cannot pass on what is left out."""
    for kind in KINDS:
        made = [part for part in parts_of(ALL) if type(part) is kind]
        for field in dataclasses.fields(kind):
            held = [getattr(part, field.name) for part in made]
            assert held
            if field.default is not dataclasses.MISSING and field.name not in UNWRITTEN:
                assert any(value != field.default for value in held), (kind, field.name)
            elif isinstance(held[0], bool):
                assert {*held} == {True, False}, (kind, field.name)


def test_a_form_says_each_field_once():
    for kind in FORMS:
        assert len([*fields_of(kind)]) == len({*fields_of(kind)}), kind.__name__
        assert form_of(kind)


# random programs --------------------------------------------------------------------------


FUSED = ("attention", "causal", "layer norm matmul", "rms norm weight", "sum all", "rope")


@cache
def fused(name):
    function, dims = PROGRAMS[name]
    return bb.safe(bb.fuse(bb.lower(bb.trace(function, **dims))).final)


graphs = st.one_of(block_graphs(), st.sampled_from(FUSED).map(fused))


def moved(graph, draw):
    """What random moves at random places make of a program: the draft, and what is printed.

    Half of them end with kernels that overlap, if there are several: few would by chance. A draft
    in which a dim is not cut has nothing to print.
    """
    program = typed_for_gpu(graph, lower_to_tiles(graph), given_by("float16"))
    sizes = fitted(dict.fromkeys(map(size_class, sized(program)), 96), program.rules)
    scheduled = unscheduled(program, sizes, target_of("sm_90"))
    more = draw(st.lists(st.sampled_from(MOVES), max_size=8), label="moves")
    last = draw(st.sampled_from([(), (BY_NAME["overlap"],)]), label="last")
    for move in (BY_NAME["block"], *more, *last):
        if sites := list(move.sites(scheduled)):
            site = draw(st.sampled_from(sites), label=f"place of {move.name}")
            if args := list(islice(move.arguments(scheduled, site), 4)):
                scheduled = move.apply(scheduled, site, **draw(st.sampled_from(args)))
    scheduled = with_spans(scheduled, random.Random(draw(st.integers(0, 99), label="spans")), 0.3)
    return (scheduled.draft, scheduled.program) if cost_of(scheduled) else (scheduled.draft,)


def decorated(program, seed):
    """``program`` with blocks, warps and dtypes that fit nothing: the text says what is there."""
    chosen = random.Random(seed)
    dtypes = ("", "bool", "int", *SHORT)

    def changed(value):
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        if not dataclasses.is_dataclass(value) or isinstance(value, Rule | Strided | Op | Expr):
            return value
        fields = {f.name: changed(getattr(value, f.name)) for f in dataclasses.fields(value)}
        if isinstance(value, Tile | Buffer):
            fields["dtype"] = random.Random(f"{seed} {value.name}").choice(dtypes)
        if isinstance(value, Nest):
            dims = {s.dim for s in statements(value.body) if isinstance(s, For)} | {*value.grid}
            fields["blocks"] = tuple(
                Block(dim, 1 << chosen.randrange(9), *chosen.choices((True, False), k=2))
                for dim in sorted(dims)
            )
            fields["warps"] = 1 << chosen.randrange(5)
        return type(value)(**fields)

    return changed(program)


def issued(program):
    """``program`` with each load of an innermost serial loop on its way one iteration before."""

    def changed(body, inside):
        for stmt in body:
            if isinstance(stmt, For):
                yield replace(stmt, body=tuple(changed(stmt.body, not stmt.parallel)))
            elif isinstance(stmt, Load) and inside:
                yield Issue(stmt.target.name, stmt.target, stmt.view, 1, 2)
                yield Await(stmt.target, stmt.target.name)
            else:
                yield stmt

    nests = (replace(nest, body=tuple(changed(nest.body, False))) for nest in program.nests)
    return replace(program, nests=tuple(nests))


@settings(max_examples=settings().max_examples // 8)
@given(data=st.data())
def test_random_programs_read_back(data):
    graph = data.draw(graphs, label="program")
    for program in moved(graph, data.draw):
        assert_reads_back(program)
        assert_reads_back(issued(decorated(program, data.draw(st.integers(0, 99)))))


def test_random_programs_hold_what_there_is_to_hold():
    """So that the test above reads back more than loads and stores."""
    held = set()

    @settings(max_examples=400, derandomize=True, database=None)
    @given(data=st.data())
    def note(data):
        for program in moved(data.draw(graphs), data.draw):
            held.update(type(part).__name__ for part in parts_of(program))
            held.update("per lane" for part in parts_of(program) if getattr(part, "per_lane", ()))

    note()

    assert {kind.__name__ for kind in KINDS} - held == set()
    assert "per lane" in held


@pytest.mark.parametrize("name", one_in(4, [name for name in PROGRAMS if name not in OPAQUE]))
def test_programs_read_back(name):
    assert_reads_back(lower_to_tiles(fused(name)))


# the picture --------------------------------------------------------------------------------


def attention(q, k, v):
    return bb.softmax(q @ k.T / 8.0) @ v


@pytest.mark.parametrize("size", [4096, 1000])  # longer loops whose last block is short are parted
def test_attention_fits_on_one_screen(size):
    program = bb.fuse(bb.lower(bb.trace(attention, q="M D", k="N D", v="N L"))).final
    kernel = bb.emit(program, {"M": size, "N": size, "D": 64, "L": 64}, chunks={})
    text = str(kernel.tile_program)
    lines = text.splitlines()

    assert parse_tiles(text) == kernel.tile_program
    assert len(lines) <= 44
    assert max(map(len, lines)) <= 100
    assert any(isinstance(s, Issue) for n in kernel.tile_program.nests for s in statements(n.body))
    assert ("?" in text) == (size == 1000)


def test_long_lines_are_continued():
    buffers = tuple(Buffer(f"input{number}", (BufferAxis("M"),), INPUT) for number in range(30))
    text = assert_reads_back(replace(ALL, inputs=(IN, *buffers), nests=(), outputs=()))

    assert max(map(len, text.splitlines())) <= WIDTH


# ill-formed programs have a text, too --------------------------------------------------------


def test_a_tile_that_nothing_makes_is_declared():
    broken = replace(ALL, nests=(Nest((Store(View(OUT, (M, N)), D),)),))

    assert '    tile "sum_4": [M, N\']\n    store out' in assert_reads_back(broken)


def test_an_array_that_is_not_the_programs_is_declared():
    broken = replace(ALL, inputs=(), nests=(Nest((Load(A, View(IN, (M, None, N))),)),))

    assert "array X: bf16[M, 1, N] in input\n" in assert_reads_back(broken)


def test_two_tiles_of_one_name_are_told_apart():
    other = replace(C, axes=(N,))
    view = View(OUT, (M, N))
    body = (Init(C, "+"), Init(other, "max"), Store(view, C), Store(view, other), Init(C, "+"))

    assert_reads_back(replace(ALL, nests=(Nest(body),)))


@pytest.mark.parametrize("name", ["t1", "acc", "x_3", "for", "exp", "t01", "t_1", "in", "a b", "2"])
@pytest.mark.parametrize("hint", ["", "t", "x_3", "load", "a b", 'say "x"', "größe", "M'"])
def test_any_name_is_read_back(name, hint):
    tile = Tile(name, (), hint)
    doubled = Let(Tile("t2", ()), Elementwise(call("mul", Arg(0), 2)), (tile,))
    program = replace(ALL, nests=(Nest((Init(tile, "+"), doubled)),))
    assert_reads_back(program)

    assert hints_of(parse_tiles(show_tiles(program))) == hints_of(program)


def test_words_of_the_form_are_quoted_as_names_of_tiles():
    for word in sorted(reserved()):
        assert_reads_back(replace(ALL, nests=(Nest((Init(Tile(word, ()), "+"),)),)))
