"""Choosing kernels: what programs cost, in closed form."""

from blockbuster.selection.closed import ClosedTraffic, Traffic, closed_traffic, traffic
from blockbuster.selection.closed_forms import ClosedForm, Symbol

__all__ = ["ClosedTraffic", "ClosedForm", "Symbol", "Traffic", "closed_traffic", "traffic"]
