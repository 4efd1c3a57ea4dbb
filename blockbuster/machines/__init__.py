"""Machines: what a device has, as data. No other package holds a device's numbers."""

from blockbuster.machines.machine import Launch, Limits, Machine, Tier

__all__ = ["Launch", "Limits", "Machine", "Tier"]
