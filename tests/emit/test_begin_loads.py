"""begin-loads: what is loaded behind a reduction across lanes begins before it."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.closing import begin_loads as module
from blockbuster.emit.closing.begin_loads import REDUCTIONS, begin_loads
from blockbuster.emit.closing.bind import bind
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import (
    INPUT,
    OUTPUT,
    Block,
    Buffer,
    BufferAxis,
    For,
    Let,
    Load,
    Nest,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.ir.ops import Functional
from tests.emit.cases import graph_of


def emitted(function, sizes, **shapes):
    graph = bb.fuse(bb.lower(bb.trace(function, **shapes))).final
    return bb.emit(graph, sizes, "float16", "sm_90")


def late(body):
    """How many loads stand behind a reduction, with no loop between them."""
    found, met = 0, False
    for stmt in body:
        met = not isinstance(stmt, For) and (
            met or (isinstance(stmt, Let) and stmt.op in REDUCTIONS)
        )
        found += met and isinstance(stmt, Load)
    return found


def norm(x, g, b):
    return bb.layer_norm(x, g, b)


def gated(x, g):
    return bb.softmax(x, axis=-1) * g


def divergence(x, y):
    return bb.sum(bb.softmax(x, axis=-1) * (bb.log_softmax(x, axis=-1) - y), axis=-1)


PROVED = (
    (norm, dict(x="M N", g="N", b="N"), "block M 2, N 64 whole\nwarps 1"),
    (gated, dict(x="M N", g="M N"), "block M 1, N 64 whole\nwarps 1"),
    (
        divergence,
        dict(x="M N", y="M N"),
        "for the program with N in one block\nblock M 2, N 64 whole\nwarps 1",
    ),
)


@pytest.mark.parametrize(("function", "shapes", "schedule"), PROVED)
def test_what_is_printed_is_proved_to_be_the_same(function, shapes, schedule):
    graph = bb.fuse(bb.lower(bb.trace(function, **shapes)))
    kernel = bb.emit(graph, dict(M=8, N=64), "float16", "sm_90", schedule=schedule)

    assert any(isinstance(stmt, Load) for stmt in statements(kernel.tile_program.nests[-1].body))
    assert kernel.derivation.prove(trials=2).equal


def test_the_weights_of_a_norm_are_on_their_way_before_its_statistics():
    kernel = emitted(norm, dict(M=32, N=1024), x="M N", g="N", b="N")
    (nest,) = kernel.tile_program.nests

    assert late(nest.body) == 0
    first = kernel.source.index("tl.sum(")
    assert all(kernel.source.index(f"tl.load({name}_ptr") < first for name in "xgb")
    assert begin_loads(kernel.tile_program) == kernel.tile_program


def test_loads_do_not_pass_loops():
    """They would be held in registers all along."""

    def scaled(x, g):
        return bb.rms_norm(x) * g

    kernel = emitted(scaled, dict(M=256, N=1 << 17), x="M N", g="N")
    loop = [s for n in kernel.tile_program.nests for s in statements(n.body) if isinstance(s, For)][
        -1
    ]

    assert any(isinstance(stmt, Load) and stmt.view.buffer.name == "g" for stmt in loop.body)


def test_beside_matrix_dots_loads_stay():
    program = lower_to_tiles(graph_of("attention safe"))
    assert begin_loads(program) == program


def test_a_program_that_would_hold_too_much_stays(monkeypatch):
    """Its registers would leave no room for another one on the processor."""

    def loads_first(columns):
        graph = bb.fuse(bb.lower(bb.trace(norm, x="M N", g="N", b="N"))).final
        text = f"block M 1, N {columns} whole\nwarps 16"
        kernel = bb.emit(graph, dict(M=256, N=columns), "float16", "sm_90", schedule=text)
        (nest,) = kernel.tile_program.nests
        return not late(nest.body)

    assert loads_first(4096)
    assert not loads_first(16384)
    monkeypatch.setattr(module, "MOST", 1 << 20)
    assert loads_first(16384)


def test_the_order_inside_loops_stays():
    """What an iteration loads, later ones load again: registers count more there."""

    def twice(x, y):
        return bb.softmax(x, axis=-1) * bb.max(y, axis=-1, keepdims=True)

    program = lower_to_tiles(bb.fuse(bb.lower(bb.trace(twice, x="M N", y="M N"))).final)
    loops = [s for n in program.nests for s in statements(n.body) if isinstance(s, For)]
    assert any(not loop.parallel for loop in loops)
    assert begin_loads(program) == program


def stored_and_loaded():
    """A nest that stores the maxima of rows of X, and loads X again behind that."""
    axes = BufferAxis("M"), BufferAxis("N")
    x, y = Buffer("X", axes, INPUT), Buffer("Y", axes, OUTPUT)
    sums = Buffer("S", axes[:1], OUTPUT)
    rows, again = Tile("t1", ("M", "N")), Tile("t3", ("M", "N"))
    first, second = Tile("t2", ("M",)), Tile("t4", ("M",))
    body = (
        Load(rows, View(x, ("M", "N"))),
        Let(first, Functional("row_max"), (rows,)),
        Store(View(sums, ("M",)), first),
        Store(View(y, ("M", "N")), rows),
        Load(again, View(y, ("M", "N"))),
        Let(second, Functional("row_sum"), (again,)),
        Store(View(sums, ("M",)), second),
    )
    nest = Nest((For("M", True, body),), blocks=(Block("M", 2), Block("N", 8, whole=True)))
    return bind(TileProgram((x,), (y, sums), (), (nest,), whole=("N",)))


def test_a_load_stays_behind_a_store_to_its_array(monkeypatch):
    program, sizes = stored_and_loaded(), dict(M=4, N=8)
    x = np.arange(32.0).reshape(4, 8)

    def sums(made):
        return run_tiles(made, {"X": x}, sizes)["S"]

    verify_tiles(program)
    assert begin_loads(program) == program
    np.testing.assert_array_equal(sums(program), x.sum(axis=-1))

    monkeypatch.setattr(module, "stored", lambda body: {})
    with pytest.raises(Hazard):
        sums(begin_loads(stored_and_loaded()))  # a pass remembers nests that it has seen
