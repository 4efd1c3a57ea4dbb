"""What is computed of constants: kept for the same tensors with the same values, and no others."""

import gc
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Barrier

import pytest

from blockbuster.runtime.kept import UNCOUNTED, Kept, Pinned


class Gpu:
    """A device whose work is done at once. ``followed``: events that other streams waited for."""

    def __init__(self):
        self.capturing, self.number, self.followed = False, 7, []

    def is_capturing(self):
        return self.capturing

    def stream(self):
        return self.number

    def event(self):
        return f"event of {self.number}"

    def follow(self, event, arrays):
        self.followed.append((event, len(arrays)))

    def current(self):
        return nullcontext()


class Doubled:
    """The doubles of tensors, as they are kept; ``made`` counts how often they were computed."""

    def __init__(self):
        self.kept, self.gpu, self.made = Kept(), Gpu(), 0

    def __call__(self, *tensors, key="doubled"):
        def make():
            self.made += 1
            return [2 * tensor for tensor in tensors]

        found = self.kept.arrays(key, tensors, self.gpu, make)
        return [one.tolist() for one in found]


@pytest.fixture
def doubled():
    return Doubled()


def test_the_same_tensor_is_computed_from_once(torch, doubled):
    w = torch.ones(2)

    assert [doubled(w) for _ in range(3)] == [[[2.0, 2.0]]] * 3
    assert doubled.made == len(doubled.kept) == 1


def changed_in_place(w, torch):
    w.mul_(3)


def changed_through_a_view(w, torch):
    w[1:].fill_(3)


def changed_as_an_alias(w, torch):
    w.detach().copy_(torch.full((2,), 3.0))


def changed_by_out(w, torch):
    torch.add(w, 2.0, out=w)


def changed_in_inference_mode(w, torch):
    with torch.inference_mode():
        w.add_(2.0)


def given_other_memory(w, torch):
    w.data = torch.full((2,), 3.0)


@pytest.mark.parametrize(
    "change",
    [
        changed_in_place, changed_through_a_view, changed_as_an_alias, changed_by_out,
        changed_in_inference_mode, given_other_memory,
    ],
)  # fmt: skip
def test_a_change_is_seen(torch, doubled, change):
    w = torch.ones(2)
    doubled(w)
    change(w, torch)

    assert doubled(w) == [[2 * value for value in w.tolist()]]
    assert w.tolist()[1] == 3.0
    assert doubled.made == 2
    assert len(doubled.kept) == 1


def test_an_optimizers_step_is_a_change(torch, doubled):
    parameter = torch.nn.Parameter(torch.ones(2), requires_grad=True)
    doubled(parameter)
    parameter.grad = torch.full((2,), -2.0)
    torch.optim.SGD([parameter], lr=1.0).step()

    assert doubled(parameter) == [[6.0, 6.0]]


def test_another_tensor_is_another_entry_and_both_stay(torch, doubled):
    one, other = torch.ones(2), torch.zeros(2)
    for _ in range(3):
        assert doubled(one) == [[2.0, 2.0]]
        assert doubled(other) == [[0.0, 0.0]]

    assert doubled.made == len(doubled.kept) == 2


def test_another_object_of_the_same_memory_is_computed_from_anew(torch, doubled):
    """Its own count of changes may miss those of the first."""
    w = torch.ones(2)
    doubled(w)
    doubled(w.data)

    assert doubled.made == 2


def test_the_order_of_constants_and_the_way_count(torch, doubled):
    one, other = torch.ones(2), torch.zeros(2)

    assert doubled(one, other) == [[2.0, 2.0], [0.0, 0.0]]
    assert doubled(other, one) == [[0.0, 0.0], [2.0, 2.0]]
    doubled(one, other, key="of another layout")
    assert doubled.made == 3


def test_one_of_two_that_changes_is_enough(torch, doubled):
    one, other = torch.ones(2), torch.zeros(2)
    doubled(one, other)
    other.add_(1)

    assert doubled(one, other) == [[2.0, 2.0], [2.0, 2.0]]


def test_an_entry_dies_with_its_tensor(torch, doubled):
    w, other = torch.ones(2), torch.zeros(2)
    doubled(w, other)
    del w
    gc.collect()

    assert len(doubled.kept) == 0


def test_memory_that_is_used_again_is_another_tensor(torch, doubled):
    """New tensors in the places of dead ones, objects and memory: never what was kept of those."""
    for value in range(200):
        w = torch.full((2,), float(value))
        assert doubled(w) == [[2.0 * value] * 2]
        del w
    assert len(doubled.kept) == 0


def test_clear_is_for_changes_that_torch_does_not_count(torch, doubled):
    w = torch.ones(2)
    doubled(w)
    w.data.mul_(3)
    assert doubled(w) == [[2.0, 2.0]]  # documented: nobody sees it

    doubled.kept.clear()
    assert doubled(w) == [[6.0, 6.0]]


def test_tensors_without_a_count_are_computed_from_in_every_call(torch, doubled):
    with torch.inference_mode():
        w = torch.ones(2)
        doubled(w)
        w.mul_(3)
        assert doubled(w) == [[6.0, 6.0]]

    assert len(doubled.kept) == 0
    assert doubled.kept.note == UNCOUNTED


def test_in_a_graph_of_the_callers_it_is_computed_in_the_graph(torch, doubled):
    w = torch.ones(2)
    doubled(w)
    doubled.gpu.capturing = True
    doubled(w)
    doubled(w)

    assert doubled.made == 3


def test_another_stream_waits_for_the_one_that_computed(torch, doubled):
    w = torch.ones(2)
    doubled(w)
    doubled(w)
    assert doubled.gpu.followed == []

    doubled.gpu.number = 8
    doubled(w)
    assert doubled.gpu.followed == [("event of 7", 1)]
    assert doubled.made == 1


def test_threads_compute_once(torch, doubled):
    w, together = torch.ones(2), Barrier(8)

    def call(_):
        together.wait()
        return doubled(w)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(call, range(8))) == [[[2.0, 2.0]]] * 8
    assert doubled.made == 1


def test_an_error_leaves_no_entry(torch, doubled):
    w = torch.ones(2)

    def fails():
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        doubled.kept.arrays("doubled", [w], doubled.gpu, fails)
    assert doubled(w) == [[2.0, 2.0]]


def test_what_is_pinned_stays(torch, doubled):
    w = torch.ones(2)
    pinned = Pinned([w])
    w.mul_(3)

    assert pinned.arrays("any", [torch.zeros(2)], doubled.gpu, lambda: []) == [w]
