"""Machines: what a device has, as data. No other package holds a device's numbers."""

from blockbuster.machines.catalog import AUTO, NAMES, built_in, machine
from blockbuster.machines.machine import Choice, Launch, Limits, Machine, Tier

__all__ = ["AUTO", "NAMES", "Choice", "Launch", "Limits", "Machine", "Tier", "built_in", "machine"]
