"""Loads that run ahead of a loop: the content of each slot of a ring, and when it may be read.

A load may read memory at any time between its issue and its wait, and its data may arrive at any
time between them. So memory must hold the same at both ends, a slot holds nothing between an issue
and the wait for it, and a tile is lost when the next load into its slot is issued.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from blockbuster.emit.interpret.memory import Hazard, Index, Memory, Path, same_version
from blockbuster.emit.tile.program import Issue
from blockbuster.interp.layout import Array


@dataclass
class Slot:
    """One place of a ring: the iteration whose tile is on its way, or has arrived."""

    iteration: int
    index: Index
    version: Array | None
    arrived: Array | None = None


@dataclass
class Ring:
    """The slots of one ``Issue`` in one run of its loop."""

    issue: Issue
    slots: dict[int, Slot] = field(default_factory=dict)

    def start(self, iteration: int, index: Index, memory: Memory, path: Path) -> Array:
        """Begin to load the tile of an iteration; what memory holds now."""
        name, number = self.issue.tile.name, iteration % self.issue.slots
        held = self.slots.get(number)
        if held is not None and held.arrived is None:
            raise Hazard(
                f"the load of {name} for iteration {iteration} takes slot {number} of "
                f"{self.issue.slots}, into which that for iteration {held.iteration} is on its way"
            )
        buffer = self.issue.view.buffer
        found = memory.load(buffer, index, path)
        self.slots[number] = Slot(iteration, index, memory.version(buffer, index))
        return found

    def wait(self, iteration: int, memory: Memory, path: Path) -> Array:
        """The tile of an iteration, once it has arrived."""
        name, number = self.issue.tile.name, iteration % self.issue.slots
        held = self.slots.get(number)
        if held is None or held.iteration != iteration:
            raise Hazard(
                f"iteration {iteration} waits for {name}, but its load "
                f"{'was never issued' if held is None else 'is not the last one into its slot'}"
            )
        buffer = self.issue.view.buffer
        if not same_version(held.version, memory.version(buffer, held.index)):
            raise Hazard(f"{buffer.name} is written while {name} is loaded from it")
        held.arrived = memory.load(buffer, held.index, path)
        return held.arrived

    def read(self, iteration: int) -> None:
        """Raise Hazard unless the tile of an iteration still lies in its slot."""
        name, number = self.issue.tile.name, iteration % self.issue.slots
        held = self.slots[number]
        if held.iteration != iteration:
            raise Hazard(
                f"iteration {iteration} reads {name} in slot {number} of {self.issue.slots}, which "
                f"the load for iteration {held.iteration} has taken"
            )

    def finish(self) -> None:
        """Raise Hazard where a load was not waited for when the loop ends."""
        for slot in self.slots.values():
            if slot.arrived is None:
                raise Hazard(
                    f"nobody waits for the load of {self.issue.tile.name} "
                    f"for iteration {slot.iteration}"
                )
