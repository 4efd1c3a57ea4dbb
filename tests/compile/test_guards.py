"""Arguments that torch's guard takes for those of an earlier call are described as those were."""

import itertools
import threading

import pytest

import blockbuster as bb
from blockbuster.frontend.array import TracedArray
from blockbuster.runtime import launch
from blockbuster.runtime.launch import guard_of
from blockbuster.runtime.tensors import described


@pytest.fixture
def tensors(torch):
    """Tensors that differ in one way each, in memory that is aligned, and again in other memory."""
    flat = torch.zeros(400)
    plain = torch.zeros(8, 16)
    return [
        plain, torch.ones(8, 16), plain.T, torch.zeros(16, 8).T, plain[:4], plain[:, :8],
        torch.zeros(8, 1).expand(8, 16), torch.zeros(128), torch.zeros(8, 16, 1),
        torch.zeros(1, 16).as_strided((1, 16), (5, 1)), torch.zeros(1, 16), torch.zeros(()),
        flat[1:129].view(8, 16), flat[4:132].view(8, 16), plain.half(), plain.bfloat16(),
        plain.int(), torch._neg_view(plain), torch.zeros(8, 16, requires_grad=True),
        torch.nn.Parameter(plain), torch.zeros(8, 0), torch.zeros(8, 16, device="meta"),
    ]  # fmt: skip


def test_what_a_guard_takes_is_described_alike(tensors, torch):
    told = 0
    for modes in itertools.product((torch.no_grad, torch.enable_grad), repeat=2):
        for one in tensors:
            with modes[0]():
                guard, layout = guard_of((one,)), described(one)
            if layout[-1]:  # it is refused, so no call of it is ready
                continue
            for other in tensors if guard else ():
                with modes[1]():
                    if guard((other,)):
                        told += 1
                        assert described(other) == layout
                        assert type(other) is type(one)
    assert told > 4 * len(tensors)


def test_other_arguments_are_never_taken(tensors, torch):
    x, y = tensors[:2]
    guard = guard_of((x, y))

    assert guard((y, x))
    for given in [(), (x,), (x, y, y), (x, 1.0), (x.numpy(), y), (x, None), ([x], y)]:
        assert not guard(given)
    assert guard_of(()) is guard_of((x, 2)) is guard_of((x.numpy(),)) is None
    assert guard_of((torch.zeros(0, 8),)) is guard_of((torch.zeros(9)[1:],)) is None


def test_a_torch_without_guards_is_no_error(tensors, monkeypatch):
    found = launch.import_module

    def missing(name):
        if name != "torch":
            raise ImportError(name)
        return found(name)

    monkeypatch.setattr(launch, "import_module", missing)
    assert guard_of(tensors[:1]) is None


# calls -----------------------------------------------------------------------------------------


def test_layouts_keywords_and_traces_by_turns(torch):
    """Calls that differ from the latest one in one way each."""
    ones = torch.ones(4, 16)
    given = [ones, ones.T, ones[:2], torch.ones(65)[1:].view(4, 16), ones.double(), ones.numpy()]

    @bb.jit
    def scaled(x, factor=3.0):
        return bb.sum(x * factor, axis=0)

    for x, factor in [(x, f) for x in given for f in (None, 2.0)] * 3 + [(ones, None)] * 3:
        found = scaled(x) if factor is None else scaled(x, factor=factor)
        assert found.shape == x.shape[1:]
        assert (found == (factor or 3.0) * x.shape[0]).all()
        assert (scaled(x, 5.0) == 5.0 * x.shape[0]).all()
    for _ in range(3):
        scaled(ones, factor=2.0)
    assert (scaled(ones) == 3.0 * 4).all()
    inner = bb.trace(lambda x: scaled(x) + 1.0, x="M N")
    assert inner.inputs
    assert not isinstance(scaled(ones), TracedArray)


def test_what_is_read_is_looked_at_in_every_call(torch):
    factors = [2.0]
    scaled = bb.jit(lambda x: x * factors[0])
    x = torch.ones(4, 16)

    for factor in (2.0, 2.0, 2.0, 5.0, 5.0, 5.0, 2.0):
        factors[0] = factor
        assert (scaled(x) == factor).all()


def test_threads_with_layouts_of_their_own(torch):
    scaled, failed = bb.jit(lambda x: bb.sum(x, axis=-1)), []

    def work(rows):
        x = torch.ones(rows, rows + 8)
        for _ in range(200):
            found = scaled(x)
            if found.shape != (rows,) or not (found == rows + 8).all():
                failed.append(rows)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (2, 4, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
