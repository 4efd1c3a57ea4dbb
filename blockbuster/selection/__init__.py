"""Choosing kernels: what programs cost, in closed form."""

from blockbuster.selection.closed import ClosedTraffic, Traffic, closed_traffic, traffic
from blockbuster.selection.polynomials import Polynomial, Symbol

__all__ = ["ClosedTraffic", "Polynomial", "Symbol", "Traffic", "closed_traffic", "traffic"]
