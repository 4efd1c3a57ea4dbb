"""Loads by tensor descriptors: the text, results in Triton's interpreter, refusals, launches."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.schedule.script import BY_NAME
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.target.load import load_module
from blockbuster.errors import EmitError, ParseError
from blockbuster.runtime.launch import run_interpreted
from tests.emit.parse_tiles import parse_tiles

SIZES = dict(H=2, M=40, N=40, D=16, L=16)
BLOCKS = "block M 16, D 16 whole, N 16, L 16 whole\nwarps 4\n"
POINTERS = BLOCKS + "stage nest 1 N 3\n"
DESCRIPTORS = BLOCKS + "stage nest 1 N 3 by descriptors\n"
SHAPES = dict(q=(2, 40, 16), k=(2, 40, 16), v=(2, 40, 16))


def fused(fn, **inputs):
    return bb.fuse(bb.lower(bb.trace(fn, **inputs))).final


@pytest.fixture(scope="module")
def attention():
    def program(q, k, v):
        return bb.softmax(q @ k.swapaxes(-1, -2), axis=-1) @ v

    return fused(program, q="H M D", k="H N D", v="H N L")


def drawn(**shapes):
    random = np.random.default_rng(0)
    return {n: random.normal(size=shape).astype("float32") for n, shape in shapes.items()}


def test_a_kernel_has_both_ways_and_the_schedule_reads_back(attention):
    kernel = emit(attention, SIZES, "float32", schedule=DESCRIPTORS)

    assert kernel.schedule == DESCRIPTORS
    assert "k_2 = k_desc.load([pid_h, n0, 0]).reshape(BLOCK_N, BLOCK_D).T" in kernel.source
    assert "v_2 = v_desc.load([pid_h, n0, 0]).reshape(BLOCK_N, BLOCK_L)\n" in kernel.source
    assert "v_desc=descriptor(v, (1, 16, 16))" in kernel.source
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program


def test_without_the_words_nothing_of_it_is_written(attention):
    assert "k_desc" not in emit(attention, SIZES, "float32", schedule=POINTERS).source


@pytest.mark.parametrize("taken", [True, False], ids=["described", "turned in memory"])
def test_results_are_those_by_pointers_to_the_bit(attention, taken):
    """The last block of keys is short: descriptors leave zeros, as masks do."""
    arrays = drawn(**SHAPES)
    if not taken:
        arrays["k"] = np.ascontiguousarray(arrays["k"].swapaxes(1, 2)).swapaxes(1, 2)
    kernels = (emit(attention, SIZES, "float32", schedule=t) for t in (POINTERS, DESCRIPTORS))

    one, other = (run_interpreted(kernel, arrays)["out"] for kernel in kernels)

    assert one.tobytes() == other.tobytes()


def test_which_layouts_have_a_descriptor(attention):
    module = load_module(emit(attention, SIZES, "float32", schedule=DESCRIPTORS).source)
    memory = np.zeros(4 * 48 * 32 + 4, "float32")
    start = -memory.ctypes.data // 4 % 4
    whole = memory[start : start + 4 * 48 * 32].reshape(4, 48, 32)

    def has(array):
        return module.descriptor(array, (1, 16, 16)) is not None

    assert has(whole)
    assert has(whole[:2, 3:40, :16])
    assert has(whole.swapaxes(0, 1))
    assert not has(whole.swapaxes(1, 2)), "its last axis is no run of memory"
    assert not has(whole[:, :, 1:]), "its address is no multiple of 16"
    assert not has(whole[::-1]), "it goes backwards"
    assert not has(np.broadcast_to(whole[0], (4, 48, 32))), "it stands still"
    assert not has(memory[start : start + 600].reshape(2, 15, 20)), "its rows are 80 bytes apart"


def test_the_schedule_is_proved(attention):
    assert check_schedule(attention, DESCRIPTORS, sizes=SIZES, trials=2)


def test_the_move_offers_them_where_they_are_legal(attention):
    start = emit(attention, SIZES, "float16", schedule=BLOCKS).derivation.final
    old = emit(attention, SIZES, "float16", "sm_80", schedule=BLOCKS).derivation.final

    offered = [list(BY_NAME["stage"].arguments(s, Site(1, "N"))) for s in (start, old)]

    assert {"stages": 3, "described": True} in offered[0]
    assert offered[1] == [{"stages": number} for number in range(2, 7)]


def matmul(x, w):
    return x @ w


MATMUL = dict(x="M K", w="K N"), "block M 16, K 16, N 16\nwarps 4\n{}\n", dict(M=64, K=64, N=64)
STAGED = "stage nest 1 K 3 by descriptors"


def rows(x, w):
    return bb.sum(x * w, axis=-1)


def heads(x, w):
    return bb.sum(x * w[:, :, None], axis=1)


PRODUCT = dict(M=64, K=64, N=1024)
REFUSALS = [
    (lambda x, w: x[:, 1:] @ w, dict(x="M L", w="K N"), "M 16, K 16, N 16", PRODUCT | dict(L=65),
     "float16", "x is read by a slice or a part of an axis"),
    (lambda x, w: bb.sum(x * w), dict(x="K", w="K"), "K 16", dict(K=64),
     "float16", "x has 1 axes: descriptors are for 2 to 5"),
    (lambda x: bb.sum(x, axis=0)[0], dict(x="K M"), "K 16", dict(M=64, K=64),
     "float16", "x is read by a slice or a part of an axis"),
    (matmul, MATMUL[0], "M 16, K 16, N 512", PRODUCT,
     "float16", "a tile of w has 512 lanes along N, more than 256"),
    (lambda x: bb.sum(x, axis=-1), dict(x="M K"), "M 16, K 2", dict(M=64, K=64),
     "float32", "a tile of x has 8 bytes along K, fewer than 16"),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "inputs", "blocks", "sizes", "dtype", "reason"), REFUSALS)
def test_refusals(fn, inputs, blocks, sizes, dtype, reason):
    text = f"block {blocks}\nwarps 4\n{STAGED}\n"
    with pytest.raises(EmitError, match=reason):
        emit(fused(fn, **inputs), sizes, dtype, schedule=text)


@pytest.mark.parametrize(
    ("fn", "inputs", "sizes"),
    [
        (rows, dict(x="M K", w="K"), dict(M=64, K=64)),
        (heads, dict(x="B K M", w="B K"), dict(M=64, K=64, B=2)),
    ],
)
def test_vectors_beside_matrices_keep_their_pointers(fn, inputs, sizes):
    graph = fused(fn, **inputs)
    made = emit(graph, sizes, schedule=f"block M 16, K 16\nwarps 4\n{STAGED}\n")
    plain = emit(graph, sizes, schedule=made.schedule.replace(" by descriptors", ""))
    drawn = np.random.default_rng(0)
    arrays = {n: drawn.normal(size=[sizes[d] for d in dims.split()]) for n, dims in inputs.items()}
    arrays = {name: array.astype("float16") for name, array in arrays.items()}

    assert "x_desc.load(" in made.source
    assert "w_desc" not in made.source
    one, other = (run_interpreted(kernel, arrays)["out"] for kernel in (made, plain))
    assert one.tobytes() == other.tobytes()


def test_other_targets_have_none():
    inputs, text, sizes = MATMUL
    with pytest.raises(EmitError, match="sm_80 has no tensor descriptors"):
        emit(fused(matmul, **inputs), sizes, "float16", "sm_80", schedule=text.format(STAGED))


def test_other_words_are_an_error():
    inputs, text, sizes = MATMUL
    with pytest.raises(ParseError, match=r"expected STAGES .by descriptors., got '3 by hand'"):
        emit(fused(matmul, **inputs), sizes, schedule=text.format("stage nest 1 K 3 by hand"))


def test_it_compiles_and_needs_fewer_registers():
    inputs, _, _ = MATMUL
    text = "block M 128, K 64, N 256\nwarps 8\nstage nest 1 K 3{}\n"
    sizes = dict(M=2048, K=4104, N=4080)  # ragged, rows of w no multiple of 32 bytes
    graph = fused(matmul, **inputs)

    plain, described = (
        compile_kernel(emit(graph, sizes, "float16", schedule=text.format(words)))[0]
        for words in ("", " by descriptors")
    )

    assert plain.spills == described.spills == 0
    assert described.registers < plain.registers


def test_waits_do_not_stand_among_operators(attention):
    made = emit(attention, SIZES, schedule=DESCRIPTORS).source
    loop = made[made.index("for n0 in") :]

    assert loop.index("v_desc.load(") < loop.index("tl.dot("), "else the softmax is cut in two"


def test_waits_among_dots_alone_stay_where_they_are():
    def gated(x, w, v):
        return (x @ w) * (x @ v)

    text = "block M 16, K 16, N 16\nwarps 4\nstage nest 1 K 3 by descriptors\n"
    made = emit(fused(gated, x="M K", w="K N", v="K N"), dict(M=64, K=64, N=64), schedule=text)
    loop = made.source[made.source.index("for k0 in") :]

    assert loop.index("tl.dot(") < loop.index("v_desc.load(")
