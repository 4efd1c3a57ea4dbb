"""Products of which a processor runs one program or two have as many programs as run at a time."""

import pytest

import blockbuster as bb
from blockbuster.costs.work import loops_before_it_waits
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.tile.shared_memory import shared_bytes

LARGE, SQUARE = dict(M=8192, K=1024, N=1024), dict(M=2048, K=4096, N=4096)
ALONE = "block M 128, K 64, N 256\nwarps 8\nstage nest 1 K 3 by descriptors\n"


@pytest.fixture(scope="module")
def product():
    return bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final


def scheduled(graph, text, target="sm_90", **sizes):
    return bb.emit(graph, sizes, "float16", target, schedule=text).derivation.final


def test_the_ring_is_there_while_results_are_stored(product):
    """Triton takes as much and 24 bytes for barriers: a ring of 3 slots, and a quarter of the
    results as float16."""
    before, after = (
        scheduled(product, text, **LARGE).program for text in (ALONE, f"{ALONE}persist nest 1 132")
    )

    assert shared_bytes(before, before.nests[0]) == 3 * 49152
    assert shared_bytes(after, after.nests[0]) == 3 * 49152 + 32768


def test_programs_wait_once_for_the_kernel_before():
    def fn(x, w):
        return bb.layer_norm(x) @ w

    kernel = bb.emit(bb.fuse(bb.lower(bb.trace(fn, x="M K", w="K N"))), LARGE)
    text = kernel.source[kernel.source.index("def out_kernel") :]

    assert "persist nest 2 132" in kernel.schedule
    assert 0 < text.index("gdc_wait()") < text.index("for place in")


def test_a_product_that_waits_behind_its_loop_does_not():
    """Triton 3.9 lets no loads run ahead in a loop over places that waits inside."""

    def fn(x, w):
        return bb.rms_norm(x) @ w

    program = bb.trace(fn, x="M K", w="K N")
    (file,) = bb.compile(program, SQUARE, machine="h200").plan.files
    for choice in (file.considered.best, *file.considered.others):
        nests = choice.scheduled.program.nests
        assert not any(nest.programs and loops_before_it_waits(nest) for nest in nests)


@pytest.mark.parametrize(
    "norm", [pytest.param(bb.layer_norm, id="by 132"), pytest.param(bb.rms_norm, id="by a grid")]
)
def test_three_loads_are_under_way_in_what_the_compiler_makes_of_a_product(norm):
    """It drops stages, without a word, where it cannot tell what runs between two loads."""
    program, sizes = bb.trace(lambda x, w: norm(x) @ w, x="M K", w="K N"), SQUARE
    chosen = bb.compile(program, sizes, machine="h200").plan.files[0].considered.best
    text = chosen.scheduled.schedule
    kernel = bb.emit(chosen.stable, sizes, "float16", "sm_90", schedule=text)

    _, product = compile_kernel(kernel)

    assert ("persist nest 2 132" in kernel.schedule) == (norm is bb.layer_norm)
    assert "stage nest 2 K 3 by descriptors" in kernel.schedule
    assert product.shared >= 3 * 49152


@pytest.mark.parametrize(
    ("inputs", "sizes"),
    [
        pytest.param(dict(x="M K", w="K N"), dict(M=8192, K=128, N=4096), id="26 us"),
        pytest.param(dict(x="B M K", w="B K N"), dict(B=64, M=512, K=128, N=512), id="16 us"),
    ],
)
def test_pairs_are_found_for_shallow_products_though_walks_are_the_best_else(inputs, sizes):
    """An H200 took 23.9 and 15.9 microseconds by pairs, 29.9 and 21.0 by walks."""
    kernel = bb.emit(bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, **inputs))), sizes)

    lines = kernel.schedule.splitlines()
    assert lines[0] == "block M 128, K 64, N 128"
    assert {"stage nest 1 K 3 by descriptors", "persist nest 1 264"} < set(lines)
    assert kernel.tile_program.nests[0].warps == 4
