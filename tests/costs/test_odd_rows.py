"""Rows that begin at odd places: what a lane loads at once, and what follows from it."""

import pytest

import blockbuster as bb
from blockbuster.costs.footprint import footprint
from blockbuster.costs.lines import loaded_at_once
from blockbuster.costs.sizes import fitting
from blockbuster.costs.work import work
from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.layouts import NO_BUFFERS, layouts_of
from blockbuster.emit.tile.program import Load, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.trips import blocks_in, bound_blocks

ROWS, COLUMNS, MANY = 64, 256, 4096
WHOLE = f"block M 1, N {COLUMNS} whole\nwarps 4\n"
LONG = f"block M 1, N {MANY} whole\nwarps 4\n"


def centered(x):
    return x - bb.mean(x, axis=-1, keepdims=True)


def emitted(columns, schedule=WHOLE, dtype="float16"):
    graph = bb.fuse(bb.lower(bb.trace(centered, x="M N"))).final
    return bb.emit(graph, dict(M=ROWS, N=columns), dtype, schedule=schedule)


def at_once(columns, schedule=WHOLE, dtype="float16"):
    """Bytes that a lane loads at once, by the name of the array."""
    program = emitted(columns, schedule, dtype).tile_program
    (nest,), sizes = program.nests, fitting(program, dict(M=ROWS, N=columns))
    extents = Extents(nest, sizes, blocks_in(nest, bound_blocks(program, sizes)))
    found = loaded_at_once(nest, tiling_of(program, nest), extents)
    return {buffer.name: count for buffer, count in found.items()}


@pytest.mark.parametrize(
    ("columns", "dtype", "bytes"),
    [
        (200, "float16", 16), (196, "float16", 8), (198, "float16", 4), (197, "float16", 2),
        (196, "float32", 16), (197, "float32", 4),
    ],
)  # fmt: skip
def test_a_launch_tells_which_power_of_two_divides_a_row(columns, dtype, bytes):
    assert at_once(columns, dtype=dtype) == {"x": bytes, "out": bytes}


def test_rows_of_multiples_of_16_are_loaded_in_whole_vectors():
    assert at_once(192) == {}


def test_of_parts_of_a_row_a_compiler_is_told_nothing():
    """Rows of 196 in blocks of 128 and 128: they are loaded one by one."""
    parts = "block M 1, N 256 whole\nsplit-lanes nest 1 N 128\nwarps 4\n"
    assert at_once(196, parts) == {"x": 2, "out": 2}


@pytest.mark.parametrize(("bytes", "each"), [(16, 8), (8, 4), (2, 1)])
def test_a_lane_holds_the_neighbours_that_it_loads_at_once(bytes, each):
    program = emitted(192, LONG).tile_program
    (nest,) = program.nests
    (load,) = (stmt for stmt in statements(nest.body) if isinstance(stmt, Load))
    known = {load.view.buffer: bytes} if bytes < 16 else NO_BUFFERS

    layout = layouts_of(program, nest, at_once=known).known[load.target]

    first = {("N", digit) for digit in range(each.bit_length() - 1)}
    assert first <= layout.registers
    assert ("N", each.bit_length() - 1) not in layout.registers


def test_elements_that_are_loaded_one_by_one_take_a_register_each():
    """32 elements of a thread in 16 registers, or in 32 of their own."""
    kernels = (emitted(columns, LONG) for columns in (MANY, MANY - 3))
    wide, odd = (work(kernel.derivation.final)[0].footprint for kernel in kernels)
    assert odd.registers == pytest.approx(wide.registers + 1.2 * 16, abs=1)


def test_without_sizes_rows_count_as_even():
    program = emitted(MANY - 3, LONG).tile_program
    even = emitted(MANY, LONG).tile_program
    odd, wide = (footprint(layouts_of(each, each.nests[0])) for each in (program, even))
    assert odd == wide
