"""Kernels are chosen by the numbers of the GPU at hand, or of the one that is named."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster import jitted
from blockbuster.emit.target import gpu
from blockbuster.emit.target.gpu import Gpu
from blockbuster.emit.target.targets import TARGETS, chosen_by, decides, target_of
from blockbuster.machines import GPUS, Launch, built_in
from blockbuster.machines.data_file import machine_text, numbers_of
from blockbuster.machines.measured import measured_path
from blockbuster.runtime import machines
from blockbuster.runtime.machines import device_for
from blockbuster.runtime.tensors import Arrays
from blockbuster.selection.price import priced

SIZES = dict(M=512, N=512, D=64)


def attention(q, k, v):
    return bb.softmax(q @ k.T, axis=-1) @ v


PROGRAM = bb.trace(attention, q="M D", k="N D", v="N D")


def a_gpu(name, *, hip=None, **properties):
    """A ``Gpu`` of this name whose driver reports ``properties``."""
    about = SimpleNamespace(
        major=9, minor=0, multi_processor_count=78, total_memory=96 << 30, L2_cache_size=50 << 20,
        shared_memory_per_multiprocessor=233_472, shared_memory_per_block_optin=232_448,
        regs_per_multiprocessor=65_536, max_threads_per_multi_processor=2048, warp_size=32,
        **properties,
    )  # fmt: skip
    made = Gpu.__new__(Gpu)
    made._device = None
    made._torch = SimpleNamespace(
        version=SimpleNamespace(hip=hip),
        cuda=SimpleNamespace(get_device_name=lambda _: name, get_device_properties=lambda _: about),
    )
    return made


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A user's configuration folder with nothing in it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


# targets --------------------------------------------------------------------------


@pytest.mark.parametrize("name", GPUS)
def test_a_gpu_has_the_target_of_its_architecture_and_its_own_numbers(name):
    target, machine = target_of(built_in(name)), built_in(name)

    assert (target.name, target.machine) == (machine.target, machine)
    assert target_of(name).machine == built_in("h200" if name == "h100" else name)
    assert (target.arch, target.backend) == (
        TARGETS[target.name].arch,
        TARGETS[target.name].backend,
    )
    assert target.shared == machine.limits.shared_per_program
    assert target.processors == machine.processors


@pytest.mark.parametrize("name", GPUS)
def test_dependent_launches_are_a_fact_of_the_architecture(name):
    machine = built_in(name)
    alike = replace(machine, launch=Launch(3e-6, 1e-6, 1e-6))

    overlaps = machine.launch.dependent < machine.launch.graph
    assert target_of(machine).overlaps is target_of(alike).overlaps is overlaps


def test_what_a_user_gives_chooses_itself(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text(machine_text(built_in("h100")), encoding="utf-8")

    assert chosen_by("h100") == "sm_90"
    assert chosen_by(built_in("h100")) is built_in("h100")
    assert chosen_by(mine) == built_in("h100")


def test_a_machine_without_kernels_is_refused():
    with pytest.raises(ValueError, match=r"no kernels are written for cpu, whose target is 'cpu'"):
        target_of(built_in("cpu"))
    with pytest.raises(ValueError, match=r"unknown target 'h101'\n.*did you mean 'h100'\?"):
        target_of("h101")


# the choice -----------------------------------------------------------------------


def test_the_named_gpu_decides_if_it_is_unlike_the_one_that_stands_for_its_architecture():
    names = {"a100": "a100", "rtx3080": "rtx3080", "sm_80": "a100", "h100": "h200"}
    plans = {on: bb.compile(PROGRAM, SIZES, machine=on).plan for on in names}

    costs = {on: plan.files[0].considered.best.cost for on, plan in plans.items()}
    assert {on: cost.machine.name for on, cost in costs.items()} == names
    assert {plan.target for plan in plans.values()} == {"sm_80", "sm_90"}


def test_a_machine_of_ones_own_decides():
    half = replace(built_in("h200"), name="half", processors=66)
    sizes = dict(SIZES, M=8192)
    kernel = bb.emit(bb.fuse(bb.lower(PROGRAM)), sizes, target=half)

    assert kernel.target == "sm_90"
    assert kernel.schedule != bb.emit(bb.fuse(bb.lower(PROGRAM)), sizes).schedule


def test_shared_memory_is_that_of_the_gpu():
    """An RTX 3080 runs the kernels of an A100, but has room for less."""
    matmul = bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N")))
    text = "block M 128, K 64, N 256; warps 8; stage nest 1 K 4"
    made = bb.emit(matmul, dict(M=4096, K=4096, N=4096), target="a100", schedule=text)
    scheduled = made.derivation.final

    assert priced(scheduled).machine.name == "a100"
    with pytest.raises(ValueError, match="shared memory"):
        priced(replace(scheduled, target=target_of("rtx3080")))


# the present GPU ------------------------------------------------------------------


def test_the_gpu_of_the_arrays_decides(monkeypatch):
    asked = []
    monkeypatch.setattr(machines, "gpu_target", lambda index: "sm_86")
    monkeypatch.setattr(
        machines, "Gpu", lambda index: asked.append(index) or a_gpu("NVIDIA GeForce RTX 3080")
    )
    arrays = Arrays({}, SimpleNamespace(type="cuda", index=3), "float16")

    assert device_for("auto", arrays) is built_in("rtx3080")
    assert device_for("rtx6000ada", arrays) is built_in("rtx6000ada")
    assert device_for("h200", arrays) == device_for("h100", arrays) == "sm_90"
    assert asked == [3]


def test_without_arrays_it_is_torchs_current_gpu(monkeypatch):
    asked = []
    monkeypatch.setattr(machines, "gpu_target", lambda index: asked.append(index) or "sm_86")
    monkeypatch.setattr(machines, "current_gpu", lambda: 2)
    monkeypatch.setattr(
        machines, "Gpu", lambda index: asked.append(index) or a_gpu("NVIDIA GeForce RTX 3080")
    )

    assert device_for("auto") is built_in("rtx3080")
    assert asked == [None, 2]


def test_each_gpu_has_kernels_of_its_own(monkeypatch):
    """The same function on two GPUs of one architecture: both are chosen for."""
    at = iter(("a100", "rtx3080", "a100"))
    made = []

    def family_of(program, dtype, device, *more, **named):
        made.append(target_of(device).machine.name)
        return original(program, dtype, "cpu", *more, **named)

    original = jitted.family_of
    monkeypatch.setattr(jitted, "family_of", family_of)
    monkeypatch.setattr(jitted, "device_for", lambda *_: built_in(next(at)))
    fast, x = bb.jit(attention), np.ones((4, 4), "float32")
    for _ in range(3):
        fast.report_for(x, x, x)

    assert made == ["a100", "rtx3080"]


def test_arrays_on_the_cpu_need_no_machine(monkeypatch):
    monkeypatch.setattr(machines, "Gpu", lambda index: pytest.fail("no GPU is asked for"))

    assert device_for("auto", Arrays({}, None, "float32")) == "cpu"
    assert device_for("cpu") == "cpu"


def test_what_was_measured_comes_first():
    mine = replace(built_in("h100"), name="measured", clock=1.5e9)
    path = measured_path("NVIDIA H100 80GB HBM3")
    path.parent.mkdir(parents=True)
    path.write_text(machine_text(mine), encoding="utf-8")

    assert a_gpu("NVIDIA H100 80GB HBM3").machine == mine


def test_launches_cost_what_they_cost_the_machine_that_models_were_fitted_to():
    slow = replace(built_in("h100"), name="measured", launch=Launch(9e-6, 8e-6, 7e-6))
    path = measured_path("NVIDIA H100 80GB HBM3")
    path.parent.mkdir(parents=True)
    path.write_text(machine_text(slow), encoding="utf-8")

    made = a_gpu("NVIDIA H100 80GB HBM3").machine
    assert made == replace(slow, launch=built_in("h100").launch)


def test_fewer_processors_or_other_limits_decide():
    h100 = built_in("h100")
    fewer = replace(h100, processors=114)
    smaller = replace(h100, limits=replace(h100.limits, shared_per_program=101_376))

    assert decides(h100) == decides(built_in("h200")) == "sm_90"
    assert decides(fewer) is fewer
    assert decides(smaller) is smaller


def test_measurements_decide_where_no_model_was_fitted():
    """To an H200 it was, and to no GPU of another architecture."""
    a100 = replace(built_in("a100"), clock=1.2e9)
    b200 = replace(built_in("b200"), clock=1.2e9)

    assert decides(a100) is a100
    assert decides(b200) is b200
    assert decides(built_in("cpu")) is built_in("cpu")


def test_an_unknown_gpu_has_its_own_limits_and_memory():
    made = a_gpu("NVIDIA H20", memory_clock_rate=2_619_000, memory_bus_width=6144).machine

    assert (made.name, made.target, made.processors) == ("NVIDIA H20", "sm_90", 78)
    assert made.memory.bandwidth == pytest.approx(0.9 * 2 * 2.619e9 * 6144 / 8)
    assert target_of(made).machine is made


def test_a_gpu_without_reported_memory_has_that_of_the_related_one():
    assert a_gpu("NVIDIA H20").machine.memory.bandwidth == built_in("h200").memory.bandwidth


def test_an_unknown_gpu_of_amds_is_its_architecture(monkeypatch):
    monkeypatch.setattr(machines, "gpu_target", lambda index: "gfx942")
    monkeypatch.setattr(machines, "Gpu", lambda index: a_gpu("AMD Instinct MI325X", hip="6.2"))

    assert a_gpu("AMD Instinct MI325X", hip="6.2").machine is None
    assert device_for("auto", Arrays({}, SimpleNamespace(type="cuda", index=0), "float16")) == (
        "gfx942"
    )


def test_the_numbers_that_the_driver_reports_are_paths_of_a_machine():
    about = a_gpu("NVIDIA H20")._torch.cuda.get_device_properties(None)

    assert set(gpu.reported_by(about)) < set(numbers_of(built_in("h200")))
