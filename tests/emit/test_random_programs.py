"""Tile programs of random block programs: the interpreter's numbers after every pass."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.emit.tile.extents import extents_of
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.traffic import elements_moved
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.interp.evaluate import evaluate
from tests.emit.cases import FOLDER, pass_chains
from tests.emit.counting import count_run, tile_traffic
from tests.emit.numpy_runs import run_numpy
from tests.random_programs.strategies import block_graphs, inputs_for, sizes_and_blocks


@given(data=st.data())
def test_every_pass_keeps_the_numbers(data):
    graph = data.draw(block_graphs(), label="program")
    setting = data.draw(sizes_and_blocks(graph), label="sizes")
    inputs = data.draw(inputs_for(graph, setting), label="inputs")
    seed = data.draw(st.integers(0, 99), label="order")
    sizes, blocks = setting.sizes, setting.block_sizes
    wanted = evaluate(graph, inputs, sizes=sizes, block_sizes=blocks)
    for label, program, can_pad in pass_chains(graph):
        verify_tiles(program)
        for padded in (False, True) if can_pad else (False,):
            results = run_numpy(
                program, inputs, sizes, blocks, seed=seed, padded=padded, folder=FOLDER
            )
            for name, array in wanted.items():
                np.testing.assert_array_equal(results[name], array, err_msg=f"{name} {label}")


@given(data=st.data())
def test_traffic_equals_the_count(data):
    graph = data.draw(block_graphs(), label="program")
    setting = data.draw(sizes_and_blocks(graph), label="sizes")
    program, sizes, blocks = lower_to_tiles(graph), setting.sizes, setting.block_sizes
    counted = count_run(program, sizes, blocks).moved

    assert tile_traffic(program, sizes, blocks) == counted
    total = sum(moved.elements_loaded + moved.elements_stored for moved in counted.values())
    assert sum(map(elements_moved, extents_of(program, sizes, blocks))) == total
