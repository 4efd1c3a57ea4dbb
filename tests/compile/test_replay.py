"""What a launcher does is noted once and repeated: addresses change, nothing else."""

import sys
from itertools import pairwise

import pytest

import blockbuster as bb
from tests.compile.functions import attention, doubled, normal, several, with_custom


@pytest.fixture
def tensors(torch):
    return [torch.from_numpy(a) for a in normal((32, 64), (32, 64), (32, 64))]


def test_the_same_tensor_twice_is_two_arrays(stage, tensors):
    x, y, _ = tensors
    staged = stage(lambda x, y: bb.softmax(x - y), x, y)
    replay, log = staged.replay([x, y]), staged.log

    replay([x, x])
    (first,) = replay([x, y])
    (second,) = replay([y, x])

    heads = [(call[9], call[10], call[11]) for call in log]
    assert heads == [
        (x.data_ptr(), y.data_ptr(), first.data_ptr()),
        (y.data_ptr(), x.data_ptr(), second.data_ptr()),
    ]
    grid, metadata = log[0][:3], log[0][4:6]
    assert grid[1:] == (1, 1)
    assert log[0][3] == 77
    assert metadata == ("function", "metadata")
    assert log[0][12:] == log[1][12:]  # sizes, strides and constants


def test_workspaces_are_new_each_time_and_in_order(stage, torch):
    q, k, v = torch.zeros(16, 128), torch.zeros(1000, 128), torch.zeros(1000, 128)
    staged = stage(attention, q, k, v)  # its loops run in chunks, which others combine
    replay, log = staged.replay([q, k, v]), staged.log

    replay([q, k, v])
    assert not log
    replay([q, k, v])

    assert len(log) >= 2
    first = len(log)
    replay([q, k, v])
    assert [call[6:9] for call in log] == [(None, None, None)] * 2 * first


def test_workspaces_lie_apart_in_one_allocation(stage, torch):
    q, k, v = torch.zeros(1, 64), torch.zeros(4096, 64), torch.zeros(4096, 64)
    staged = stage(attention, q, k, v)
    replay, log, asked = staged.replay([q, k, v]), staged.log, []
    replay([q, k, v])
    (play, *_), = replay._tape.moves
    made, inputs = play.made, 3
    assert len(made) > 2
    assert play.room is not None

    def empty(*given):
        asked.append(staged.gpu.empty(*given))
        return asked[-1]

    play = play._replace(empty=empty)
    (out,) = play([q, k, v])

    result, space = asked
    assert result is out
    ends = {}
    for (kernel, _), call in zip(play.launches, log[-len(play.launches) :], strict=True):
        for number, address in zip(kernel.arrays, call[9:], strict=False):
            if number > inputs:
                shape, _, dtype = made[number - inputs]
                ends[address] = address + torch.Size(shape).numel() * dtype.itemsize
    begins = sorted(ends)
    assert len(begins) == len(made) - 1
    assert begins[0] == space.data_ptr()
    assert all((begin - begins[0]) % 16 == 0 for begin in begins)
    assert all(ends[one] <= other for one, other in pairwise(begins))
    assert ends[begins[-1]] <= space.data_ptr() + space.numel()


def test_functions_between_kernels(stage, tensors):
    x, _, _ = tensors
    staged = stage(with_custom(doubled), x)
    replay = staged.replay([x])

    (out,) = replay([x])
    assert out.shape == x.shape
    assert replay.notes == ()


def test_functions_that_take_no_tensors_run_on_the_host(stage, tensors):
    x, _, _ = tensors

    def strict(array):
        if hasattr(array, "data_ptr"):
            raise TypeError("NumPy only")
        return -array  # overflows for no number: without a GPU, nothing has written the operand

    staged = stage(with_custom(strict), x)
    replay = staged.replay([x])

    for _ in range(2):
        replay([x])
    assert replay.notes == ("strict runs on the host, with copies there and back: NumPy only",)


def test_results_of_functions_are_laid_out_as_recorded(stage, torch, tensors):
    x, _, _ = tensors
    laid_out = []

    def turned(array):
        laid_out.append(array)
        return array.t().contiguous().t()

    staged = stage(with_custom(turned), x)
    replay, log = staged.replay([x]), staged.log

    for _ in range(2):
        replay([x])
    assert len(log) == 2
    assert log[0][9] != 0


def test_results_are_ordered_and_cast_in_every_call(stage, tensors):
    x, w, _ = tensors

    def function(x, w):
        results = several(x, w.T)
        return {**results, "narrow": bb.astype(results["twice"], "float16")}

    staged = stage(function, x, w)
    replay = staged.replay([x, w])
    first, second = ([(r.shape, r.stride(), r.dtype) for r in replay([x, w])] for _ in range(2))

    assert first == second
    assert len({dtype for _, _, dtype in first}) == 2
    assert any(steps[0] == 1 for _, steps, _ in first)


def test_a_repeated_call_does_little(stage, tensors):
    """What a call costs the host, as a count: every step more is paid at every call."""
    x, y, _ = tensors
    staged = stage(lambda x, y: bb.softmax(x - y), x, y)
    replay = staged.replay([x, y])
    replay([x, y])
    calls = []

    sys.setprofile(lambda frame, event, argument: calls.append((event, argument)))
    try:
        replay([x, y])
    finally:
        sys.setprofile(None)

    assert sum(event in ("call", "c_call") for event, _ in calls) <= 24
