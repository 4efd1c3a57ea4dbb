"""What is not loaded or computed again, and what is."""

from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.closing.hoist import hoist
from blockbuster.emit.closing.merge_repeats import merge_repeats
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.tile.listing import listing
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import For, Load, Store, Tile, View, statements
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.parse import parse
from blockbuster.selection.choice import Fused
from blockbuster.selection.decisions.default_schedule import default_schedule
from blockbuster.selection.price import priced
from tests.emit.cases import FOLDER, fused_of, inputs_for, ragged_blocks, sizes_of
from tests.emit.counting import tile_traffic
from tests.emit.numpy_runs import run_numpy

TWICE = """
graph(X: M,N[M,N]) {
  Y = map M (x in !X) {
    s = map N (b in !x) { e = exp(b)  r = row_sum(e)  yield +r }
    y = map N (b in !x, s2 = s) { e = exp(b)  z = row_scale(e, s2)  yield z }
    yield y
  }
  return Y
}
"""


def whole(text, *dims):
    return hoist(drop_unit_loops(lower_to_tiles(parse(text)), dims))


def test_one_block_is_read_once():
    assert listing(merge_repeats(whole(TWICE, "N"))) == (
        "forall m in range(M):\n"
        " t1 = load(X[m,:])\n"
        " t2 = exp(t1)\n"
        " t3 = row_sum(t2)\n"
        " t4 = row_scale(t2,t3)\n"
        " store(t4,O[m,:])\n"
    )


def test_the_numbers_stay():
    x = np.random.default_rng(0).normal(size=(5, 4))
    program = merge_repeats(whole(TWICE, "N"))
    verify_tiles(program)
    (y,) = run_numpy(program, {"X": x}, None, {"M": 2, "N": 4}, folder=FOLDER).values()

    np.testing.assert_allclose(y, np.exp(x) * np.exp(x).sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("name", "dim"), [("softmax 0", "M"), ("rms norm weight", "K"), ("steps of steps", "B")]
)
def test_array_programs_keep_their_numbers(name, dim):
    graph = fused_of(name)
    sizes = sizes_of(graph)
    inputs, blocks = inputs_for(graph, sizes), {**ragged_blocks(graph, sizes), dim: sizes[dim]}
    repeating = hoist(drop_unit_loops(lower_to_tiles(graph), (dim,)))
    program = merge_repeats(repeating)
    wanted = evaluate(graph, inputs, sizes=sizes, block_sizes=blocks)

    assert program != repeating
    verify_tiles(program)
    for output, array in run_numpy(program, inputs, sizes, blocks, folder=FOLDER).items():
        np.testing.assert_allclose(array, wanted[output], rtol=1e-9, atol=1e-12)


def test_nothing_is_kept_over_a_loop():
    program = whole(TWICE)

    assert merge_repeats(program) == program


def test_a_repeat_behind_a_loop_is_made_again():
    program = whole(TWICE, "N")
    (nest,) = program.nests
    (rows,) = nest.body
    first, *rest = rows.body
    loop = For("L", False, (first,))
    split = replace(nest, body=(replace(rows, body=(first, loop, *rest)),))
    made = merge_repeats(replace(program, nests=(split,)))

    loads = [s for s in statements(made.nests[0].body) if isinstance(s, Load)]
    assert len(loads) == 3


def test_what_the_nest_stores_is_loaded_again():
    program = whole(TWICE, "N")
    (nest,) = program.nests
    (rows,) = nest.body
    (buffer,) = program.inputs
    value = next(s.target for s in rows.body if isinstance(s, Load))
    store = Store(View(buffer, ("M", "N")), value)
    split = replace(nest, body=(replace(rows, body=(*rows.body, store)),))
    made = merge_repeats(replace(program, nests=(split,)))

    assert sum(isinstance(s, Load) for s in statements(made.nests[0].body)) == 2


def test_a_transposed_read_is_another_tile():
    program = whole(TWICE, "N")
    (nest,) = program.nests
    (rows,) = nest.body
    load = next(s for s in rows.body if isinstance(s, Load))
    turned = replace(load, target=Tile("t90", ("N", "M")))
    body = replace(nest, body=(replace(rows, body=(*rows.body, turned)),))

    assert turned in statements(merge_repeats(replace(program, nests=(body,))).nests[0].body)


def softmax(x):
    return bb.softmax(x, axis=-1)


def layer_norm(x):
    d = x - bb.mean(x, axis=-1, keepdims=True)
    return d * bb.rsqrt(bb.mean(d * d, axis=-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("function", [softmax, layer_norm])
def test_rows_that_fit_are_read_once(function):
    fused = Fused(bb.lower(bb.trace(function, x="M N")))
    loads = []
    for columns in (1000, 5000, 40_000):
        sizes = {"M": 1000, "N": columns}
        best = fused.consider(sizes, "float32", "sm_90").best
        moved = tile_traffic(best.program, sizes, best.blocks)[best.program.inputs[0].name]
        loads.append(moved.elements_loaded)

    assert loads[:2] == [1_000_000, 5_000_000]
    assert loads[2] >= 2 * 40_000_000


def columns_of(rows):
    sizes = {"M": rows, "N": 1000}
    fused = Fused(bb.lower(bb.trace(lambda x: bb.softmax(x, axis=0), x="M N")))
    return fused.consider(sizes, "float32", "sm_90").best, sizes


def test_columns_are_not_read_in_one_piece():
    """A tile of whole columns would read a few elements of each row of memory."""
    best, _ = columns_of(16384)

    assert best.blocks["M"] < 16384


def test_short_columns_are_read_once_but_several_at_a_time():
    """The default schedule cuts them; in one piece, several at a time, they cost less."""
    best, sizes = columns_of(1024)
    before = unscheduled(best.scheduled.start, sizes, best.scheduled.target)
    usual = default_schedule(best.scheduled.start, sizes, device=best.scheduled.target)
    alone = replayed(before, "block M 1024 whole, N 1; warps 4")
    moved = tile_traffic(best.program, sizes, best.blocks)[best.program.inputs[0].name]

    assert usual.blocks["M"] < 1024 == best.blocks["M"]
    assert best.blocks["N"] > 1
    assert moved.elements_loaded == 1024 * 1000
    others = [priced(one).microseconds for one in (usual, alone)]
    assert best.cost.microseconds < min(others)
