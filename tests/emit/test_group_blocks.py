"""The move group: loops of the grid only, results as before, and the order that Triton makes."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.costs.cached import from_memory
from blockbuster.costs.work import work_of
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.tile.grid_order import programs_in_order, walked
from blockbuster.emit.tile.group import Group
from blockbuster.emit.tile.program import Nest
from blockbuster.errors import EmitError, ParseError
from blockbuster.machines import machine
from blockbuster.runtime.launch import run_interpreted
from tests.emit.parse_tiles import parse_tiles

SIZES = dict(B=2, M=80, K=40, N=100)
BLOCKS = "block M 16, K 16, N 32\n"
GROUPED = "group nest 1 M 3\n"
REST = "warps 4\nstage nest 1 K 2\n"
COUNTS = st.lists(st.integers(1, 5), min_size=2, max_size=4)


@pytest.fixture(scope="module")
def products():
    program = bb.trace(lambda x, w: x @ w, x="B M K", w="B K N")
    return bb.fuse(bb.lower(program)).final


def emitted(graph, *lines):
    return emit(graph, SIZES, "float32", schedule=BLOCKS + "".join(lines) + REST)


def drawn():
    random, dims = np.random.default_rng(0), dict(x="BMK", w="BKN")
    return {
        name: random.integers(-4, 5, [SIZES[d] for d in axes]).astype("float32")
        for name, axes in dims.items()
    }


def test_a_grid_in_groups_says_so(products):
    kernel = emitted(products, GROUPED)

    assert GROUPED in kernel.schedule
    assert kernel.tile_program.nests[0].group == Group("M", 3)
    assert "pid_m, pid_n = tl.swizzle2d(pid_m, pid_n, " in kernel.source
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program


@pytest.mark.parametrize("lines", [[GROUPED], [GROUPED, "order nest 1 M last first\n"]])
def test_the_results_are_those_row_by_row(products, lines):
    arrays = drawn()

    (found,) = run_interpreted(emitted(products, *lines), arrays).values()

    assert (found == arrays["x"] @ arrays["w"]).all()


def test_groups_and_the_last_blocks_first_may_be_asked_for_in_either_order(products):
    lines = [GROUPED, "order nest 1 M last first\n"]
    one, other = (emitted(products, *order) for order in (lines, lines[::-1]))

    assert one.tile_program == other.tile_program


def test_the_schedule_is_proved(products):
    assert check_schedule(products, BLOCKS + GROUPED + REST, sizes=SIZES, trials=2)


@given(COUNTS, st.data())
def test_every_program_has_a_place_of_its_own(counts, data):
    grid = tuple("ABCD"[: len(counts)])
    group = Group(data.draw(st.sampled_from(grid[:-1])), data.draw(st.integers(2, 6)))
    turned = tuple(data.draw(st.lists(st.sampled_from(grid), unique=True)))

    places = programs_in_order(Nest((), grid, group=group, last_first=turned), counts)

    assert len({*map(tuple, places.tolist())}) == prod(counts)
    assert (places.max(0) == np.array(counts) - 1).all()
    assert (places.min(0) == 0).all()


def test_groups_are_those_of_the_manual_of_triton():
    places = programs_in_order(Nest((), ("M", "N"), group=Group("M", 2)), (3, 3))

    rows = np.empty((3, 3), int)
    rows[tuple(places.T)] = range(9)
    assert rows.tolist() == [[0, 2, 4], [1, 3, 5], [6, 7, 8]]


def test_a_dim_in_groups_is_walked_twice():
    nest = Nest((), ("B", "M", "N"), group=Group("M", 8))

    assert walked(nest, dict(B=2, M=20, N=7)) == (("B", 2), ("M", 3), ("N", 7), ("M", 8))


def test_fewer_bytes_come_from_memory_in_groups():
    """32 x 64 tiles: 132 programs share 5 rows and 32 columns, or 8 rows and 17 columns."""

    program = bb.trace(lambda x, w: x @ w, x="M K", w="K N")
    graph, sizes = bb.fuse(bb.lower(program)).final, dict(M=8192, K=8192, N=8192)
    text = "block M 128, K 64, N 256\n{}warps 8\nstage nest 1 K 3\n"
    kernels = [
        emit(graph, sizes, "float16", schedule=text.format(line)).tile_program
        for line in ("", "group nest 1 M 8\n")
    ]
    works = [work_of(kernel, sizes, "sm_90")[0] for kernel in kernels]

    rows, both = (sum(from_memory(one, machine("h200"), 132).values()) for one in works)
    assert both < 0.65 * rows


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("group nest 1 K 8", "the loop over K is not on the grid"),
        ("group nest 1 L 8", "there is no nest 1 L"),
        ("group nest 1 N 8", "the loop over N is the last of the grid"),
        ("group nest 1 M 1", "a group has 1 blocks, expected at least 2"),
        ("group nest 1 M 8\ngroup nest 1 B 8", "groups of 8 blocks of M already"),
    ],
)
def test_refusals(products, lines, reason):
    with pytest.raises(EmitError, match=reason):
        emitted(products, lines + "\n")


def test_a_group_is_a_number(products):
    with pytest.raises(ParseError, match="expected BLOCKS, got"):
        emitted(products, "group nest 1 M eight\n")
