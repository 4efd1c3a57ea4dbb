"""Whose memory a tile of NumPy text takes: numbers stay, inputs stay, and nothing is read late."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.print.numpy.text import numpy_text
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops
from blockbuster.emit.tile.array_dtypes import typed_for_cpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.reuse import reuse_in
from blockbuster.emit.tile.trips import dims_of
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.parse import parse
from tests.emit.cases import FOLDER
from tests.emit.numpy_runs import run_numpy
from tests.random_programs.strategies import block_graphs, inputs_for, sizes_and_blocks


@given(data=st.data())
def test_numbers_and_inputs_stay(data):
    graph = data.draw(block_graphs(), label="program")
    setting = data.draw(sizes_and_blocks(graph), label="sizes")
    inputs = data.draw(inputs_for(graph, setting), label="inputs")
    given_first = {name: array.copy() for name, array in inputs.items()}
    sizes, blocks = setting.sizes, setting.block_sizes
    program = typed_for_cpu(lower_to_tiles(graph), "float64")
    results = run_numpy(program, inputs, sizes, blocks, seed=0, folder=FOLDER)

    for name, array in evaluate(graph, given_first, sizes=sizes, block_sizes=blocks).items():
        np.testing.assert_array_equal(results[name], array, err_msg=name)
    for name, array in given_first.items():
        np.testing.assert_array_equal(inputs[name], array, err_msg=name)


def whole(body):
    """A program of one nest over rows, typed; ``body`` computes y of the row x."""
    text = (
        f"graph(X: M,N[M,N]) {{ Y = map M (r in !X) {{ R = map N (x in !r) {{ {body} }} yield R }}"
    )
    program = lower_to_tiles(parse(f"{text} return Y }}"))
    return typed_for_cpu(drop_unit_loops(program, dims_of(program)), "float32")


def lines(program):
    """What the text computes, line by line."""
    text = numpy_text(program)
    body = [line.partition("  #")[0].strip() for line in text.splitlines()]
    return [line for line in body if line.startswith(("t", "Y["))]


def test_a_tile_takes_the_memory_of_its_last_operand_and_is_made_where_it_is_stored():
    found = lines(whole("a = x * 3  b = a + x  c = b * 2  yield c"))

    assert found[0].endswith("= X")
    assert found[1].endswith("= t1 * 3")  # an input is never written
    assert "np.add(" in found[2]
    assert "out=t2)" in found[2]
    assert "out=out)" in found[3]
    assert len(found) == 4  # no store is left


def test_a_step_on_the_way_is_in_place_unless_another_operand_is_read_after_it():
    graph = whole("a = x * 3  b = sqrt(abs(a)) + x  yield b")
    twice = whole("a = x * 3  b = sqrt(abs(a)) + a  yield b")

    assert "np.sqrt(np.abs(t2, out=t2), out=t2)" in lines(graph)[2]
    assert "np.sqrt(np.abs(t2))" in lines(twice)[2]


def test_what_is_read_again_keeps_its_memory():
    program = whole("a = x * 3  b = a + x  c = b * a  yield c")
    reuse = reuse_in(program.nests[0])

    assert [(made.name, free.name) for made, free in reuse.taken.items()] == [("t4", "t3")]


def test_a_program_without_dtypes_reuses_nothing():
    graph = parse(
        "graph(X: M[M]) { Y = map M (x in !X) { a = x * 2  b = a + 1  yield b } return Y }"
    )
    found = reuse_in(lower_to_tiles(graph).nests[0])

    assert not found.taken
    assert not found.stored


def shifted(x):
    h = x * 2
    return bb.exp(h - bb.max(h, axis=-1, keepdims=True)), h


def of_a_view(x):
    h = x * 2
    return bb.transpose(h, (1, 0)) @ h + h[:, :1] * 3


@pytest.mark.parametrize("function", [shifted, of_a_view])
def test_results_do_not_share_memory_with_what_is_overwritten(function):
    x = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    before = x.copy()
    found, wanted = bb.jit(function)(x), function(x.astype(np.float64))
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for one, right in pairs:
        np.testing.assert_allclose(one, right, rtol=1e-5)
    np.testing.assert_array_equal(x, before)
