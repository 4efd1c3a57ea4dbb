"""The names that users give machines, and the targets and devices that kernels are chosen for."""

from __future__ import annotations

from blockbuster.emit.target.compiler import TARGETS, target_of
from blockbuster.emit.target.gpu import Gpu, gpu_target
from blockbuster.errors import LaunchError, among, message
from blockbuster.machines import AUTO, CPU, GPUS, NAMES, Machine, built_in
from blockbuster.runtime.tensors import Arrays


def known_machine(machine: str) -> str:
    """The target of a machine, empty for "auto"; ValueError for an unknown one."""
    if machine == AUTO:
        return ""
    if machine in NAMES:
        return built_in(machine).target
    if machine in TARGETS:
        return machine
    hint = among(machine, (AUTO, *NAMES, *TARGETS))
    raise ValueError(message(f"unknown machine {machine!r}", hint=hint))


def target_for(machine: str, arrays: Arrays | None = None) -> str:
    """The target to compile for: that of a machine; for "auto" that of the device of the arrays.

    A GPU without kernels of its own gets those of the nearest older one. Raises ValueError for an
    unknown machine.
    """
    target = known_machine(machine)
    if target:
        return target
    if arrays is not None and not arrays.on_gpu:
        return CPU
    found = gpu_target(arrays.device.index if arrays is not None else None)
    return nearest(found) if found else CPU


def device_for(machine: str, arrays: Arrays | None = None) -> str | Machine:
    """What kernels are chosen for: a GPU with its numbers, an architecture, or "cpu".

    The name of a GPU means its built-in numbers. "auto" means the GPU of the arrays or, without
    arrays, the first one: by what `blockbuster calibrate` measured, else by its built-in numbers,
    else by what its driver reports and what a related GPU is like. Raises ValueError for an unknown
    machine and damaged measurements.
    """
    target = target_for(machine, arrays)
    if machine in GPUS:
        return decides(built_in(machine))
    if machine != AUTO or target == CPU:
        return target
    index = arrays.device.index if arrays is not None else None
    found = Gpu(index or 0).machine
    return target if found is None else decides(found)


def decides(gpu: Machine) -> str | Machine:
    """What decides for a GPU: its architecture if it has as many processors as the machine that
    stands for that, with the same limits, else its own numbers.

    Cost models were fitted to the machines that stand for architectures. On an H100, 42 kernels
    that its own numbers choose otherwise took 1.02 times as long as those that an H200's choose,
    with a warm cache 1.07 (bench/results/2026-11-25-h100).

    >>> decides(built_in("h100")), decides(built_in("rtx3080")).name
    ('sm_90', 'rtx3080')
    """
    usual = target_of(gpu.target).machine
    alike = (gpu.processors, gpu.limits) == (usual.processors, usual.limits)
    return gpu.target if alike else gpu


def nearest(architecture: str) -> str:
    """The target for a GPU of this architecture; LaunchError if there is none.

    >>> nearest("sm_89"), nearest("sm_103")
    ('sm_80', 'sm_100')
    """
    if architecture in TARGETS:
        return architecture
    if architecture.startswith("sm_"):
        numbers = [int(name[3:]) for name in TARGETS if name.startswith("sm_")]
        older = [number for number in numbers if number <= int(architecture[3:])]
        if older:
            return f"sm_{max(older)}"
    raise LaunchError(
        message(f"no kernels are written for {architecture}", hint=f"known: {', '.join(TARGETS)}")
    )
