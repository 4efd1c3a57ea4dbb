"""Calls of a library in place of products: which are found, that they compute the same, and when
they are chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.machines import built_in
from blockbuster.machines.library import Convolution, Grid, library_of
from blockbuster.selection.library.extents import Extents, is_even
from blockbuster.selection.library.program import library_program
from tests.interpreted import printed_by

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from tests.selection.calls import (  # noqa: E402 - it imports torch
    HALF,
    calls_of,
    checked,
    drawn,
    half,
    traced,
    with_calls,
)

F = torch.nn.functional


def padded_behind(x, w):
    return F.conv2d(F.pad(x, (0, 1, 0, 1)), w)


def overlapping(x, w):
    """Windows that end where the axis goes on: a library has more of them."""
    windows = x.unfold(2, 3, 1)[:, :, :-1]
    return torch.einsum("nchr,kcr->nkh", windows, w)


def read_before_its_sum(x, w):
    taps = torch.einsum("nchr,kcr->rnkh", x.unfold(2, 2, 1), w)
    return taps.sum(0) + taps.amax(0)


def one_of_several_taps(x, w):
    return F.conv1d(x, w[:, :, 1:2])


def of_first_taps(x, w):
    return torch.einsum("nchr,kcr->nkh", x.unfold(2, 2, 1), w[:, :, :2])


def of_every_second_tap(x, w):
    return torch.einsum("nchr,kcr->nkh", x.unfold(2, 2, 1), w[:, :, ::2])


def phases_of_first_taps(x, w):
    return torch.einsum("nch,ckq->nkhq", x, w[:, :, :2]).flatten(2)


def half_of_its_channels(x, w):
    return F.conv1d(x[:, :2], w)


def scaled_channels(x, w):
    return x * w[:, None, None]


REFUSED = {
    "zeros behind only": (padded_behind, (1, 2, 5, 5), (3, 2, 2, 2)),
    "fewer windows than fit": (overlapping, (2, 3, 9), (4, 3, 3)),
    "taps that are read, too": (read_before_its_sum, (2, 3, 9), (4, 3, 2)),
    "one of several taps": (one_of_several_taps, (2, 3, 9), (4, 3, 3)),
    "the first taps": (of_first_taps, (2, 3, 9), (4, 3, 3)),
    "every second tap": (of_every_second_tap, (2, 3, 9), (4, 3, 4)),
    "phases of the first taps": (phases_of_first_taps, (2, 3, 5), (3, 4, 3)),
    "half of its channels": (half_of_its_channels, (2, 4, 9), (4, 2, 3)),
    "no sum": (scaled_channels, (2, 3, 4, 5), (3,)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_products_are_none(case):
    fn, *shapes = REFUSED[case]
    assert not checked(fn, *(drawn(*shape, seed=n) for n, shape in enumerate(shapes)))


def test_windows_of_an_axis_that_was_cut_before():
    """The pool leaves a share of the axis: not every length that is tried has a whole one."""

    def pooled(x, w):
        y = F.max_pool1d(x, 2)
        return F.conv1d(y, w, stride=2)

    program = bb.trace(pooled, x=torch.zeros(8, 64, 4097), w=torch.zeros(64, 64, 3))
    pooled_to, windows = [one for one in program.equations if one.op == "windows"]
    extents = Extents(program)
    given, count, taps = map(extents.of, (pooled_to.shape[2], windows.shape[1], windows.shape[-1]))
    assert is_even(given, count, taps, 2, 0)
    assert not is_even(given, count, taps, 2, 1)


def in_one_function(q, k, v):
    return F.scaled_dot_product_attention(q, k * 2.0, v)


def by_hand(q, k, v):
    scores = q @ k.T
    return torch.softmax(scores, -1) @ v


def test_calls_round_only_what_eager_execution_rounds():
    """torch's attention keeps its scores in float32; written by hand, they are an array."""
    arrays = [drawn(9, 4, seed=n) for n in range(3)]
    assert not checked(in_one_function, *arrays)
    program, _ = traced(by_hand, *arrays)
    assert len(calls_of(with_calls(program))) == 1
    assert library_program(program, half, half, ()) is None


def test_times_between_and_beyond_what_was_measured():
    grid = Grid(((16, 64), (100, 400)), np.array([[1.0, 2.0], [4.0, 0.0]]))
    assert grid.at(16, 100) == pytest.approx(1.0)
    assert grid.at(32, 100) == pytest.approx(2.0), "half way in logarithms"
    assert grid.at(64, 400) == pytest.approx(8.0), "not measured: as its neighbours grow, at least"
    assert grid.at(128, 800) == pytest.approx(32.0), "beyond, in proportion"
    assert grid.at(1, 1) == pytest.approx(1.0), "below, the time of the edge"


def test_machines_with_a_table():
    h100, h200 = (library_of(built_in(name)) for name in ("h100", "h200"))
    assert h200.product_us(1, 8192, 8192, 512) < h100.product_us(1, 8192, 8192, 512)
    assert h200.convolutions["images"].us is not None
    assert (h200.attention.us == h100.attention.us).all(), "the target's table"
    assert library_of(built_in("a100")) is None
    assert library_of(built_in("cpu")) is None
    known = library_of(built_in("h100"))
    assert known.product_us(1, 4096, 4096, 4095) > known.product_us(1, 4096, 4096, 4096)
    image = Convolution(2, 256, 256, 1, 9, 1, 25088, 25088)
    assert known.convolution_us(replace(image, last=True)) < known.convolution_us(image)
    larger = replace(image, given=10**7, made=10**7)
    thrice = known.convolution_us(replace(larger, given=3 * 10**7, made=3 * 10**7))
    assert thrice == pytest.approx(3 * known.convolution_us(larger)), "images beyond the table"


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("last", [False, True])
def test_every_kind_of_convolution_has_a_time(rank, last):
    us = library_of(built_in("h100")).convolution_us
    plain = Convolution(rank, 64, 64, 1, 3**rank, 1, 2**16, 2**16, last)
    by_groups = [us(replace(plain, groups=groups)) for groups in (1, 8, 64)]
    assert all(0 < taken < 1e4 for taken in by_groups)
    turned = replace(plain, step=2**rank, made=2 ** (16 + rank), turned=True)
    assert us(turned) == pytest.approx(us(replace(turned, given=1))), "of as many elements made"
    assert us(replace(turned, groups=2)) == 2 * us(replace(turned, channels=32, filters=32))


def test_lines_are_told_by_a_table_of_their_own():
    """With channels last, torch moves all elements of lines: no table of images tells that."""
    us = library_of(built_in("h100")).convolution_us
    line = Convolution(1, 256, 256, 1, 3, 1, 32 * 1024, 32 * 1024)
    assert us(line) == pytest.approx(56.7)
    assert us(replace(line, last=True)) == pytest.approx(125)
    assert us(replace(line, given=2**16, made=2**16)) > 1.5 * us(line)


def gram(x):
    return x.T @ x


LONG = dict(K=8192, M=1024)


def test_a_call_is_chosen_where_it_is_faster():
    program = bb.trace(gram, x="K M")
    plan, own = bb.select(program, LONG), bb.select(program, LONG, library=False)
    assert [call.name for call in plan.calls] == ["torch.matmul"]
    assert plan.kernels == 0
    assert own.kernels > 0
    assert not own.calls
    assert plan.total_us < own.total_us
    assert "1 library call" in plan.explain()
    assert "torch.matmul" in plan.explain()
    assert "NOT FUSED" not in plan.explain()
    cost = plan.cost("h200")
    assert cost.time_us == pytest.approx(plan.total_us)
    assert bb.simulate(plan, "h200").time_us == pytest.approx(plan.total_us)
    assert cost.assumed[-1].startswith("torch.matmul: ")
    assert not bb.select(program, LONG, machine="a100").calls, "nothing was measured there"
    small = dict(K=256, M=128)
    assert not bb.select(program, small).calls, "a kernel is as fast"


def test_what_follows_a_call_is_a_kernel():
    def layer(x, b):
        y = x.T @ x
        return bb.relu(y) * b

    program = bb.trace(layer, x="K M", b="M")
    plan = bb.select(program, dict(K=65536, M=1024))
    assert [type(step).__name__ for step in plan.steps] == ["Call", "File"]
    assert plan.kept[plan.calls[0].writes[0]] == HALF, "as the library rounds it"
    assert "behind the library's call" in plan.explain()
    assert plan.cost("h200").time_us == pytest.approx(plan.total_us, rel=0.01)
    elsewhere = plan.cost("a100")  # nothing was measured there
    assert "not counted: torch.matmul" in elsewhere.assumed[-1]


def test_a_plan_with_calls_computes_the_same():
    for name, error in printed_by("tests.selection.library_calls").items():
        assert error < 2e-3, name


def test_a_plan_with_calls_is_saved(tmp_path):
    program = bb.trace(gram, x="K M")
    compiled = bb.compile(program, LONG, machine="h100")
    compiled.save(tmp_path / "plan.json")
    assert bb.load(tmp_path / "plan.json").plan.calls == compiled.plan.calls


def test_parts_with_calls_and_dims_of_their_own_are_priced():
    def shuffled(x, w):
        return torch.tanh(F.pixel_shuffle(F.conv2d(x, w, padding=1), 2))

    x, w = torch.empty(2, 32, 16, 16), torch.empty(12, 32, 3, 3)
    taken = bb.jit(shuffled, machine="h100").plan_for(x.half(), w.half())
    assert taken.total_us > 0
