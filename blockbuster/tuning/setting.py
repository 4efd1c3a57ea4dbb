"""The setting of a tuned program: the device of its kernels, and how they are chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blockbuster.emit.target.gpu import Gpu
from blockbuster.errors import LaunchError, message
from blockbuster.frontend.arguments import Shape
from blockbuster.frontend.program import ArrayProgram
from blockbuster.machines import AUTO, NAMES, built_in
from blockbuster.machines.present import gpu_name
from blockbuster.runtime.compiled import Compiled
from blockbuster.selection.candidates.candidate import CPU
from blockbuster.selection.plans.asked import Asked
from blockbuster.selection.plans.family import Family
from blockbuster.selection.plans.plan import Plan
from blockbuster.tuning.entry import Entry
from blockbuster.tuning.known import KnownResults
from blockbuster.tuning.measuring import LIMIT, Save, Tell
from blockbuster.tuning.tuner import Tuner, tuner_for

MODEL, MEASURE = "model", "measure"
NO_GPU = "pass tensors on a GPU, or use tune='model', which needs none"


@dataclass(frozen=True)
class Tuning:
    """The way a family's kernels are chosen: by ``known`` results, or by a ``tuner`` as well."""

    known: KnownResults | None = None
    tuner: Tuner | None = None

    def plan(self, family: Family, plan: Callable[[], Plan], save: Save, *, one: bool) -> Plan:
        """The plan that ``plan`` returns, tuned if there is a tuner. ``one``: it is one kernel."""
        return self.tuner.tuned(family, plan, save, one_kernel=one) if self.tuner else plan()

    def entry(self, asked: Asked) -> Entry | None:
        """The measurements of a kernel; None if there are none."""
        return self.known.entry(asked) if self.known else None


def tuning_for(
    tune: str,
    machine: str,
    target: str,
    index: int | None = None,
    *,
    limit: float = LIMIT,
    tell: Tell = lambda _: None,
) -> Tuning:
    """The tuning of kernels for a target. ``machine`` is as the user named it.

    ``index``: the number of the GPU that holds the arrays; None if there are no arrays yet. Raises
    LaunchError if kernels have to be measured and this computer has no such GPU.
    """
    device = device_name(machine, target, index)
    known = KnownResults(device, target) if device else None
    if tune != MEASURE:
        return Tuning(known)
    here = gpu_name()
    if known is None or not here or (index is None and here != device):
        raise LaunchError(message(_not_measurable(target, device, here), hint=NO_GPU))
    return Tuning(known, tuner_for(known, index or 0, limit=limit, tell=tell))


def _not_measurable(target: str, device: str, here: str) -> str:
    """Why kernels for this device or target cannot be measured on the GPU that is here, if any."""
    if not here:
        return "tune='measure' needs a GPU, and there is none here"
    if target == CPU:
        return "tune='measure' needs a GPU, and this program is compiled for the CPU"
    return f"tune='measure' needs the GPU that it compiles for, {device or target}; here is {here}"


def device_name(machine: str, target: str, index: int | None = None) -> str:
    """The driver's name for the device that ``machine`` names; "" if it names no device."""
    if target == CPU:
        return ""
    if machine == AUTO:
        return gpu_name() if index is None else Gpu(index).name
    devices = built_in(machine).devices if machine in NAMES else ()
    return devices[0] if devices else ""


def check_tune(tune: str) -> None:
    """Raise ValueError for a way to choose that there is not."""
    if tune not in (MODEL, MEASURE):
        known = f"known: {MODEL!r}, {MEASURE!r}"
        raise ValueError(message(f"unknown way to tune: {tune!r}", hint=known))


def saved_with(shape: Shape, program: ArrayProgram) -> Save:
    """A function that writes plans of a program into files, for other processes."""
    return lambda plan, path: Compiled(plan, shape, program=program).save(path)
