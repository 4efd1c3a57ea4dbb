"""The names that users give machines, and the targets and devices that kernels are chosen for."""

from __future__ import annotations

from blockbuster.emit.target.gpu import Gpu, current_gpu, gpu_target
from blockbuster.emit.target.targets import TARGETS, decides
from blockbuster.errors import LaunchError, among, message
from blockbuster.machines import AUTO, CPU, GPUS, NAMES, Machine, built_in
from blockbuster.runtime.tensors import Arrays


def known_machine(machine: str) -> str:
    """The target of a machine, empty for "auto"; ValueError for an unknown one, and TypeError for
    what is no name.
    """
    if not isinstance(machine, str):
        what = f"machine is {machine!r}, which is no name of a machine"
        raise TypeError(message(what, hint=f"known: {', '.join((AUTO, *NAMES, *TARGETS))}"))
    if machine == AUTO:
        return ""
    if machine in NAMES:
        return built_in(machine).target
    if machine in TARGETS:
        return machine
    hint = among(machine, (AUTO, *NAMES, *TARGETS))
    raise ValueError(message(f"unknown machine {machine!r}", hint=hint))


def device_for(machine: str, arrays: Arrays | None = None) -> str | Machine:
    """What kernels are chosen for: a GPU with its numbers, an architecture, or "cpu".

    "auto" is the device of the arrays or, without arrays, torch's current GPU: by what `blockbuster
    calibrate` measured, else by its built-in numbers, else by what its driver reports and what a
    related GPU is like. A GPU without kernels of its own gets those of the nearest older one.
    Raises ValueError for an unknown machine and damaged measurements, LaunchError for a GPU that is
    older than all targets.
    """
    named = known_machine(machine)
    if machine in GPUS:
        return decides(built_in(machine))
    if named or (arrays is not None and not arrays.on_gpu):
        return named or CPU
    index = arrays.device.index if arrays is not None else None
    found = gpu_target(index)
    if not found:
        return CPU
    target, own = nearest(found), Gpu(current_gpu() if index is None else index).machine
    return target if own is None else decides(own)


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
