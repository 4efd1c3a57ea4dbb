"""Rows that are multiples of 2, 4 or 8 apart: what a kernel is told of them, and its worth."""

import re
from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.target.compiler import compiled_entry
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uneven_rows import uneven_rows
from blockbuster.runtime.launch import run_interpreted

LOADED = re.compile(r"ld\.global\S*?\.v(\d)\.b(\d+)")


def kernel_of(fn, sizes, schedule=None, **inputs):
    graph = bb.fuse(bb.lower(bb.trace(fn, **inputs))).final
    return emit(graph, sizes, schedule=schedule)


def log_softmax(x):
    return x - bb.logsumexp(x, axis=-1, keepdims=True)


def rows_of(n):
    return kernel_of(log_softmax, dict(M=64, N=n), x="M N")


def module_of(kernel):
    return load_module(kernel.source)


def test_the_size_and_the_strides_of_masked_rows_are_told():
    source = rows_of(1000).source

    assert "EVEN_N=even(N, strides(x)[0], strides(out)[0])" in source
    assert "    stride_x_m = stride_x_m // EVEN_N * EVEN_N\n" in source
    assert '"EVEN_N": 8,' in source


def test_full_blocks_need_none_of_it():
    assert "EVEN" not in rows_of(1024).source


@pytest.mark.parametrize(("n", "own"), [(16384, 8), (16383, 1), (16382, 2), (16380, 4)])
def test_lanes_of_a_single_row_take_as_many_neighbours_as_a_mask_leaves_together(n, own):
    """Lanes that are masked one by one take neighbours: a warp asks for whole lines."""
    schedule = "block N 4096\nwarps 4\n"
    kernel = kernel_of(lambda x: x / (1 + bb.abs(x)), dict(N=n), schedule, x="N")
    compiled, _ = compiled_entry(module_of(kernel).KERNELS[0], target_of("sm_90"))

    assert f"sizePerThread = [{own}]" in compiled.asm["ttgir"]
    assert ("max_contiguous" in kernel.source) == (n % 4096 > 0)


def test_tiles_of_rows_and_columns_say_nothing_of_neighbours():
    """Which of their axes is innermost is told by what lies side by side."""
    schedule = "block M 4, N 512\nwarps 4\n"
    kernel = kernel_of(lambda x: x / (1 + bb.abs(x)), dict(M=64, N=1001), schedule, x="M N")

    assert "EVEN_N" in kernel.source
    assert "max_contiguous" not in kernel.source


def test_rows_along_several_dims_are_told_apart():
    text = "block M 16, K 32, N 32\nwarps 4\n"
    sizes = dict(M=64, K=1000, N=1001)
    kernel = kernel_of(lambda x, w: x @ w, sizes, text, x="M K", w="K N")

    assert "EVEN_K=even(K, strides(x)[0])" in kernel.source
    assert "EVEN_N=even(N, strides(w)[0], strides(out)[0])" in kernel.source
    assert [e["constants"]["EVEN_K"] for e in module_of(kernel).KERNELS] == [8]
    assert [e["constants"]["EVEN_N"] for e in module_of(kernel).KERNELS] == [1]


def test_rows_that_are_padded_are_left_out():
    def network(x, w, u):
        return bb.relu(x @ w) @ u

    inputs = dict(x="M D", w="D K", u="K N")
    graph = bb.fuse(bb.lower(bb.trace(network, **inputs))).snapshots[0]
    text = "block M 16, D 16, K 16, N 16\nsplit\nwarps 4\n"
    program = emit(graph, dict(M=20, D=24, K=37, N=40), schedule=text).tile_program
    (padded,) = [buffer for buffer in program.workspaces if buffer.pitch > 1]

    rows = [uneven_rows(nest, tiling_of(program, nest)) for nest in program.nests]
    assert not any(padded in buffers for found in rows for buffers in found.values())
    assert [[b.name for b in found.get("K", ())] for found in rows] == [["w"], []]


@pytest.mark.parametrize(
    ("numbers", "found"),
    [((1000,), 8), ((1000, 12), 4), ((32, 48), 16), ((6, 0), 2), ((7,), 1), ((), 16), ((-8,), 8)],
)
def test_what_divides_numbers(numbers, found):
    assert module_of(rows_of(1000)).even(*numbers) == found


@pytest.mark.parametrize(("n", "wide"), [(1000, True), (1001, False), (1002, False)])
def test_rows_of_a_thousand_are_read_sixteen_bytes_at_once(n, wide):
    (entry,) = module_of(rows_of(n)).KERNELS
    compiled, _ = compiled_entry(entry, target_of("sm_90"))

    widths = [int(count) * int(bits) for count, bits in LOADED.findall(compiled.asm["ptx"])]
    assert (max(widths, default=16) == 128) == wide


@pytest.mark.interpreter
@pytest.mark.parametrize(("n", "width"), [(1000, 1000), (1000, 1003), (999, 999), (996, 1000)])
def test_results_are_right_for_all_rows(n, width):
    x = np.random.default_rng(0).normal(size=(6, width)).astype("float32")[:, :n]
    graph = bb.fuse(bb.lower(bb.trace(log_softmax, x="M N"))).final
    kernel = emit(graph, dict(M=6, N=1000), "float32")

    found = run_interpreted(kernel, dict(x=x))
    wide = x.astype("float64")
    right = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    np.testing.assert_allclose(found[kernel.outputs[0]], right, atol=1e-5)


@pytest.mark.interpreter
def test_a_launcher_that_says_too_much_is_wrong():
    """Rows of 999 that are told to be multiples of 8 lose their last elements."""
    graph = bb.fuse(bb.lower(bb.trace(log_softmax, x="M N"))).final
    kernel = emit(graph, dict(M=2, N=1000), "float32")
    x = np.ones((2, 999), "float32")
    broken = kernel.source.replace("bits = 16\n", "bits = 8\n    return bits\n")
    assert broken != kernel.source

    found = run_interpreted(kernel, dict(x=x))[kernel.outputs[0]]
    wrong = run_interpreted(_with(kernel, broken), dict(x=x))[kernel.outputs[0]]
    np.testing.assert_allclose(found, -np.log(999.0), atol=1e-5)
    assert not np.allclose(wrong, found, atol=1e-5)


def _with(kernel, source):
    return replace(kernel, source=source)


def quotients(x):
    n = x.shape[1] // 3
    return x[:, n : 2 * n] * 2


@pytest.mark.parametrize(("n", "even", "bits"), [(1536, 16, 128), (1512, 8, 128), (1509, 1, 16)])
def test_pieces_that_begin_at_quotients_are_loaded_by_as_much_as_divides_them(n, even, bits):
    kernel = kernel_of(quotients, dict(M=64, N=n), "block M 4, A 256\nwarps 1", x="M N")
    (entry,) = module_of(kernel).KERNELS

    assert "EVEN_PARTS=even(N // 3)" in kernel.source
    assert "    part_n_3 = N // 3 // EVEN_PARTS * EVEN_PARTS" in kernel.source
    assert entry["constants"]["EVEN_PARTS"] == even
    compiled, _ = compiled_entry(entry, target_of("sm_90"))
    loads = LOADED.findall(compiled.asm["ptx"])
    widest = max((int(count) * int(width) for count, width in loads), default=16)
    assert widest == bits
