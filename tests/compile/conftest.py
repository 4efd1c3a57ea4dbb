"""torch for the tests that need it, the one place where they are skipped without it; and a stage,
on which what runs on a GPU is played without one.
"""

from functools import partial

import pytest

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.runtime import compiled, first_launch, replay
from tests.compile.stand_ins import Device, Stage

collect_ignore = ["gpu_kernels.py"]  # no test: a module that needs torch and Triton


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed: pip install torch")


@pytest.fixture
def cuda(torch):
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    return torch.device("cuda")


@pytest.fixture
def stage(torch, monkeypatch):
    """A function's plan for a GPU, for arrays on the CPU, with kernels that only note a start."""
    gpu = Device(torch)

    def make(function, *arrays, constant=(), library=True):
        log = []
        jitted = bb.jit(machine="h100", constant=constant, library=library)(function)
        plan = jitted.plan_for(*arrays)
        for file in plan.files:
            gpu.put_into(load_module(file.text), log, monkeypatch)
        return Stage(plan, gpu, log)

    return make


@pytest.fixture
def on_gpu(torch, monkeypatch):
    """How kernels are started, on tensors of the CPU that pass for those of a GPU."""
    started = []

    def loaded(text):
        return Device(torch).put_into(load_module(text), started, monkeypatch)

    monkeypatch.setattr(replay, "load_module", loaded)
    monkeypatch.setattr(compiled, "Gpu", partial(Device, torch))
    monkeypatch.setattr(compiled.Compiled, "_check", lambda self, found: None)
    monkeypatch.setattr(first_launch.FirstChecks, "admit", lambda *given: None)
    monkeypatch.setattr(first_launch.FirstChecks, "expect_no_capture", lambda *given: None)
    return started
