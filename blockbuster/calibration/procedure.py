"""Calibration of the present GPU or CPU: all probes in turns, then the machine made of them."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import metadata

from blockbuster.calibration.cpu_probes import cpu_numbers, cpu_probes
from blockbuster.calibration.gpu_device import Device, torch_with_gpu
from blockbuster.calibration.gpu_probes import gpu_probes
from blockbuster.calibration.probe import Measured, measure
from blockbuster.calibration.result import Calibration, Scale, calibrated
from blockbuster.machines import CPU, Machine, built_in, related
from blockbuster.machines.data_file import numbers_of
from blockbuster.machines.present import cpu_name, gpu_name

ROUNDS = 9
Tell = Callable[[str], None]


def present_device(kind: str) -> str:
    """The name of the device that would be measured; ``kind``: "auto", "gpu" or "cpu".

    Raises LaunchError if it is a GPU that cannot be measured, or there is none.
    """
    if not _is_gpu(kind):
        return cpu_name()
    torch = torch_with_gpu()
    return gpu_name() or str(torch.cuda.get_device_name())


def check_rounds(rounds: int) -> None:
    """Raises ValueError for less than one round."""
    if rounds < 1:
        raise ValueError(f"a constant is measured in 1 round or more, not {rounds}")


def _is_gpu(kind: str) -> bool:
    return kind == "gpu" or (kind == "auto" and bool(gpu_name()))


def calibrate(kind: str, *, rounds: int, tell: Tell) -> Calibration:
    """Measure the present GPU ("gpu") or CPU ("cpu"); "auto" is the GPU if there is one.

    Each constant is the median of ``rounds`` values; ``tell`` is called with the name of the next
    measurement. Raises LaunchError if there is no GPU, or none that can be measured, and ValueError
    for less than one round.
    """
    check_rounds(rounds)
    return _gpu(rounds, tell) if _is_gpu(kind) else _cpu(rounds, tell)


def _gpu(rounds: int, tell: Tell) -> Calibration:
    device = Device()
    base = related(device.name, device.architecture)
    found = measure(gpu_probes(device), rounds=rounds, tell=tell)
    machine = calibrated(base, device.numbers(), found, gpu_derived(base, found))
    return _calibration(device.name, machine, base, found)


def _cpu(rounds: int, tell: Tell) -> Calibration:
    base = built_in(CPU)
    known = numbers_of(base)  # some CPUs have a fourth cache, which no model knows
    reported = {path: number for path, number in cpu_numbers().items() if path in known}
    sizes = {t.name: reported.get(f"tiers.{t.name}.bytes", t.bytes) for t in base.tiers}
    found = measure(cpu_probes(sizes), rounds=rounds, tell=tell)
    machine = calibrated(base, reported, found, CPU_DERIVED)
    return _calibration(cpu_name(), machine, base, found)


def _calibration(
    device: str, machine: Machine, base: Machine, found: tuple[Measured, ...]
) -> Calibration:
    named = replace(machine, name=f"{base.name}-measured", devices=(device,), choice=None)
    return Calibration(device, named, base, found, _about())


def gpu_derived(base: Machine, found: tuple[Measured, ...]) -> Mapping[str, tuple[Scale, str]]:
    """A GPU's numbers that follow from measured ones; cycles and lanes are the base's."""
    like = f"derived: as of {base.name}"

    def rate(tier: str) -> Scale:
        each = base.tier(tier).bandwidth / (base.processors * base.clock)
        return lambda machine: each * machine.processors * machine.clock

    def latency(tier: str) -> Scale:
        cycles = base.tier(tier).latency * base.clock
        return lambda machine: cycles / machine.clock

    derived: dict[str, tuple[Scale, str]] = {}
    for tier in ("shared", "registers"):
        why = f"{like} for each processor and cycle; times processors and clock"
        derived[f"tiers.{tier}.bandwidth"] = (rate(tier), why)
        derived[f"tiers.{tier}.latency"] = (latency(tier), f"{like} in cycles; over clock")
    derived["launch.dependent"] = _dependent({one.path: one.value for one in found})
    return derived


def _dependent(found: Mapping[str, float]) -> tuple[Scale, str]:
    """A dependent launch is one in a graph, less what it saves between busy kernels."""
    if "record.launch.dependent" not in found:
        why = "as in a graph: there is no dependent launch below compute capability 9.0"
        return (lambda machine: machine.launch.graph), why
    saved = found["record.launch.graph"] - found["record.launch.dependent"]
    why = "derived: launch.graph, less what dependent launch saves between busy kernels"
    return (lambda machine: max(0.0, machine.launch.graph - saved)), why


AS_FLOAT32 = "as float32: NumPy's text of a kernel computes in it"
CPU_DERIVED: Mapping[str, tuple[Scale, str]] = {
    "compute.matrix.float16": (lambda m: m.rate("matrix", "float32"), AS_FLOAT32),
    "compute.matrix.bfloat16": (lambda m: m.rate("matrix", "float32"), AS_FLOAT32),
    "issue": (lambda m: 4 * m.processors * m.clock, "assumed: four instructions a cycle and core"),
    "launch.graph": (lambda m: m.launch.plain, "as plain: a CPU knows no other way"),
    "launch.dependent": (lambda m: m.launch.plain, "as plain: a CPU knows no other way"),
    "limits.shared_per_program": (lambda m: m.tier("l2").bytes, "the L2 cache of a core"),
    "limits.shared_per_processor": (lambda m: m.tier("l2").bytes, "the L2 cache of a core"),
}


def _about() -> dict[str, str]:
    versions = {"date": datetime.date.today().isoformat(), "python": platform.python_version()}
    for package in ("numpy", "torch", "triton"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
