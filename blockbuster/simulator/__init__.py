"""The simulator: kernels on an abstract machine, event by event."""

from blockbuster.simulator.simulate import Sized, simulated

__all__ = ["Sized", "simulated"]
