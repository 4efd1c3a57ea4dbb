"""The room that one program takes on a processor, and how many programs fit side by side.

Both figures are estimates of a compiler's output for a nest: bytes of shared memory
(``emit/tile/shared_memory.py``) and registers of a thread (``registers.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from blockbuster.costs.registers import registers
from blockbuster.emit.tile.layouts import Layouts
from blockbuster.emit.tile.shared_memory import shared_by
from blockbuster.errors import message
from blockbuster.machines.machine import Machine


@dataclass(frozen=True)
class Footprint:
    """``shared``: bytes of shared memory. ``registers``: of a thread. ``warps``: of a program.

    ``doubt``: how far the registers may be off, as a standard deviation; 0 if they are known, or
    taken as known.
    """

    shared: int
    registers: int
    warps: int
    doubt: int = 0

    def available(self, machine: Machine) -> int:
        """The registers that a thread can have, at most: what it wants beyond them is spilled."""
        limits = machine.limits
        shared_out = limits.registers_per_processor // (self.warps * limits.warp)
        grain = limits.register_unit // limits.warp
        return min(limits.registers_per_thread + 1, max(1, shared_out // grain) * grain)

    def misfit(self, machine: Machine) -> str:
        """Why no program fits a processor of ``machine``; empty if one does."""
        limits = machine.limits
        if self.shared > limits.shared_per_program:
            return message(
                f"a program needs {self.shared:,} bytes of shared memory, "
                f"{machine.name} has {limits.shared_per_program:,}",
                hint="choose smaller blocks or fewer stages",
            )
        if self.warps * limits.warp > limits.threads_per_processor:
            return message(
                f"a program of {self.warps} warps does not fit a processor of "
                f"{machine.name}, which has {limits.threads_per_processor} threads",
                hint="choose fewer warps",
            )
        return ""

    def resident(self, machine: Machine) -> int:
        """How many programs a processor runs side by side.

        Raises ValueError if no program fits.
        """
        if reason := self.misfit(machine):
            raise ValueError(reason)
        limits, threads = machine.limits, self.warps * machine.limits.warp
        grain = limits.register_unit // limits.warp
        registers = min(-(-self.registers // grain) * grain, self.available(machine))
        side_by_side = min(
            limits.programs_per_processor,
            limits.threads_per_processor // threads,
            limits.registers_per_processor // (registers * threads),
            limits.shared_per_processor // max(self.shared + limits.reserved, 1),
        )
        return max(1, side_by_side)

    def likely_residents(self, machine: Machine) -> dict[int, float]:
        """How many programs a processor may run side by side, and how likely each number is.

        Three numbers of registers stand for all: the estimate counts one half, and a deviation
        fewer and more a quarter each. Raises ValueError as above.
        """
        found: dict[int, float] = {}
        for wanted, weight in (
            (self.registers, 0.5),
            (self.registers - self.doubt, 0.25),
            (self.registers + self.doubt, 0.25),
        ):
            count = replace(self, registers=max(1, wanted)).resident(machine)
            found[count] = found.get(count, 0.0) + weight
        return found

    def fits_beside(self, other: Footprint, count: int, machine: Machine) -> bool:
        """True if a processor with ``count`` programs of another kernel, or as many as it runs side
        by side, has shared memory and threads for a program.
        """
        limits, count = machine.limits, min(count, other.resident(machine))
        shared = count * (other.shared + limits.reserved) + self.shared + limits.reserved
        threads = (count * other.warps + self.warps) * limits.warp
        return shared <= limits.shared_per_processor and threads <= limits.threads_per_processor


def footprint(layouts: Layouts) -> Footprint:
    """The footprint of a program of the grid of a nest, whose tiles lie as ``layouts`` says."""
    found, doubt = registers(layouts)
    return Footprint(shared_by(layouts), found, layouts.nest.warps, doubt)
