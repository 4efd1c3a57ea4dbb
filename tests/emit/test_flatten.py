"""The pass flatten: which loops are one, how they are printed, and what that saves."""

from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.costs import work_of
from blockbuster.emission import emit
from blockbuster.emit.closing.flatten import flatten
from blockbuster.emit.tile.dataflow import flat_loops, mapped
from blockbuster.emit.tile.program import For, statements
from blockbuster.runtime.launch import run_batch
from tests.emit.parse_tiles import parse_tiles

LOADS = ("t1: f16[M, K] = load A[R, S, M, K]", "t2: f16[N, K] = load B[R, S, N, K]")
DOT = ("t3: f32[M, N] = dot(t1, t2) into t5", "t5 += t3")


def program(*lines):
    return parse_tiles(f"""
tiles {{
  dots in f16
  inputs A: f16[R, S, M, K], B: f16[R, S, N, K]
  outputs Y: f32[M, N]
  units R, S
  nest 1 {{
    blocks K 16, M 16, N 16
    forall M {{
      forall N {{
        t5: f32[M, N] = init +
        {chr(10).join(lines)}
        store Y[M, N] = t5
      }}
    }}
  }}
}}
""")


def again(*lines):
    """The same lines for other tiles."""
    renamed = {"t1": "t6", "t2": "t7", "t3": "t8"}
    for old, new in renamed.items():
        lines = tuple(line.replace(old, new) for line in lines)
    return lines


def flat(tiles):
    (nest,) = flatten(tiles).nests
    return [s.dim for s in statements(nest.body) if isinstance(s, For) and s.flat]


@pytest.mark.parametrize(
    ("lines", "dims"),
    [
        (("for R {", "for S {", "for K {", *LOADS, *DOT, "}", "}", "}"), ["R", "S"]),
        (("for R {", "for S {", *LOADS, *DOT, "}", "}"), ["R"]),
        (("for R {", "for S {", LOADS[0], "for K {", LOADS[1], *DOT, "}", "}", "}"), []),
        (("for R {", "for K {", *LOADS, *DOT, "}", "for S {", *again(*LOADS, *DOT), "}", "}"), []),
        (("for R {", "for K full {", *LOADS, *DOT, "}", "}"), ["R"]),
        (("for K {", *LOADS, *DOT, "}"), []),
    ],
)
def test_loops_that_do_nothing_else_are_one(lines, dims):
    assert flat(program(*lines)) == dims


def test_loops_without_dots_stay():
    """Compilers unroll them, and loads of theirs do not run ahead."""

    def taps(x):
        return bb.einsum("n(h+r), r -> nh", x, np.ones(3, "float32"))

    kernel = emit(bb.fuse(bb.lower(bb.trace(taps, x="N=4 H=40"))), dict(N=4, H=40))

    assert "flat" not in str(kernel.tile_program)


@pytest.fixture(scope="module")
def conv():
    """A convolution whose channels take two blocks, and its inputs."""
    pads = {"h": (1, 1), "v": (1, 1)}
    random = np.random.default_rng(0)
    shapes = {"x": (2, 24, 6, 7), "w": (20, 24, 3, 2)}
    arrays = {n: random.integers(-4, 5, s).astype("float32") for n, s in shapes.items()}
    return bb.trace(
        lambda x, w: bb.einsum("nc(h+r)(v+s), kcrs -> nkhv", x, w, pad=pads), **arrays
    ), arrays


@pytest.fixture(scope="module")
def kernel(conv):
    traced, _ = conv
    graph = bb.fuse(bb.lower(traced)).final
    sizes = dict(A=2, B=24, C=6, D=7, E=20, F=3, G=2, H=6, I=8)
    schedule = "join nest 1 H\nblock B 16, E 32, H_I 16\nwarps 4\nstage nest 1 B 2\n"
    return emit(graph, sizes, "float32", schedule=schedule)


def test_one_loop_is_printed(kernel):
    assert kernel.source.count("for step in range(0, F * G * tl.cdiv(B, BLOCK_B)):") == 1
    assert "f0 = step // (G * tl.cdiv(B, BLOCK_B))" in kernel.source
    assert "g0 = step // tl.cdiv(B, BLOCK_B) % G" in kernel.source
    assert "b0 = step % tl.cdiv(B, BLOCK_B) * BLOCK_B" in kernel.source


def test_it_is_right_in_the_interpreter(conv, kernel):
    traced, arrays = conv
    (made,) = run_batch([(kernel, arrays)])

    np.testing.assert_array_equal(made["out"], traced.numpy(arrays)["out"])


def test_the_program_reads_back(kernel):
    outer = next(
        s for nest in kernel.tile_program.nests for s in statements(nest.body)
        if isinstance(s, For) and s.flat
    )  # fmt: skip

    assert [loop.dim for loop in flat_loops(outer)] == ["F", "G", "B"]
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program


def nested(kernel):
    """A kernel whose loops are entered anew."""

    def change(stmt):
        return replace(stmt, flat=False) if isinstance(stmt, For) else stmt

    nests = kernel.tile_program.nests
    nests = tuple(replace(nest, body=mapped(nest.body, change)) for nest in nests)
    return replace(kernel, tile_program=replace(kernel.tile_program, nests=nests))


def test_prices_count_that_loads_run_ahead_of_all_of_them(kernel):
    flat, apart = (work_of(k.tile_program, k.sizes, "sm_90")[0] for k in (kernel, nested(kernel)))

    assert [phase.outside for phase in flat.phases] == [(), (), (), ()]
    assert [phase.outside for phase in apart.phases] == [(), (), ("F",), ("F", "G")]


@pytest.fixture(scope="module")
def half():
    """One in float16, whose channels stand last."""
    graph = bb.fuse(bb.lower(bb.trace(
        lambda x, w: bb.einsum("n(h+r)(v+s)c, rsck -> nhvk", x, w), x="N P Q C", w="R S C K"
    ))).final  # fmt: skip
    sizes = dict(N=4, C=128, P=30, Q=30, K=128, R=3, S=3, A=28, B=28)
    schedule = "join nest 1 A\nblock C 64, K 128, A_B 128\nwarps 4\nstage nest 1 C 3\n"
    return emit(graph, sizes, "float16", schedule=schedule)


def test_it_saves_the_time_in_which_loads_begin(half):
    flat, apart = (k.cost("h100", launch="graph") for k in (half, nested(half)))

    assert flat.time_us < 0.95 * apart.time_us
    assert flat.bytes == apart.bytes


def test_it_does_so_on_the_simulated_machine(half):
    flat, apart = (bb.simulate(k, "h100", launch="graph") for k in (half, nested(half)))

    assert flat.time_us < 0.95 * apart.time_us
    assert flat.bytes == apart.bytes
