"""How tiles lie over warps: what Triton 3.9 was seen to choose, read from its TTGIR."""

import pytest

import blockbuster as bb
from blockbuster.emit.tile.layouts import Layouts
from blockbuster.emit.tile.program import Let, Load, Store, statements
from blockbuster.emit.tile.shared_memory import shared_bytes
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import is_matrix_dot

SIZES = {"M": 512, "K": 512, "N": 512, "D": 64, "L": 64}


def attention(q, k, v):
    return bb.softmax(q @ k.T) @ v


def gated(x, w, v):
    return bb.silu(x @ w) * (x @ v)


def weighted(x, w, t):
    return bb.sum(bb.exp(x @ w) * t, axis=-1)


PROGRAMS = {
    "matmul": (lambda x, w: x @ w, {"x": "M K", "w": "K N"}),
    "gated": (gated, {"x": "M K", "w": "K N", "v": "K N"}),
    "weighted": (weighted, {"x": "M K", "w": "K N", "t": "M N"}),
    "attention": (attention, {"q": "M D", "k": "N D", "v": "N L"}),
}


def program_of(name, schedule, target="sm_90", dtype="float16"):
    fn, inputs = PROGRAMS[name]
    graph = bb.fuse(bb.lower(bb.trace(fn, **inputs))).final
    dims = {dim for axes in inputs.values() for dim in axes.split()}
    sizes = {dim: SIZES[dim] for dim in SIZES if dim in dims}
    return bb.emit(graph, sizes, dtype, target, schedule=schedule).tile_program


def layouts_of(program, target):
    nest = program.nests[0]
    return Layouts(nest, tiling_of(program, nest), target)


def dots(layouts):
    lets = (stmt for stmt in statements(layouts.nest.body) if isinstance(stmt, Let))
    return [stmt for stmt in lets if is_matrix_dot(stmt, layouts.tiling)]


@pytest.mark.parametrize(
    ("rows", "columns", "warps", "target", "expected"),
    [
        (32, 64, 4, "sm_90", (1, 4)), (128, 16, 2, "sm_80", (2, 1)), (64, 128, 4, "sm_80", (1, 4)),
        (128, 128, 4, "sm_80", (2, 2)), (64, 64, 4, "sm_80", (2, 2)), (16, 64, 8, "sm_90", (1, 8)),
        (64, 64, 4, "sm_90", (4, 1)), (64, 256, 8, "sm_90", (4, 2)), (256, 64, 8, "sm_90", (8, 1)),
    ],
)  # fmt: skip
def test_warps_of_a_lone_dot(rows, columns, warps, target, expected):
    text = f"block M {rows}, K 32, N {columns}\nwarps {warps}"
    layouts = layouts_of(program_of("matmul", text, target), target)
    (dot,) = dots(layouts)

    assert layouts.warps(dot) == expected


@pytest.mark.parametrize(
    ("rows", "keys", "warps", "target", "expected"),
    [
        (64, 256, 8, "sm_90", [(8, 1), (4, 2)]),  # the first feeds the second
        (128, 256, 8, "sm_80", [(8, 1), (8, 1)]),
        (32, 16, 8, "sm_80", [(1, 8), (1, 8)]),
        (32, 64, 4, "sm_90", [(1, 4), (1, 4)]),
    ],
)
def test_warps_of_dots_of_which_one_reads_the_other(rows, keys, warps, target, expected):
    text = f"block M {rows}, D 64 whole, N {keys}, L 64 whole\nwarps {warps}"
    layouts = layouts_of(program_of("attention", text, target), target)

    assert [layouts.warps(dot) for dot in dots(layouts)] == expected


def test_dots_of_one_tile_lie_alike_before_hopper():
    text = "block M 64, K 256, N 64\nwarps 8"
    for target, expected in (("sm_80", (8, 1)), ("sm_90", (4, 2))):
        layouts = layouts_of(program_of("gated", text, target), target)
        assert {layouts.warps(dot) for dot in dots(layouts)} == {expected}


def test_a_dot_of_float32_takes_no_matrix_units():
    program = program_of("matmul", "block M 64, K 16, N 64\nwarps 4", dtype="float32")
    layouts = layouts_of(program, "sm_90")

    assert not layouts.grouped(dots(layouts)[0])


def test_what_is_loaded_lies_along_the_dense_axis():
    program = program_of("matmul", "block M 64, K 32, N 128\nwarps 4")
    layouts = layouts_of(program, "sm_90")
    loads = {
        s.view.buffer.name: s.target for s in statements(layouts.nest.body) if isinstance(s, Load)
    }

    assert {name: layouts.known[tile].dense for name, tile in loads.items()} == {"x": "K", "w": "N"}
    (store,) = (s for s in statements(layouts.nest.body) if isinstance(s, Store))
    assert layouts.known[store.value].dense == "", "as matrix units give it"


@pytest.mark.parametrize(
    ("rows", "columns", "warps", "target", "bytes"),
    [
        (128, 32, 4, "sm_90", 4096), (256, 32, 4, "sm_90", 4096), (256, 64, 8, "sm_90", 16384),
        (64, 256, 8, "sm_90", 16384), (32, 256, 4, "sm_90", 4096), (64, 128, 4, "sm_80", 8192),
        (128, 128, 4, "sm_80", 16384), (64, 64, 4, "sm_90", 8192),
    ],
)  # fmt: skip
def test_a_result_passes_through_shared_memory_in_turns(rows, columns, warps, target, bytes):
    """K is so small that nothing else takes as much: what Triton 3.9 gave the conversion."""
    text = f"block M {rows}, K 16, N {columns}\nwarps {warps}"
    program = program_of("matmul", text, target)
    tiles = 2 * 16 * (rows + columns)

    assert shared_bytes(program, program.nests[0], target) == max(bytes, tiles)


@pytest.mark.parametrize(
    ("rows", "warps", "expected"),
    [(64, 4, 4), (128, 4, 8), (128, 8, 4), (16, 4, 4)],
)
def test_shuffles_fold_each_row_of_a_lane_over_the_lanes_of_a_row(rows, warps, expected):
    """Four lanes share a row of what matrix units give: two shuffles for each that a lane holds."""
    text = f"block M {rows}, D 64 whole, N 64, L 64 whole\nwarps {warps}"
    layouts = layouts_of(program_of("attention", text), "sm_90")
    scores = dots(layouts)[0].target
    widths = {dim: layouts.lanes(dim) for dim in layouts.tiling.lanes(scores)}
    (columns,) = (dim for dim in widths if dim.startswith("N"))

    assert layouts.known[scores].shuffles(widths, columns) == expected
    assert layouts.known[scores].shuffles({**widths, columns: 1}, columns) == 0


@pytest.mark.parametrize(("rows", "columns", "rounds"), [(64, 32, 2), (16, 128, 4)])
def test_a_tile_takes_another_layout_in_rounds(rows, columns, rounds):
    """What Triton 3.9 made of a loaded tile that meets a product: stores, a barrier, loads."""
    text = f"block M {rows}, K 512 whole, N {columns}; warps 4"
    program = program_of("weighted", text)
    layouts = layouts_of(program, "sm_90")
    loads = [s for s in statements(layouts.nest.body) if isinstance(s, Load)]
    (loaded,) = (load.target for load in loads if load.view.buffer.name == "t")
    to, lanes = layouts.known[dots(layouts)[0].target], layouts.tiling.lanes(loaded)
    assert layouts.known[loaded].crosses(to, lanes)
    assert layouts.known[loaded].rounds(to, lanes) == rounds


@pytest.mark.parametrize(
    ("block", "warps", "at_once", "along", "conflicts"),
    [
        ("C 128", 4, 16, 4, 128), ("C 64", 2, 16, 2, 32), ("C 128", 8, 16, 8, 128),
        ("C 32", 1, 16, 1, 8), ("C 128", 4, 2, 1, 1), ("C 64", 4, 2, 2, 2),
    ],
)  # fmt: skip
def test_lanes_of_rows_that_begin_anywhere_take_one_element(
    block, warps, at_once, along, conflicts
):
    """Softmax of a middle axis: sizePerThread, threadsPerWarp and warpsPerCTA are [8, 1], [16, 2]
    and [1, 4] for even rows and 4 warps, [1, 1], [32, 1] and [4, 1] for odd ones.
    """
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.softmax(x, 1), x="A B C"))).snapshots[0]
    text = f"block B 32 whole, {block}; warps {warps}"
    program = bb.emit(graph, dict(A=2, B=21, C=512), "float16", schedule=text).tile_program
    nest = program.nests[0]
    layouts = Layouts(nest, tiling_of(program, nest), "sm_90", lambda view, tile: at_once)
    loaded = next(s.target for s in statements(nest.body) if isinstance(s, Load))
    layout, dims = layouts.known[loaded], layouts.tiling.lanes(loaded)

    assert layout.warps_along("B") == along
    assert layout.conflicts({dim: layouts.lanes(dim) for dim in dims}, "B") == conflicts
