"""Sizes of short dims are constants of kernels, wherever threads hold all of such a dim."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.costs import work_of
from blockbuster.emit.tile.launch_spec import SIZE, Formula
from blockbuster.runtime.launch import run_interpreted
from blockbuster.runtime.numbers import Arithmetic


def over_channels(x):
    return bb.softmax(x, axis=1)


def over_rows(x):
    return bb.softmax(x, axis=2)


def emitted(function, schedule, **sizes):
    graph = bb.fuse(bb.lower(bb.trace(function, x="A B C")))
    return bb.emit(graph, sizes, "float16", "sm_90", schedule=f"{schedule}\nwarps 1")


def channels(count):
    return emitted(over_channels, "block B 8 whole, C 64", A=2, B=count, C=200)


def told(kernel):
    return [start.told for start in kernel.launches.starts]


def test_the_size_of_a_short_dim_is_a_constant():
    kernel = channels(5)

    assert told(kernel) == [(("B", Formula(SIZE, "B")),)]
    assert "B: tl.constexpr" in kernel.source
    assert '"B": 5,' in kernel.source.partition("constants={")[2].partition("}")[0]
    assert "B" not in kernel.launches.starts[0].sizes


def test_kernels_are_known_by_the_sizes_that_they_are_told():
    numbers = Arithmetic(channels(5).launches, str)
    found = [numbers([(1000, 200, 1)], {"A": 2, "B": count, "C": 200}) for count in (5, 7)]

    assert [one.even[0][-1] for one in found] == [5, 7]
    assert found[0].classes == found[1].classes


@pytest.mark.interpreter
@pytest.mark.parametrize("count", [1, 7, 8])
def test_other_sizes_of_the_class_are_right_too(count):
    x = np.random.default_rng(count).normal(size=(2, count, 70)).astype(np.float16)
    (out,) = run_interpreted(channels(5), {"x": x}).values()

    np.testing.assert_allclose(out, over_channels(x.astype(float)), atol=2e-3)


def test_lanes_past_the_end_cost_nothing():
    five, eight = (channels(count) for count in (5, 8))
    works = [work_of(k.tile_program, k.sizes, "sm_90")[0] for k in (five, eight)]
    issued = [sum(phase.instructions for phase in work.phases) for work in works]

    assert issued[0] < 0.8 * issued[1]
    assert works[0].footprint.registers < works[1].footprint.registers


def test_rows_of_memory_full_blocks_and_long_dims_are_told_nothing():
    rows = emitted(over_rows, "block C 8 whole, B 4", A=2, B=9, C=5)
    full = emitted(over_channels, "block B 8 whole, C 64", A=2, B=8, C=200)
    long = emitted(over_channels, "block B 64 whole, C 8", A=2, B=50, C=200)

    assert [told(kernel) for kernel in (rows, full, long)] == [[()], [()], [()]]


def test_products_take_whole_blocks():
    schedule = "block M 16, K 16 whole, N 16\nwarps 4"
    graph = bb.fuse(bb.lower(bb.trace(lambda x, y: x @ y, x="M K", y="K N")))
    kernel = bb.emit(graph, dict(M=64, K=9, N=64), "float16", "sm_90", schedule=schedule)

    assert told(kernel) == [()]
