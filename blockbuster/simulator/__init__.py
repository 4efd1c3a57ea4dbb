"""Kernels on an abstract machine, event by event."""

from blockbuster.simulator.simulate import LAUNCHES, Sized, simulated

__all__ = ["LAUNCHES", "Sized", "simulated"]
