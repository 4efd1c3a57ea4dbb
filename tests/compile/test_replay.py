"""What a launcher does is noted once and repeated: addresses change, nothing else."""

import sys
from types import SimpleNamespace

import pytest

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.runtime.replay import Replay
from tests.compile.functions import attention, doubled, normal, several, with_custom


class Started:
    """A compiled kernel that only tells how it was started."""

    function, packed_metadata = "function", "metadata"

    def __init__(self, log, **asm):
        self.log, self.asm = log, asm

    def run(self, *arguments):
        self.log.append(arguments)


class Kernel:
    def __init__(self, kernel, log):
        self.__name__, self.arg_names = kernel.__name__, kernel.arg_names
        self.log = log

    def warmup(self, *arguments, grid, **options):
        return Started(self.log)

    def __getitem__(self, grid):
        return lambda *arguments, **options: Started(self.log)


@pytest.fixture
def stage(torch, monkeypatch):
    """A replay of a plan for a GPU, on tensors of the CPU with kernels that do nothing."""

    def zeros(shape, dtype, like):
        return torch.zeros(shape, dtype=getattr(torch, dtype))

    def make(function, *arrays):
        log = []
        plan = bb.jit(function, machine="h100").plan_for(*arrays)
        for file in plan.files:
            module = load_module(file.text)
            monkeypatch.setattr(module.triton.knobs.runtime, "interpret", True)
            monkeypatch.setattr(module, "empty", zeros)
            for entry in module.KERNELS:
                monkeypatch.setitem(entry, "function", Kernel(entry["function"], log))
        gpu = SimpleNamespace(
            dtype=lambda name: getattr(torch, name),
            empty=lambda shape, steps, dtype: torch.zeros(shape, dtype=dtype),
            stream=lambda: 77,
            elsewhere=lambda: False,
        )
        sizes = plan.bind({n: a.shape for n, a in zip(plan.inputs, arrays, strict=True)})
        return Replay(plan, sizes, gpu), log

    return make


@pytest.fixture
def tensors(torch):
    return [torch.from_numpy(a) for a in normal((32, 64), (32, 64), (32, 64))]


def test_the_same_tensor_twice_is_two_arrays(stage, tensors):
    x, y, _ = tensors
    replay, log = stage(lambda x, y: x - y, x, y)

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
    replay, log = stage(attention, q, k, v)  # its loops run in chunks, which others combine

    replay([q, k, v])
    assert not log
    replay([q, k, v])

    assert len(log) >= 2
    first = len(log)
    replay([q, k, v])
    assert [call[6:9] for call in log] == [(None, None, None)] * 2 * first


def test_functions_between_kernels(stage, tensors):
    x, _, _ = tensors
    replay, _ = stage(with_custom(doubled), x)

    (out,) = replay([x])
    assert out.shape == x.shape
    assert replay.notes == ()


def test_functions_that_take_no_tensors_run_on_the_host(stage, tensors):
    x, _, _ = tensors

    def strict(array):
        if hasattr(array, "data_ptr"):
            raise TypeError("NumPy only")
        return array * 2

    replay, _ = stage(with_custom(strict), x)

    for _ in range(2):
        replay([x])
    assert replay.notes == ("strict runs on the host, with copies there and back: NumPy only",)


def test_results_of_functions_are_laid_out_as_recorded(stage, torch, tensors):
    x, _, _ = tensors
    laid_out = []

    def turned(array):
        laid_out.append(array)
        return array.t().contiguous().t()

    replay, log = stage(with_custom(turned), x)

    for _ in range(2):
        replay([x])
    assert len(log) == 2
    assert log[0][9] != 0


def test_results_are_ordered_and_cast_in_every_call(stage, tensors):
    x, w, _ = tensors

    def function(x, w):
        results = several(x, w.T)
        return {**results, "narrow": bb.astype(results["twice"], "float16")}

    replay, _ = stage(function, x, w)
    first, second = ([(r.shape, r.stride(), r.dtype) for r in replay([x, w])] for _ in range(2))

    assert first == second
    assert len({dtype for _, _, dtype in first}) == 2
    assert any(steps[0] == 1 for _, steps, _ in first)


def test_a_repeated_call_does_little(stage, tensors):
    """What a call costs the host, as a count: every step more is paid at every call."""
    x, y, _ = tensors
    replay, _ = stage(lambda x, y: x - y, x, y)
    replay([x, y])
    calls = []

    sys.setprofile(lambda frame, event, argument: calls.append((event, argument)))
    try:
        replay([x, y])
    finally:
        sys.setprofile(None)

    assert sum(event in ("call", "c_call") for event, _ in calls) <= 24
