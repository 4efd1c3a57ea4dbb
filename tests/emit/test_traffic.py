"""Tile traffic in closed form equals what a run counts, ragged blocks included."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster import layer_norm, lower, trace
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.interp.binding import list_only
from blockbuster.ir.lengths import completed
from blockbuster.ir.parse import parse
from blockbuster.selection.choice import Fused
from tests.emit.cases import (
    PORTS,
    TEXTS,
    graph_of,
    pass_chains,
    ragged_blocks,
    sizes_of,
)
from tests.emit.counting import Moved, count_run, tile_traffic
from tests.parameters import rest_slow

GRAPHS = {name: graph_of(name) for name in (*TEXTS, "causal batched", "grouped query", "by heads")}
GRAPHS["ports"] = parse(PORTS)
LARGE = ("causal batched", "grouped query")


@cache
def chain(name):
    """The program after every pass: made when a test asks, not when tests are collected."""
    return [program for _, program, _ in pass_chains(GRAPHS[name])]


@settings(max_examples=settings().max_examples // 4)
@given(data=st.data())
@pytest.mark.parametrize("name", rest_slow(GRAPHS, [name for name in GRAPHS if name not in LARGE]))
def test_equals_the_count(name, data):
    graph = GRAPHS[name]
    program = data.draw(st.sampled_from(chain(name)), label="program")
    small = st.integers(0, 5)  # every ragged end, and few enough tiles to move one by one
    sizes = {d: data.draw(small, label=f"size of {d}") for d in sizes_of(graph)}
    single = list_only(graph)
    blocks = {
        d: data.draw(st.integers(1, 4), label=f"block of {d}") for d in sizes if d not in single
    }
    known = completed(sizes, program.rules)

    assert tile_traffic(program, known, blocks) == count_run(program, known, blocks).moved


def test_the_paper_s_attention_at_four_blocks_per_dim():
    program = lower_to_tiles(graph_of("attention final"))
    moved = tile_traffic(program, dict.fromkeys("MNDL", 8), dict.fromkeys("MNDL", 2))

    assert sum(m.tiles_loaded for m in moved.values()) == 576
    assert sum(m.tiles_stored for m in moved.values()) == 16


def test_one_block_per_feature_dim_is_flash_attention():
    whole = drop_unit_loops(lower_to_tiles(graph_of("attention final")), ("D", "L"))
    moved = tile_traffic(whole, dict.fromkeys("MNDL", 8), dict.fromkeys("MN", 2))

    assert moved["Q"] == Moved(elements_loaded=4 * 8 * 8, tiles_loaded=16)
    assert moved["out"] == Moved(elements_stored=64, tiles_stored=4)


def test_ragged_blocks_count_what_they_have():
    graph = GRAPHS["attention final"]
    sizes = sizes_of(graph)
    moved = tile_traffic(chain("attention final")[0], sizes, ragged_blocks(graph, sizes))

    assert moved["out"].elements_stored == sizes["M"] * sizes["L"]


def layer_norm_matmul():
    """Of two snapshots one moves half as much: in one program per row block, beside the dots."""
    return Fused(lower(trace(lambda x, w: layer_norm(x) @ w, x="M K", w="K N")))


def test_a_kernel_of_few_programs_is_not_chosen_for_its_traffic_alone():
    sizes = {"M": 2048, "K": 512, "N": 1024}
    found = layer_norm_matmul().consider(sizes, "float16", "sm_90", one_kernel=True)

    (other,) = (choice for choice in found.others if choice.snapshot == 1)
    assert found.best.snapshot == 2
    assert found.best.program.chunks == other.program.chunks == ()
    assert other.moved < found.best.moved
    assert other.price > found.best.price
