"""Places of windows in kernels: what loops shift is one sum, and one comparison tests an axis."""

from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.trips import bound_sizes
from blockbuster.runtime.launch import run_batch

CROPPED = (-2, 1, 3, -1)
"""Columns and rows that stand before and behind an image; those below 0 are left out."""


def convolved(*geometry):
    """``geometry``: stride, padding and dilation."""
    return lambda x, w: F.conv2d(x, w, None, *geometry)


def cropped(x, w):
    return F.conv2d(F.pad(x, CROPPED), w)


def highest(x, w):
    """A pool, whose taps are written out."""
    return F.max_pool2d(x, 3, 2, 1) + w[0, 0, 0, 0]


def job(fn, seed=0):
    """The kernel of a function of an image and filters, that fill no block, and the two."""
    drawn = np.random.default_rng(seed)
    shapes = {"x": (2, 3, 5, 4), "w": (5, 3, 3, 3)}
    arrays = {n: drawn.integers(-4, 5, s).astype("float32") for n, s in shapes.items()}
    graph = bb.fuse(bb.lower(bb.trace(fn, **arrays))).final
    return emit(graph, bound_sizes(lower_to_tiles(graph), shapes), "float32"), arrays


def test_places_outside_read_zeros():
    """Of small integers sums are exact: strides, dilations, a padding larger than the image."""
    geometries = ((1, 1, 1), (2, 3, 2), (1, (0, 7), (2, 1)))
    fns = (*(convolved(*geometry) for geometry in geometries), cropped, highest)
    jobs = [job(fn) for fn in fns]
    for kernel, arrays in jobs[1:2]:  # offsets of 64 bits, as those of large arrays
        wide = kernel.source.replace("default=0) >= 2**31", "default=0) >= 2")
        assert wide != kernel.source
        jobs.append((replace(kernel, source=wide), arrays))

    for made, fn, (_, arrays) in zip(run_batch(jobs), (*fns, fns[1]), jobs, strict=True):
        right = fn(*map(torch.tensor, arrays.values())).numpy()
        np.testing.assert_array_equal(made["out"], right)


def test_what_loops_shift_is_one_sum_and_an_axis_one_comparison():
    source = job(convolved(1, 1, 1))[0].source
    kernel = source[source.index("_kernel(") : source.index("# for compiling")]

    assert "x_ptr + ((f - 1) * stride_x_c + (f2 - 1) * stride_x_d + (offs_a[:, None]" in kernel
    assert "_within(offs_g[:, None] + f - 1, C) & _within(offs_h[:, None] + f2 - 1, D)" in kernel
    assert ">= 0" not in kernel
