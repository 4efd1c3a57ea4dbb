"""New sizes on a GPU, through the whole call of a jitted function: little work, the same starts."""

import gc
import sys

import pytest

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.runtime import compiled, first_launch, replay
from tests.compile.functions import attention, normal, several
from tests.compile.test_relaunch import appended, pointers
from tests.compile.test_replay import Kernel


def views_and_casts(x, w):
    results = several(x, w.T)
    return {**results, "narrow": bb.astype(results["twice"], "float16")}


FUNCTIONS = {
    "attention": (attention, lambda n: [(16, 64), (n, 64), (n, 64)]),
    "appended": (appended, lambda n: [(4, 64), (n, 64), (3, 64)]),
    "views and casts": (views_and_casts, lambda n: [(n, 64), (32, 64)]),
}


@pytest.fixture
def log(torch, monkeypatch):
    """How kernels are started, on tensors of the CPU that pass for those of a GPU."""
    started = []

    def zeros(shape, dtype, like):
        return torch.zeros(shape, dtype=getattr(torch, dtype))

    class Device:
        def __init__(self, index):
            self.index = index

        def dtype(self, name):
            return getattr(torch, name)

        def empty(self, shape, steps, dtype):
            return torch.empty_strided(shape, steps, dtype=dtype)

        def stream(self):
            return 77

        def elsewhere(self):
            return False

    def loaded(text):
        module = load_module(text)
        monkeypatch.setattr(module.triton.knobs.runtime, "interpret", True)
        monkeypatch.setattr(module, "empty", zeros)
        for entry in module.KERNELS:
            if not isinstance(entry["function"], Kernel):
                monkeypatch.setitem(entry, "function", Kernel(entry["function"], started))
        return module

    monkeypatch.setattr(replay, "load_module", loaded)
    monkeypatch.setattr(compiled, "Gpu", Device)
    monkeypatch.setattr(compiled.Compiled, "_check", lambda self, found: None)
    monkeypatch.setattr(first_launch.FirstChecks, "admit", lambda *given: None)
    monkeypatch.setattr(first_launch.FirstChecks, "expect_no_capture", lambda *given: None)
    return started


def forms(results):
    found = results.values() if isinstance(results, dict) else [results]
    return [(result.shape, result.stride(), result.dtype) for result in found]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_new_size_starts_what_a_function_compiled_for_it_starts(name, log, torch):
    function, shapes = FUNCTIONS[name]

    def starts(jitted, n):
        given = [torch.from_numpy(array) for array in normal(*shapes(n))]
        first = forms(jitted(*given))
        log.clear()
        assert forms(jitted(*given)) == first
        return [call[:4] + call[9 + pointers(call) :] for call in log], first

    jitted = bb.jit(function, machine="h100")
    for n in (1000, 1001, 1003, 1008, 1009, 999):
        assert starts(jitted, n) == starts(bb.jit(function, machine="h100"), n), n


@pytest.mark.parametrize(("name", "most"), [("attention", 130), ("appended", 160)])
def test_a_new_size_takes_few_calls_more_than_a_known_layout(name, most, log, torch):
    function, shapes = FUNCTIONS[name]
    jitted = bb.jit(function, machine="h100")

    def events(n):
        given = [torch.from_numpy(array) for array in normal(*shapes(n))]
        seen = []
        gc.disable()
        sys.setprofile(lambda frame, event, argument: seen.append(event))
        try:
            jitted(*given)
        finally:
            sys.setprofile(None)
            gc.enable()
        return sum(event in ("call", "c_call") for event in seen)

    for n in (1001, 1003):
        events(n)
    new = events(1007)
    assert new - events(1007) <= most
