"""Lines of memory that a tile touches, beside counting them element by element."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.costs.lines import (
    LINE,
    SECTOR,
    SHIFTED,
    TESTED,
    copied_at_once,
    in_rows,
    indexed,
    pieces,
    places,
)
from blockbuster.costs.work import work
from blockbuster.emit.tile.extents import Extents
from blockbuster.emit.tile.layouts import _in_blocks
from blockbuster.emit.tile.program import Buffer, BufferAxis, Nest, Tile, View
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.ir.lengths import whole
from blockbuster.ir.views import Run, Share, Strided


def touched(shape, lanes, width, size):
    """Pieces of ``size`` bytes that a tile at the origin of an array touches, by looking."""
    index = np.indices(lanes).reshape(len(lanes), -1)
    strides = np.cumprod([1, *shape[:0:-1]])[::-1]
    return len({int(at) * width // size for at in strides @ index})


def counted(shape, lanes, dtype="float16", size=LINE, axes=None):
    """The same by the closed form; ``axes``: the order of the tile's."""
    dims = "ABC"[: len(shape)]
    buffer = Buffer("x", tuple(BufferAxis(dim) for dim in dims), "input", dtype)
    tile = Tile("t", tuple(axes or dims), dtype=dtype)
    nest = Nest((), (), warps=4)
    sizes = dict(zip(dims, shape, strict=True))
    extents = Extents(nest, sizes, dict(zip(dims, lanes, strict=True)))
    return pieces(View(buffer, tuple(dims)), tile, extents, size)


POWERS = st.sampled_from([1, 2, 4, 8, 16, 32, 64])


@settings(max_examples=60, deadline=None)
@given(rows=POWERS, columns=POWERS.filter(lambda n: n > 1), more=st.sampled_from([1, 2, 4, 8]))
def test_rows_of_neighbours(rows, columns, more):
    shape, lanes = (rows * 2, columns * more), (rows, columns)
    assert counted(shape, lanes) == touched(shape, lanes, 2, LINE)


def test_short_rows_take_whole_lines():
    assert counted((64, 4096), (64, 16)) == 64
    assert counted((64, 4096), (64, 64)) == 64
    assert counted((64, 4096), (64, 256)) == 4 * 64
    assert counted((64, 16), (64, 16)) == 64 * 16 * 2 // LINE  # short rows that follow each other


def test_lanes_without_neighbours_ask_for_a_line_each():
    """Rows by columns by chunks, one chunk at a time: no two elements of a tile are neighbours."""
    assert counted((512, 256, 4), (64, 64, 1), "float32", axes="AB") == 64 * 64


def test_a_row_without_neighbours():
    """Every fourth number of a row: a line holds eight of these."""
    assert counted((256, 4), (64, 1), "float32", axes="A") == 64 * 16 // LINE


def test_lanes_of_columns_run_along_the_other_axis():
    """Filters of 64 x 128 with 4 taps each, of which one tap is loaded, as rows and as columns."""
    buffer = Buffer("w", tuple(map(BufferAxis, "BET")), "input", "float16")
    view, tile = View(buffer, tuple("BET")), Tile("t", ("E", "B"), dtype="float16")
    sizes = {"B": 128, "E": 64, "T": 4}
    extents = Extents(Nest((), ()), sizes, sizes | {"T": 1})

    assert pieces(view, tile, extents, LINE) == 128 * 64 * 4 * 2 // LINE
    assert pieces(view, tile, extents, LINE, columns=True) == 128 * 64


@pytest.mark.parametrize("padded", [False, True])
def test_loops_shift_places_of_windows_at_once_and_test_each_padded_axis(padded):
    buffer = Buffer("x", tuple(map(BufferAxis, "NHVC")), "input", "float16")
    axes = [Strided(dim, (Run(dim), Run(f"{dim}'")), padded=padded) for dim in "HV"]
    view, tested = View(buffer, ("N", *axes, "C")), TESTED if padded else 0

    def instructions(lanes, loops):
        return indexed(view, Tile("t", (*lanes, "C")), loops)

    assert instructions("V", ["C"]) == 0
    assert instructions("V", ["H'"]) == tested
    assert instructions("V", ["H'", "V'"]) == SHIFTED + 2 * tested
    assert instructions("HV", ["H'", "V'"]) == SHIFTED + 2 * tested


def test_lanes_past_the_end_take_instructions():
    """In blocks of 64 x 64, averages of 3 x 3 with 37 x 37 results take 2424 in machine code, and
    were counted at 844.
    """
    graph = bb.fuse(bb.lower(bb.trace(lambda x: x * 2, x="M N"))).final

    def instructions(columns):
        kernel = bb.emit(graph, dict(M=64, N=columns), schedule="block M 64, N 64\nwarps 4")
        (found,) = work(kernel.derivation.final)
        return found.phases[0].instructions

    assert instructions(37) == instructions(63)


@pytest.mark.parametrize(("columns", "each"), [(16, 64), (64, 64), (128, 128)])
def test_requests_of_a_kernel(columns, each):
    """64 rows of 16 float16s ask for as many lines as 64 rows of 64."""
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.sum(x, axis=0), x="M N"))).final
    schedule = f"block M 64, N {columns}\nwarps 4"
    kernel = bb.emit(graph, dict(M=4096, N=4096), schedule=schedule)
    (found,) = work(kernel.derivation.final)
    loop = found.phases[1]
    assert loop.lines == loop.runs * each


def layout_of(order, lanes, each, warps):
    """The place of each element of a tile, row by row: its thread, and the number of the register.

    As Triton lays it: ``each`` neighbours to a lane, then lanes, then warps, the last axis first.
    """
    digits = {dim: int(np.log2(lanes[dim])) for dim in order}
    free = {"register": int(np.log2(each)), "lane": 5, "warp": int(np.log2(warps))}
    kinds = list[tuple[str, str, int]]()
    for dim in reversed(order):
        for at in range(digits[dim]):
            first = "register" if dim == order[-1] and free["register"] else ""
            kind = first or ("lane" if free["lane"] else "warp" if free["warp"] else "more")
            free[kind] = free.get(kind, 0) - 1
            kinds.append((kind, dim, at))
    return kinds


def asked(step, lanes, each, warps, row):
    """Lines that the loads of a tile ask for, looking at each load of each warp by itself.

    The columns stand ``step`` float16s apart; ``row``: bytes from one row to the next.
    """
    kinds = layout_of("AB", lanes, each, warps)
    index = np.indices((lanes["A"], lanes["B"])).reshape(2, -1)
    at = {"A": index[0], "B": index[1]}
    address = at["A"] * row + at["B"] * 2 * step
    load = np.zeros_like(address)
    for number, (kind, dim, digit) in enumerate(kinds):
        if kind != "lane":
            load |= ((at[dim] >> digit) & 1) << number
    return len(set(zip(load.tolist(), (address // LINE).tolist(), strict=True)))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.sampled_from([4, 16, 32]), columns=st.sampled_from([32, 64, 128, 512]),
    step=st.sampled_from([2, 4, 8]), warps=st.sampled_from([1, 2, 4]),
)  # fmt: skip
def test_lanes_load_elements_apart_from_each_other_one_by_one(rows, columns, step, warps):
    """A lane holds neighbours of the result, which do not lie beside each other in ``x``."""
    graph = bb.lower(bb.trace(lambda x: x[:, ::step] * 2, x=f"A N={step * columns}"))
    schedule = f"block A {rows}, B {columns}\nwarps {warps}"
    kernel = bb.emit(graph, {"A": 64}, schedule=schedule)
    (found,) = work(kernel.derivation.final)
    each = max(1, min(8, rows * columns // (32 * warps)))
    stored = max(1, rows * columns * 2 // LINE)
    looked = asked(step, {"A": rows, "B": columns}, each, warps, 2 * step * columns)
    assert found.phases[0].lines == 64 // rows * (looked + stored)


def test_more_warps_ask_for_fewer_lines():
    """A lane loads what it holds of the result one by one: eight elements, or four."""

    def lines(warps):
        graph = bb.lower(bb.trace(lambda x: x[:, ::2] * 2, x="A N=128"))
        kernel = bb.emit(graph, {"A": 4096}, schedule=f"block A 32, B 64\nwarps {warps}")
        (found,) = work(kernel.derivation.final)
        return found.phases[0].lines / found.programs

    tile, stored = 32 * 64, 32
    assert lines(warps=8) == tile * 8 * 4 // LINE + stored
    assert lines(warps=16) == tile * 4 * 4 // LINE + stored


def image_view(*, joined):
    """A load of 128 rows by 64 channels of images of 8 lines of 24 places, 64 channels each."""
    buffer = Buffer("x", tuple(map(BufferAxis, "NHVC")), "input", "float16")
    shares = [Run("H_V", share=Share(("H", "V"), at)) for at in (0, 1)]
    axes = [Strided(dim, (run,)) for dim, run in zip("HV", shares, strict=True)]
    axes = ("N", *(axes if joined else "HV"), "C")
    tile = Tile("t", ("H_V" if joined else "V", "C"), dtype="float16")
    sizes = {"N": 2, "H": 8, "V": 24, "C": 64, "H_V": 192}
    blocks = {"N": 1, "H": 1, "V": 24, "C": 64, "H_V": 128}
    return View(buffer, axes), tile, Extents(Nest((), ()), sizes, blocks)


def test_rows_over_several_axes_touch_what_their_blocks_do():
    """128 rows of 128 bytes follow each other, whatever lines they are of."""
    view, tile, extents = image_view(joined=True)

    assert pieces(view, tile, extents, LINE) == 128
    assert pieces(*image_view(joined=False), LINE) == 24


def test_windows_begin_anywhere():
    """Each tap is an element further on: no copy of several elements begins there."""
    buffer = Buffer("x", (BufferAxis("C"), BufferAxis("V")), "input", "float16")
    tile = Tile("t", ("V", "C"), dtype="float16")
    extents = Extents(Nest((), ()), {"C": 64, "V": 64, "A": 62, "S": 3}, {"C": 64, "A": 64})
    tiling = Tiling({"C": 64, "A": 64}, ("S",))

    def width(axis, lanes="A"):
        view = View(buffer, ("C", axis))
        return copied_at_once(view, replace(tile, axes=(lanes, "C")), tiling, extents)

    assert width(Strided("V", (Run("A"),))) == 16
    assert width(Strided("V", (Run("A"), Run("S")))) == 2
    assert width(Strided("V", (Run("A"), Run("S", step=whole(2))))) == 4
    assert width(Strided("V", (Run("A"),), whole(8))) == 16
    assert width(Strided("V", (Run("A"),), whole(-1))) == 2
    assert width(Strided("V", (Run("A"), Run("S", step=whole(3))), whole(-3))) == 2, "no 6 bytes"


@pytest.mark.parametrize(("dtype", "padded", "joined", "expected"), [
    ("float16", True, True, 2),  # a mask of remainders: Triton tests each place by itself
    ("float16", True, False, 4),
    ("float16", False, True, 4),
    ("float32", True, True, 4),  # which a copy that runs ahead takes
])  # fmt: skip
def test_masks_of_joined_windows_are_for_one_element(dtype, padded, joined, expected):
    buffer = Buffer("x", tuple(map(BufferAxis, "CHV")), "input", dtype)
    shares = [Share(("H", "V"), at) if joined else None for at in (0, 1)]
    dims = ["H_V", "H_V"] if joined else ["H", "V"]
    taps = [
        Strided(dim, (Run(run, share=share), Run("S", step=whole(2))), whole(-2), padded=padded)
        for dim, run, share in zip("HV", dims, shares, strict=True)
    ]
    view, tile = View(buffer, ("C", *taps)), Tile("t", (dims[1], "C"), dtype=dtype)
    blocks = {"C": 32, dims[1]: 16}
    sizes = {"C": 32, "H": 14, "V": 14, "S": 3, "H_V": 196}
    extents = Extents(Nest((), ()), sizes, blocks)
    assert copied_at_once(view, tile, Tiling(blocks, ("S",)), extents) == expected


def test_filters_of_one_pixel_are_rows_of_channels():
    axes = (BufferAxis("K"), BufferAxis("C"), BufferAxis(None), BufferAxis(None))
    view = in_rows(View(Buffer("w", axes, "input", "float16"), ("K", "C", None, None)))
    blocks = {"K": 64, "C": 64}
    extents = Extents(Nest((), ()), {"K": 64, "C": 256}, blocks)
    tile = Tile("t", ("K", "C"), dtype="float16")
    assert view.dims == ("K", "C")
    assert copied_at_once(view, tile, Tiling(blocks, ()), extents) == 16


@pytest.mark.parametrize(("order", "found"), [("CV", 128), ("VC", 4 * 128)])
def test_a_lane_finds_the_place_of_its_pixel_once(order, found):
    """64 pixels by 64 channels of four warps: with channels last, a lane has 16 bytes of each of
    four pixels; with pixels last and one element at once, 32 channels of one pixel.
    """
    buffer = Buffer("x", tuple(map(BufferAxis, "H" + order)), "input", "float16")
    windows = {d: Strided(d, (Run(d), Run("S"))) for d in "HV"}
    view = View(buffer, tuple(windows.get(d, d) for d in "H" + order))
    tile = Tile("t", ("V", "C"), dtype="float16")
    at_once = 2 if order == "CV" else 16
    layouts = SimpleNamespace(known={tile: _in_blocks(
        ((order[0], 64), (order[1], 64)), 4, at_once // 2
    )})  # fmt: skip
    moves = 64 * 64 * 2 // at_once
    assert places(view, tile, ["S"], layouts, moves) == SHIFTED * found
    assert places(view, tile, ["C"], layouts, moves) == 0
    assert places(view, tile, ["S"], SimpleNamespace(known={}), moves) == SHIFTED * moves


@settings(max_examples=60, deadline=None)
@given(
    rows=st.sampled_from([16, 64]), columns=st.sampled_from([8, 16, 32, 64, 128]),
    width=st.integers(200, 330), size=st.sampled_from([SECTOR, LINE]),
)  # fmt: skip
def test_rows_of_odd_lengths_touch_more_pieces_than_they_fill(rows, columns, width, size):
    """On average over all rows of an array, by looking; its rows begin anywhere in a piece."""
    address = 2 * (np.arange(4096)[:, None] * width + np.arange(columns))
    each = np.mean([len(set(row)) for row in (address // size).tolist()])

    assert counted((rows, width), (rows, columns), size=size) == pytest.approx(rows * each, abs=1.5)
