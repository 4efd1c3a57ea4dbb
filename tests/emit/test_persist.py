"""The move persist: every place of a grid is taken once, by as many programs as are asked for."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.tile.shared_memory import shared_bytes
from blockbuster.errors import EmitError, ParseError
from blockbuster.runtime.launch import run_interpreted
from blockbuster.runtime.numbers import Arithmetic
from tests.emit.parse_tiles import parse_tiles

SIZES = dict(M=80, K=40, N=100)
BLOCKS = "block M 16, K 16, N 32\n"
REST = "warps 4\nstage nest 1 K 2\n"
PLACES = 20  # 5 blocks of M and 4 of N


@pytest.fixture(scope="module")
def product():
    program = bb.trace(lambda x, w: x @ w, x="M K", w="K N")
    return bb.fuse(bb.lower(program)).final


def emitted(graph, *lines):
    return emit(graph, SIZES, "float32", schedule=BLOCKS + "".join(lines) + REST)


def drawn():
    random, dims = np.random.default_rng(0), dict(x="MK", w="KN")
    return {
        name: random.integers(-4, 5, [SIZES[d] for d in axes]).astype("float32")
        for name, axes in dims.items()
    }


def test_a_nest_says_how_many_programs_it_has(product):
    kernel = emitted(product, "persist nest 1 3\n")

    assert "persist nest 1 3\n" in kernel.schedule
    assert kernel.tile_program.nests[0].programs == 3
    assert "grid = min(triton.cdiv(M, 16) * triton.cdiv(N, 32), 3)" in kernel.source
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program


@pytest.mark.parametrize("programs", [1, 3, PLACES - 1, PLACES, PLACES + 1])
@pytest.mark.parametrize("more", ["", "group nest 1 M 2\n", "order nest 1 M last first\n"])
def test_the_results_are_those_of_a_program_for_each_place(product, programs, more):
    arrays = drawn()

    kernel = emitted(product, more, f"persist nest 1 {programs}\n")

    (found,) = run_interpreted(kernel, arrays).values()
    assert (found == arrays["x"] @ arrays["w"]).all()


def test_a_grid_of_one_dim_whose_kernel_uses_a_size():
    """The size as a number is made in front of the loop over places."""
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.mean(x, axis=1), x="M K"))).final
    text = "block M 16, K 16\npersist nest 1 2\nwarps 4\n"
    x = np.random.default_rng(0).integers(-4, 5, (80, 40)).astype("float32")

    kernel = emit(graph, dict(M=80, K=40), "float32", schedule=text)
    (found,) = run_interpreted(kernel, dict(x=x)).values()

    np.testing.assert_allclose(found, x.mean(1), rtol=1e-6)


def test_the_schedule_is_proved(product):
    assert check_schedule(product, BLOCKS + "persist nest 1 3\n" + REST, sizes=SIZES, trials=2)


ROWS = "block M 2, K 64 whole\npersist nest 1 3 in 3 stages\nwarps 1\n"


@pytest.fixture(scope="module")
def rows():
    def centred(x):
        return x - bb.mean(x, axis=1, keepdims=True)

    return bb.fuse(bb.lower(bb.trace(centred, x="M K")), whole=("K",)).final


def of_rows(graph, text=ROWS, **sizes):
    return emit(graph, dict(M=41, K=50) | sizes, "float32", "sm_90", schedule=text)


def test_loads_of_a_place_run_ahead(rows):
    """Two rows of 64 numbers on their way, twice."""
    kernel = of_rows(rows)
    (nest,) = kernel.tile_program.nests

    assert "persist nest 1 3 in 3 stages\n" in kernel.schedule
    assert (nest.programs, nest.stages) == (3, 3)
    assert "tl.range(tl.program_id(0), places, tl.num_programs(0), num_stages=3)" in kernel.source
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program
    assert shared_bytes(kernel.tile_program, nest) == 2 * 2 * 64 * 4


@pytest.mark.parametrize("programs", [1, 3, 21, 22])
def test_results_are_the_same_with_loads_ahead(rows, programs):
    x = np.random.default_rng(0).integers(-4, 5, (41, 50)).astype("float32")

    kernel = of_rows(rows, ROWS.replace("nest 1 3", f"nest 1 {programs}"))
    (found,) = run_interpreted(kernel, dict(x=x)).values()

    np.testing.assert_allclose(found, x - x.mean(1, keepdims=True), rtol=1e-6, atol=1e-6)


def test_loads_ahead_are_proved(rows):
    assert check_schedule(rows, ROWS, sizes=dict(M=41, K=50), trials=2)


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_triton_keeps_what_is_on_its_way_in_shared_memory(rows, stages):
    text = ROWS.replace("M 2, K 64", "M 1, K 4096").replace("3 in 3", f"3 in {stages}")
    kernel = of_rows(rows, text, K=4096)

    (report,) = compile_kernel(kernel)

    (nest,) = kernel.tile_program.nests
    assert report.shared >= (stages - 1) * 4096 * 4
    assert abs(report.shared - shared_bytes(kernel.tile_program, nest)) < 256


def test_fewer_stages_than_two_bring_nothing_ahead(rows):
    with pytest.raises(EmitError, match="with 1 stages no load runs ahead: give at least 2"):
        of_rows(rows, ROWS.replace("in 3", "in 1"))


def test_loops_inside_have_stages_of_their_own(product):
    with pytest.raises(EmitError, match="nest 1 has loops: 'stage' lets their loads run ahead"):
        emitted(product, "persist nest 1 3 in 3 stages\n")


def test_dots_without_a_loop_wait_for_their_loads():
    """Matrix units may still read what the pipeliner overwrites: bench/repro/pipeliner_race.py."""
    graph = bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N")), whole=("K",)).final
    text = "block M 16, K 64 whole, N 32\npersist nest 1 3 in 3 stages\nwarps 4\n"

    with pytest.raises(EmitError, match="nest 1 has dots: Triton's pipeliner may overwrite"):
        emit(graph, SIZES, schedule=text)


def test_a_nest_without_loads_has_nothing_to_bring_ahead():
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.arange(x.shape[0]) * 2.0, x="M"))).final
    text = "block M 16\npersist nest 1 2 in 3 stages\nwarps 1\n"

    with pytest.raises(EmitError, match="nest 1 loads nothing"):
        emit(graph, dict(M=64), schedule=text)


def test_stages_are_a_number(rows):
    with pytest.raises(ParseError, match=r"expected PROGRAMS .in STAGES stages., got '3 in"):
        of_rows(rows, ROWS.replace("in 3", "in many"))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("persist nest 2 8", "there is no nest 2"),
        ("persist nest 1 8\npersist nest 1 8", "8 programs take the places of nest 1 already"),
    ],
)
def test_refusals(product, lines, reason):
    with pytest.raises(EmitError, match=reason):
        emitted(product, lines + "\n")


def test_one_program_has_no_places_to_take():
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.sum(x), x="K"))).final

    with pytest.raises(EmitError, match="nest 1 has no grid"):
        emit(graph, dict(K=40), schedule="block K 16\npersist nest 1 8\nwarps 4\n")


def test_a_nest_that_loses_its_grid_is_one_program():
    """Two loops over rows, one with a mask and one without, are not on a grid."""

    def masked(x):
        return bb.where(bb.arange(x.shape[0])[:, None] >= 20, x, 0.0)

    graph = bb.fuse(bb.lower(bb.trace(masked, x="M N"))).final
    text = "block M 16, N 16\npersist nest 1 3\npart nest 1 M\nwarps 1\n"
    x = np.ones((70, 33), "float32")

    kernel = emit(graph, dict(M=70, N=33), "float32", schedule=text)
    (found,) = run_interpreted(kernel, dict(x=x)).values()

    (nest,) = kernel.tile_program.nests
    assert (nest.grid, nest.programs) == ((), 0)
    assert (found == masked(x)).all()


def test_the_programs_are_a_number(product):
    with pytest.raises(ParseError, match=r"expected PROGRAMS .in STAGES stages., got"):
        emitted(product, "persist nest 1 all\n")


def test_a_new_layout_is_started_with_as_many_programs(product):
    """The grid is computed again without the launcher: the lesser of places and programs."""
    numbers = Arithmetic(emitted(product, "persist nest 1 12\n").launches, str)

    for m, n in ((80, 100), (32, 64), (16, 32)):
        sizes = dict(M=m, K=48, N=n)
        ((grid, _),) = numbers([(48, 1), (n, 1)], sizes).starts
        assert grid == min(-(-m // 16) * -(-n // 32), 12)


def test_a_loop_that_computes_beside_its_dots_has_a_program_for_each_place():
    """Triton makes one loop of the places and that loop, and gets it wrong."""

    def statistics(q, k):
        s = q @ k.T
        return bb.max(s, axis=-1), bb.sum(bb.exp(s), axis=-1)

    graph = bb.fuse(bb.lower(bb.trace(statistics, q="M D", k="N D"))).final
    blocks = "block M 64, D 64 whole, N 64\nwarps 4\n"
    with pytest.raises(EmitError, match="the loop over N computes beside its dots"):
        emit(graph, dict(M=512, D=64, N=512), schedule=f"{blocks}persist nest 1 4\n")
