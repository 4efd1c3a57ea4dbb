"""The GPU architectures for which kernels are written, and whose numbers choose the kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from blockbuster.errors import among, message
from blockbuster.machines import AUTO, CPU, GPUS, Machine, built_in, machine


@dataclass(frozen=True)
class Target:
    """A GPU architecture, and the machine of that architecture for which kernels are chosen."""

    name: str
    backend: str
    arch: int | str
    machine: Machine

    @property
    def warp_size(self) -> int:
        """Threads of a warp."""
        return self.machine.limits.warp

    @property
    def shared(self) -> int:
        """Bytes of shared memory that one block of threads can have."""
        return self.machine.limits.shared_per_program

    @property
    def processors(self) -> int:
        """How many blocks of threads run at once at least."""
        return self.machine.processors

    @property
    def overlaps(self) -> bool:
        """True if a kernel can begin before the one before has ended (dependent launches)."""
        return self.backend == "cuda" and int(self.arch) >= FIRST_WITH_DEPENDENT_LAUNCHES


TARGETS: dict[str, Target] = {
    "sm_80": Target("sm_80", "cuda", 80, built_in("a100")),
    "sm_90": Target("sm_90", "cuda", 90, built_in("h200")),
    "sm_100": Target("sm_100", "cuda", 100, built_in("b200")),
    "gfx942": Target("gfx942", "hip", "gfx942", built_in("mi300x")),
}
"""Each architecture, with the machine that stands for it where no other is named."""


def reads_float8(target: Target) -> bool:
    """True if Triton reads float8_e4m3fn on a target: NVIDIA's from sm_89 on. AMD's gfx942 has
    another float of 8 bits.
    """
    return target.backend == "cuda" and int(target.arch) >= FIRST_WITH_FLOAT8


FIRST_WITH_FLOAT8 = 89
FIRST_WITH_DEPENDENT_LAUNCHES = 90


def architecture(device: str | Machine) -> str:
    """The name of a device's target; "cpu" for the CPU. Raises ValueError as ``target_of``."""
    return CPU if device == CPU else target_of(device).name


def target_of(name: str | Machine) -> Target:
    """The target of an architecture, of the name of a built-in GPU, or of a ``Machine``.

    Kernels are chosen by the numbers of ``Target.machine``: those of the ``Machine`` that is given,
    or of the one that ``decides`` for a name. Raises ValueError for an unknown name, and for a
    machine for which no kernels are written.

    >>> [target_of(name).machine.name for name in ("sm_80", "a100", "rtx3080", "h100")]
    ['a100', 'a100', 'rtx3080', 'h200']
    """
    if isinstance(name, str) and name in GPUS:
        name = decides(built_in(name))
    if isinstance(name, str):
        if name not in TARGETS:
            hint = among(name, (*TARGETS, *GPUS))
            raise ValueError(message(f"unknown target {name!r}", hint=hint))
        return TARGETS[name]
    on = machine(name)
    if on.target not in TARGETS:
        what = f"no kernels are written for {on.name}, whose target is {on.target!r}"
        raise ValueError(message(what, hint=f"known targets: {', '.join(TARGETS)}"))
    return replace(TARGETS[on.target], machine=on)


def decides(gpu: Machine) -> str | Machine:
    """Whose numbers choose the kernels of a GPU: its own or, where an architecture is returned,
    those of the machine that stands for this architecture.

    The closed form was fitted to one GPU, an H200 (the machine that has ``choice``). Those with as
    many processors and the same limits are taken for it: on an H100, 42 kernels that its own
    numbers choose otherwise took 1.02 times as long as those that an H200's choose, with a warm
    cache 1.07 (bench/results/2026-11-25-h100).

    >>> decides(built_in("h100")), decides(built_in("rtx3080")).name
    ('sm_90', 'rtx3080')
    """
    usual = TARGETS[gpu.target].machine if gpu.target in TARGETS else gpu
    alike = (gpu.processors, gpu.limits) == (usual.processors, usual.limits)
    return gpu.target if alike and usual.choice is not None else gpu


def chosen_by(on: str | Path | Machine) -> str | Machine:
    """What ``target_of`` takes for kernels that are to run on what ``bb.machine`` takes.

    Numbers that a user gives, as a file or a ``Machine``, choose themselves. Raises ValueError for
    an unknown machine.
    """
    found = machine(on)
    return decides(found) if on in (AUTO, *GPUS) else found
