"""Copies have lanes along the last axes of both of their arrays."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.runtime.launch import run_batch


def turned(*axes):
    return lambda x: x.transpose(axes)


def kernel_of(axes, dims, sizes, **options):
    graph = bb.fuse(bb.lower(bb.trace(turned(*axes), x=dims))).final
    return graph, emit(graph, sizes, "float32", **options)


IMAGE = dict(N=2, C=40, H=5, V=20)
CASES = [
    ((0, 2, 3, 1), "N C H V", IMAGE, "group-heads C for H"),  # channels last
    ((0, 3, 1, 2), "N H V C", IMAGE, ""),  # and back: the last two axes are dense already
    ((2, 3, 1, 0), "K C R S", dict(K=40, C=20, R=3, S=2), "group-heads K for R"),  # filters
    ((1, 0), "M N", dict(M=40, N=50), ""),
]


@pytest.mark.parametrize(("axes", "dims", "sizes", "move"), CASES)
def test_lanes_lie_along_dense_axes(axes, dims, sizes, move):
    _, kernel = kernel_of(axes, dims, sizes)
    moves = [line for line in kernel.schedule.split("\n") if line.startswith("group-heads")]

    assert moves[:1] == [move] * bool(move)


@pytest.mark.parametrize(("axes", "dims", "sizes", "move"), CASES)
def test_they_are_proved(axes, dims, sizes, move):
    graph, kernel = kernel_of(axes, dims, sizes)

    assert check_schedule(graph, kernel.schedule, sizes, trials=2).equal


def test_they_are_right():
    jobs, wanted = [], []
    for axes, dims, sizes, _ in CASES:
        x = np.random.default_rng(0).normal(size=[sizes[d] for d in dims.split()])
        x = x.astype("float32")
        jobs.append((kernel_of(axes, dims, sizes)[1], {"x": x}))
        wanted.append(x.transpose(axes))
    for made, right in zip(run_batch(jobs), wanted, strict=True):
        np.testing.assert_array_equal(made["out"], right)


def test_dims_of_one_size_are_exchanged_together_in_copies():
    """Filters of as many rows as columns: both are single elements then."""
    program = bb.trace(turned(0, 2, 3, 1), x="K C R R")
    graph = bb.fuse(bb.lower(program)).final
    kernel = emit(graph, dict(K=40, C=20, R=3), "float32")
    x = np.arange(40 * 20 * 9, dtype="float32").reshape(40, 20, 3, 3)

    assert "group-heads C for R" in kernel.schedule
    (made,) = run_batch([(kernel, {"x": x})])
    np.testing.assert_array_equal(made["out"], x.transpose(0, 2, 3, 1))


def test_lanes_that_are_asked_for_stay():
    _, kernel = kernel_of((0, 2, 3, 1), "N C H V", IMAGE, tiles={"H": 4, "V": 16})

    assert "group-heads" not in kernel.schedule
