"""Products of which a processor runs one program or two have as many programs as run at a time."""

import pytest

import blockbuster as bb
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.tile.shared_memory import shared_bytes
from blockbuster.selection.choice import Fused
from blockbuster.selection.decisions.persistent import (
    loops_before_it_waits,
    persistent,
    residents,
)

LARGE, SQUARE = dict(M=8192, K=1024, N=1024), dict(M=2048, K=4096, N=4096)
ALONE = "block M 128, K 64, N 256\nwarps 8\nstage nest 1 K 3 by descriptors\n"
SMALL = "block M 128, K 64, N 128\nwarps 4\nstage nest 1 K 3 by descriptors\n"


@pytest.fixture(scope="module")
def product():
    return bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final


def scheduled(graph, text, target="sm_90", **sizes):
    return bb.emit(graph, sizes, "float16", target, schedule=text).derivation.final


def test_two_programs_to_a_processor_do(product):
    start = scheduled(product, SMALL, **LARGE)
    made = persistent(start)

    assert made.schedule == f"{SMALL}persist nest 1 {2 * start.target.processors}\n"


def test_a_product_of_several_rounds_does(product):
    start = scheduled(product, ALONE, **LARGE)
    made = persistent(start)

    assert made.schedule == f"{ALONE}persist nest 1 {start.target.processors}\n"


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        pytest.param(ALONE, LARGE | dict(M=2048), id="no more programs than processors"),
        pytest.param(ALONE.replace(" by descriptors", ""), LARGE, id="pointers"),
        pytest.param(SMALL, LARGE | dict(M=4096), id="no more programs than two to a processor"),
        pytest.param(SMALL, LARGE | dict(K=4096), id="two at once with a long loop"),
        pytest.param(SMALL.replace("N 128", "N 64"), LARGE, id="three at once"),
        pytest.param(
            SMALL.replace("warps 4", "warps 8"), LARGE, id="one of two would have no registers"
        ),
        pytest.param(
            ALONE.replace("N 256", "N 128").replace("M 128", "M 256"), LARGE, id="too many rows"
        ),
    ],
)
def test_others_do_not(product, text, sizes):
    start = scheduled(product, text, **sizes)

    assert persistent(start) is start


def test_a_loop_that_computes_between_its_dots_does_not():
    def attention(q, k, v):
        return bb.softmax(q @ k.T) @ v

    graph = bb.fuse(bb.lower(bb.trace(attention, q="M D", k="N D", v="N D"))).final
    text = "block M 128, D whole, N 64, D' whole\nwarps 8\nstage nest 1 N 2 by descriptors\n"
    text = text.replace("D whole", "D 256 whole").replace("D' whole", "D' 256 whole")
    start = scheduled(graph, text, M=1 << 16, N=4096, D=256)

    assert persistent(start) is start


def test_a_loop_of_two_dots_does_not():
    def gated(x, w, v):
        return (x @ w) * (x @ v)

    graph = bb.fuse(bb.lower(bb.trace(gated, x="M K", w="K N", v="K N"))).final
    text = ALONE.replace("N 256", "N 128")

    start = scheduled(graph, text, **LARGE)

    assert persistent(start) is start


def test_the_ring_is_there_while_results_are_stored(product):
    """Triton takes as much and 24 bytes for barriers: a ring of 3 slots, and a quarter of the
    results as float16."""
    start = scheduled(product, ALONE, **LARGE)
    before, after = (one.program for one in (start, persistent(start)))

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
    start = Fused(bb.lower(program)).consider(SQUARE, "float16", "h100").best.scheduled
    apart, product = start.program.nests

    assert "persist nest 2" not in start.schedule
    assert len(loops_before_it_waits(product)) == 1
    assert not loops_before_it_waits(apart)
    assert persistent(start) is start
    assert residents(start, 2) == 1, "so it would, if it did not wait"


@pytest.mark.parametrize(
    "norm", [pytest.param(bb.layer_norm, id="by 132"), pytest.param(bb.rms_norm, id="by a grid")]
)
def test_three_loads_are_under_way_in_what_the_compiler_makes_of_a_product(norm):
    """It drops stages, without a word, where it cannot tell what runs between two loads."""
    program, sizes = bb.trace(lambda x, w: norm(x) @ w, x="M K", w="K N"), SQUARE
    plan = bb.compile(program, sizes, machine="h200", library=False).plan
    chosen = plan.files[0].considered.best
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

    assert kernel.schedule == (
        "block M 128, K 64, N 128\nwarps 4\nstage nest 1 K 3 by descriptors\noverlap nest 1\n"
        "persist nest 1 264\n"
    )
