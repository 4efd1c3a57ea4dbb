"""Whole calls as CUDA graphs: which calls are one recording, and what of the call it is."""

from contextlib import contextmanager

import pytest

import blockbuster as bb
from blockbuster.errors import LaunchError
from blockbuster.runtime.graphs import KEPT, Graphed


class Gpu:
    """Records what a function gives for the values that tensors have when it is replayed."""

    def __init__(self):
        self.capturing, self.other, self.recordings, self.entered = False, False, 0, 0

    def is_capturing(self):
        return self.capturing

    def elsewhere(self):
        return self.other

    @contextmanager
    def current(self):
        self.entered += 1
        yield

    def recorded(self, work):
        self.recordings += 1
        results = [made.clone() for made in work()]

        def replay():
            for place, made in zip(results, work(), strict=True):
                place.copy_(made)

        return replay, results


class Sum:
    """What runs a plan: the sum of two tensors. ``on_host``: functions that run there."""

    notes, assemblers, on_host = ("a note",), ("ptxas 13.3",), ()

    def __call__(self, tensors):
        x, y = tensors
        return [x + y]

    def pinned(self, tensors):
        return self, []


@pytest.fixture
def gpu():
    return Gpu()


@pytest.fixture
def graphed(gpu):
    return Graphed(Sum(), gpu)


def test_the_same_tensors_are_one_recording_and_new_values_count(torch, gpu, graphed):
    x, y = torch.ones(4), torch.ones(4)
    (first,) = graphed([x, y])
    assert first.tolist() == [2.0] * 4
    x.fill_(5.0)

    (second,) = graphed([x, y])

    assert second.tolist() == [6.0] * 4
    assert second is first  # overwritten
    assert gpu.recordings == 1


def test_tensors_elsewhere_are_another_recording(torch, gpu, graphed):
    x, y, z = torch.ones(4), torch.ones(4), torch.zeros(4)
    (first,), (second,) = graphed([x, y]), graphed([x, z])
    (third,) = graphed([z, x])  # the same, in another order

    assert [first.tolist()[0], second.tolist()[0], third.tolist()[0]] == [2.0, 1.0, 1.0]
    assert gpu.recordings == 3
    graphed([x, y])
    graphed([x, z])
    assert gpu.recordings == 3


def test_few_recordings_are_kept_with_what_they_read(torch, gpu, graphed):
    y = torch.ones(4)
    others = [torch.full((4,), float(at)) for at in range(KEPT + 1)]
    for x in others:
        graphed([x, y])
    graphed([others[-1], y])
    assert gpu.recordings == KEPT + 1
    graphed([others[0], y])
    assert gpu.recordings == KEPT + 2

    kept = [made.reads[0].data_ptr() for made in graphed._recorded.values()]
    assert kept == [x.data_ptr() for x in (*others[2:], others[0])]


def test_inside_a_graph_of_the_callers_kernels_are_launched(torch, gpu, graphed):
    x, y = torch.ones(4), torch.ones(4)
    graphed([x, y])
    gpu.capturing = True
    (made,) = graphed([x, y])
    (other,) = graphed([y, x])
    assert made is not other
    assert gpu.recordings == 1


def test_another_current_device_is_left_for_the_replay(torch, gpu, graphed):
    gpu.other = True
    graphed([torch.ones(4), torch.ones(4)])
    assert gpu.entered == 1


def test_a_function_on_the_host_is_refused(torch, gpu):
    run = Sum()
    run.on_host = ("inside runs on the host, with copies there and back: NumPy only",)
    with pytest.raises(LaunchError, match="cannot become a graph: inside runs on the host"):
        Graphed(run, gpu)([torch.ones(4), torch.ones(4)])


def test_notes_are_those_of_the_plan(graphed):
    assert graphed.notes == ("a note",)
    assert graphed.assemblers == ("ptxas 13.3",)


def test_arrays_on_the_cpu_have_no_graph(torch):
    double = bb.jit(lambda x: x * 2, graph=True)
    said = r"(?s)needs a GPU, and .* runs on the CPU.*leave out graph=True"
    with pytest.raises(LaunchError, match=said):
        double(torch.ones(4))
