"""Padded lanes: what is known of them, and the guards that follow."""

import math

import numpy as np
import pytest

from blockbuster.emit.closing.guard import guard
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.padding import DATA, UNKNOWN, applied
from blockbuster.emit.tile.program import Guard, statements
from blockbuster.ir.parse import parse
from tests.emit.cases import (
    FOLDER,
    blocked_dims,
    graph_of,
    inputs_for,
    padding,
    ragged_blocks,
    sizes_of,
)
from tests.emit.numpy_runs import run_numpy


def guards(program):
    return [
        (stmt.value.hint, stmt.dim, stmt.fill)
        for nest in program.nests
        for stmt in statements(nest.body)
        if isinstance(stmt, Guard)
    ]


def guarded(name):
    tiles = lower_to_tiles(graph_of(name))
    return guard(tiles, blocked_dims(tiles))


def test_exp_of_padding_is_one_and_one_guard_serves_both_uses():
    program = guarded("attention final")

    assert guards(program) == [("e", "N", 0.0)]
    assert 1.0 in [lane for lanes in padding(program, ("N",)).values() for lane in lanes.values()]


def test_the_maximum_ignores_minus_infinity_which_exp_makes_zero():
    assert guards(guarded("attention safe")) == [
        ("s", "N", -math.inf),
        ("e", "N", 0.0),
    ]


@pytest.mark.parametrize("name", ["layer norm final", "swiglu final"])
def test_zeros_from_loads_need_no_guard(name):
    assert guards(guarded(name)) == []


def test_dims_that_fill_their_blocks_need_no_guard():
    assert guards(guard(lower_to_tiles(graph_of("attention final")), ("M", "D", "L"))) == []


@pytest.mark.parametrize("name", ["attention final", "attention safe"])
def test_without_guards_padding_would_show(name):
    graph = graph_of(name)
    sizes = sizes_of(graph)
    inputs, blocks = inputs_for(graph, sizes), {**ragged_blocks(graph, sizes), "N": 4}
    tiles = lower_to_tiles(graph)
    (right,) = run_numpy(tiles, inputs, sizes, blocks, folder=FOLDER).values()
    (wrong,) = run_numpy(tiles, inputs, sizes, blocks, padded=True, folder=FOLDER).values()
    fixed = guard(tiles, ("N",))
    (again,) = run_numpy(fixed, inputs, sizes, blocks, padded=True, folder=FOLDER).values()

    assert sizes["N"] % 4
    assert not np.allclose(wrong, right)
    np.testing.assert_allclose(again, right, rtol=1e-12)


def test_a_mask_that_hides_padding_needs_no_guard():
    graph = parse("""
graph(X: M,N[M,N]) {
  Y = map M (x in !X) {
    y = map N (b in !x) { c = where(b > 0, b, 0)  t = row_sum(c)  yield +t }
    yield y
  }
  return Y
}
""")
    assert guards(guard(lower_to_tiles(graph), ("N",))) == []


@pytest.mark.parametrize(
    ("fn", "args", "lane"),
    [
        ("exp", [0.0], 1.0),
        ("exp", [-math.inf], 0.0),
        ("mul", [0.0, DATA], 0.0),
        ("mul", [0.0, UNKNOWN], UNKNOWN),  # it may be infinite
        ("div", [0.0, DATA], UNKNOWN),  # 0 / 0
        ("reciprocal", [0.0], UNKNOWN),
        ("sub0", [-math.inf, DATA], -math.inf),
        ("add", [DATA, 1.0], DATA),
        ("where", [UNKNOWN, 2.0, 2.0], 2.0),
        ("where", [1.0, UNKNOWN, 3.0], UNKNOWN),
        ("where", [0.0, UNKNOWN, 3.0], 3.0),
        ("log", [0.0], UNKNOWN),
    ],
)
def test_lanes(fn, args, lane):
    assert applied(fn, args) == lane
