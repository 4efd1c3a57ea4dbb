"""The catalog of machines: built in, measured on this computer, or in a file of the user's."""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path

from blockbuster.errors import among, message, shown
from blockbuster.machines.data_file import read_machine
from blockbuster.machines.machine import Choice, Machine
from blockbuster.machines.measured import measured
from blockbuster.machines.present import cpu_name, gpu_name

AUTO = "auto"
CPU = "cpu"
GPUS = ("h200", "h100", "a100", "b200", "mi300x", "rtx6000ada", "rtx3080")
NAMES = (*GPUS, CPU)
"""The built-in machines; each is a file of its name in ``data``."""


def machine(name: str | Path | Machine) -> Machine:
    """A machine by its name, the path of its file, or "auto": the one on which this process runs.

    "auto" is what ``blockbuster calibrate`` has measured on the first GPU, or on the CPU if there
    is no GPU; before calibration, the built-in data of that GPU or of "cpu". A ``Machine`` is
    returned unchanged. Raises ValueError for an unknown name or a GPU without data, and OSError for
    a file that cannot be read.

    >>> machine("h200").processors
    132
    >>> machine("a100").rate("matrix", "float8")
    Traceback (most recent call last):
    ValueError: a100 has no rate of matrix units for float8
      hint: known: matrix float16, matrix bfloat16, matrix tf32, matrix float64, vector float32, \
vector float64
    """
    if isinstance(name, Machine):
        return name
    if not isinstance(name, str | Path):
        raise TypeError(f"a machine is a name, a path or a Machine, not {type(name).__name__}")
    if isinstance(name, Path) or name.endswith(".toml"):
        return read_machine(Path(name).read_text(encoding="utf-8"), str(name))
    if name == AUTO:
        return _present()
    if name in NAMES:
        return built_in(name)
    hint = f"{among(name, (AUTO, *NAMES))}, or the path of a .toml file"
    raise ValueError(message(f"unknown machine {shown(name)!r}", hint=hint))


@functools.cache
def built_in(name: str) -> Machine:
    """The built-in machine of this name, which is one of ``NAMES``."""
    data = resources.files("blockbuster.machines") / "data" / f"{name}.toml"
    return read_machine(data.read_text(encoding="utf-8"), f"{name}.toml")


def choice_weights() -> Choice:
    """The weights of the choice between kernels, for every target: they were fitted on an H200."""
    found = built_in("h200").choice
    assert found is not None, "h200.toml has a table of them"
    return found


def known_device(device: str) -> Machine | None:
    """The built-in machine that drivers call ``device``; None if there is none."""
    return next((m for m in map(built_in, GPUS) if device in m.devices), None)


def _present() -> Machine:
    gpu = gpu_name()
    found = measured(gpu or cpu_name())
    if found is not None:
        return found
    if not gpu:
        return built_in(CPU)
    known = known_device(gpu)
    if known is None:
        hint = "measure it with `blockbuster calibrate`, or name a machine: " + ", ".join(NAMES)
        raise ValueError(message(f"there is no data of this GPU, {shown(gpu)!r}", hint=hint))
    return known
