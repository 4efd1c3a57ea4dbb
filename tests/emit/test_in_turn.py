"""Stores of tiles in which two dims take turns along an axis, as shuffled pixels do."""

import re

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.target.compiler import compiled_entry
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of
from blockbuster.runtime.launch import run_interpreted

STORED = re.compile(r"tt\.store .*#(blocked\d*)")


def shuffled(x):
    """Pixels of 2 x 2: channels become rows and columns between those that there are."""
    images, channels, height, width = x.shape
    pieces = x.reshape(images, channels // 4, 2, 2, height, width).transpose(0, 1, 4, 2, 5, 3)
    return pieces.reshape(images, channels // 4, 4 * height * width)


def interleaved(x):
    """Elements of two rows in turn."""
    return x.transpose(0, 2, 1).reshape(x.shape[0], 2 * x.shape[2])


def kernel_of(fn, schedule, **inputs):
    derivation = bb.fuse(bb.lower(bb.trace(fn, **inputs)))
    return bb.emit(derivation, {}, "float32", schedule=schedule)


BLOCKS = ("C 4, D 8, E 1, F 2, G 2", "C 4, D 4, E 2, F 1, G 2", "C 8, D 2, E 2, F 2, G 2")
PIXELS = dict(x="A=2 B=8 C=5 D=7")


@pytest.mark.parametrize("blocks", BLOCKS)
def test_shuffled_pixels_are_written_where_they_belong(blocks):
    kernel = kernel_of(shuffled, f"block {blocks}\nwarps 1", **PIXELS)
    x = np.random.default_rng(0).normal(size=(2, 8, 5, 7)).astype(np.float32)

    assert "tl.max_contiguous(" in kernel.source
    (found,) = run_interpreted(kernel, {"x": x}).values()
    assert np.array_equal(found, shuffled(x))


def test_elements_of_two_rows_in_turn_with_lanes_along_two_axes():
    kernel = kernel_of(interleaved, "block A 4, B 2, C 8\nwarps 1", x="A=3 B=2 C=7")
    x = np.random.default_rng(0).normal(size=(3, 2, 7)).astype(np.float32)

    assert "tl.max_constancy(" in kernel.source
    (found,) = run_interpreted(kernel, {"x": x}).values()
    assert np.array_equal(found, interleaved(x))


def test_an_array_whose_elements_are_apart_is_no_row_of_neighbours():
    """The text says that places follow each other; addresses are a stride times as far apart."""
    source = kernel_of(shuffled, "block C 4, D 8, E 1, F 2, G 2\nwarps 1", **PIXELS).source
    assert re.search(r"tl\.max_contiguous\(.*\) \* stride_out_\w+,", source)


@pytest.mark.parametrize("blocks", ["C 4, D 8, E 1, F 2, G 1"])
def test_tiles_of_one_of_the_dims_stay(blocks):
    kernel = kernel_of(shuffled, f"block {blocks}\nwarps 1", **PIXELS)
    assert "tl.max_contiguous(" not in kernel.source


def test_lanes_of_a_warp_lie_along_the_row():
    kernel = kernel_of(shuffled, "block C 16, D 32, F 2, G 2\nwarps 4", x="A=2 B=256 C=28 D=28")
    (entry,) = load_module(kernel.source).KERNELS
    compiled, _ = compiled_entry(entry, target_of("sm_90"))
    text = compiled.asm["ttgir"]
    (layout,) = STORED.findall(text)
    (line,) = [line for line in text.splitlines() if line.startswith(f"#{layout} = ")]
    assert "threadsPerWarp = [1, 32]" in line
