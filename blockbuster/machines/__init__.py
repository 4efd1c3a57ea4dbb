"""Machines: the properties of devices, as data. No other package holds a device's numbers."""

from blockbuster.machines.catalog import (
    AUTO,
    CPU,
    NAMES,
    built_in,
    choice_weights,
    known_device,
    machine,
    machine_of,
)
from blockbuster.machines.machine import Choice, Launch, Limits, Machine, Tier

__all__ = [
    "AUTO", "CPU", "NAMES", "Choice", "Launch", "Limits", "Machine", "Tier",
    "built_in", "choice_weights", "known_device", "machine", "machine_of",
]  # fmt: skip
