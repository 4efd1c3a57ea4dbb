"""Descriptors of a recorded launch are made anew for the arrays of each call and each layout."""

import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.target.load import load_module
from blockbuster.runtime.file_launches import FileLaunches
from blockbuster.runtime.kept import Kept
from tests.compile.stand_ins import Device

SCHEDULE = "block M 16, K 16, N 16\nwarps 4\nstage nest 1 K 3 by descriptors\n"


@pytest.fixture
def recorded(torch, monkeypatch):
    """What launches x @ w for arrays of a layout, all launches of a kind, and what was started."""
    program = bb.trace(lambda x, w: x @ w, x="M K", w="K N")
    sizes = dict(M=64, K=64, N=64)
    graph = bb.fuse(bb.lower(program)).final
    kernel = emit(graph, sizes, "float32", "sm_90", schedule=SCHEDULE)
    gpu, log = Device(torch), []
    module = gpu.put_into(load_module(kernel.source), log, monkeypatch)
    known = FileLaunches(module, kernel.launches, gpu)

    def launches(x, w):
        size = dict(M=x.shape[0], K=x.shape[1], N=w.shape[1])
        found = known.laid([x, w], size)
        if found is None:
            first = known.first([x, w], size, Kept(), gpu.empty)
            known.learn(first.pattern, first.laid)
            found = first.laid
        return found

    return launches, known, log


def described(call):
    """The descriptors that a kernel was started with."""
    return [given for given in call[9:] if hasattr(given, "block_shape")]


def test_descriptors_are_of_the_arrays_of_the_call(recorded, torch):
    launches, _, log = recorded
    x, w, other = (torch.zeros(64, 64) for _ in range(3))
    laid = launches(x, w)

    laid([x, w])
    laid([other, w])

    bases = [[one.base for one in described(call)] for call in log]
    assert [[base.data_ptr() for base in pair] for pair in bases] == [
        [x.data_ptr(), w.data_ptr()], [other.data_ptr(), w.data_ptr()],
    ]  # fmt: skip
    assert all(one.block_shape == [16, 16] for call in log for one in described(call))


def test_another_layout_of_the_kind_gets_its_own_shapes_and_strides(recorded, torch):
    launches, known, log = recorded
    launches(torch.zeros(64, 64), torch.zeros(64, 64))
    x, w = torch.zeros(128, 96)[:, :80], torch.zeros(80, 48)

    laid = known.laid([x, w], dict(M=128, K=80, N=48))
    laid([x, w])

    one, other = described(log[-1])
    assert (list(one.shape), list(one.strides)) == ([128, 80], [96, 1])
    assert (list(other.shape), list(other.strides)) == ([80, 48], [48, 1])


def test_arrays_without_descriptors_are_of_another_kind(recorded, torch):
    """Turned, apart by odd steps, standing still: none has one, and none takes what does."""
    launches, known, log = recorded
    x, w = torch.zeros(64, 64), torch.zeros(64, 64)
    launches(x, w)
    size = dict(M=64, K=64, N=64)

    assert known.laid([x, w.T], size) is None
    assert known.laid([x, torch.zeros(64, 68)[:, :64]], size) is None
    assert known.laid([x, torch.zeros(1, 64).expand(64, 64)], size) is None
    launches(x, w.T)([x, w.T])
    assert len(described(log[-1])) == 1
