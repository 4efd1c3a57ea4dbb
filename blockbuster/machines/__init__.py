"""Machines: the properties of devices, as data. No other package holds a device's numbers."""

from blockbuster.machines.catalog import (
    AUTO,
    CPU,
    GPUS,
    NAMES,
    built_in,
    choice_weights,
    known_device,
    machine,
)
from blockbuster.machines.likely import likely, related
from blockbuster.machines.machine import Choice, Launch, Limits, Machine, Tier
from blockbuster.machines.measured import measured

__all__ = [
    "AUTO", "CPU", "GPUS", "NAMES", "Choice", "Launch", "Limits", "Machine", "Tier",
    "built_in", "choice_weights", "known_device", "likely", "machine", "measured", "related",
]  # fmt: skip
