"""Copies have lanes along the last axes of both of their arrays."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.tile.program import Load, statements
from blockbuster.runtime.launch import run_batch


def turned(*axes):
    return lambda x: x.transpose(axes)


def kernel_of(axes, dims, sizes, **options):
    graph = bb.fuse(bb.lower(bb.trace(turned(*axes), x=dims))).final
    return graph, emit(graph, sizes, "float32", **options)


IMAGE = dict(N=2, C=40, H=5, V=20)
# With the dims that have lanes in the end, and the moves for what lowering did not block so.
CASES = [
    ((0, 2, 3, 1), "N C H V", IMAGE, "C V", []),  # channels last: blocked along lines
    ((0, 3, 1, 2), "N H V C", IMAGE, "V C", []),  # and back
    ((0, 2, 3, 1), "N C H V", IMAGE | dict(H=20, V=5), "C H", ["group-heads H for V"]),
    ((2, 3, 1, 0), "K C R S", dict(K=40, C=20, R=3, S=2), "K C", ["group-heads C for S"]),
    ((1, 0, 3, 2), "K C R S", dict(K=40, C=20, R=3, S=2), "K C",
     ["group-heads K for R", "group-heads C for S"]),
    ((1, 0), "M N", dict(M=40, N=50), "M N", []),
]  # fmt: skip


@pytest.mark.parametrize(("axes", "dims", "sizes", "lanes", "moves"), CASES)
def test_lanes_lie_along_dense_axes(axes, dims, sizes, lanes, moves):
    _, kernel = kernel_of(axes, dims, sizes)
    made = [line for line in kernel.schedule.split("\n") if line.startswith("group-heads")]

    assert made == moves
    (load,) = (s for s in statements(kernel.tile_program.nests[0].body) if isinstance(s, Load))
    assert load.target.axes == tuple(lanes.split())


@pytest.mark.parametrize(("axes", "dims", "sizes", "lanes", "moves"), CASES)
def test_they_are_proved(axes, dims, sizes, lanes, moves):
    graph, kernel = kernel_of(axes, dims, sizes)

    assert check_schedule(graph, kernel.schedule, sizes, trials=2).equal


def test_they_are_right():
    jobs, wanted = [], []
    for axes, dims, sizes, _, _ in CASES:
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
    sizes = IMAGE | dict(H=20, V=5)
    _, kernel = kernel_of((0, 2, 3, 1), "N C H V", sizes, tiles={"C": 16, "V": 4})

    assert "group-heads" not in kernel.schedule
    assert "block C 16, V 4" in kernel.schedule
