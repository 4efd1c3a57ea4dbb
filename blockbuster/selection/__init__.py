"""Selection: which kernels a program becomes, with which schedules, by closed-form costs."""

from blockbuster.selection.traffic.closed import ClosedTraffic, Traffic, closed_traffic, traffic
from blockbuster.selection.traffic.closed_forms import ClosedForm, Symbol

__all__ = ["ClosedTraffic", "ClosedForm", "Symbol", "Traffic", "closed_traffic", "traffic"]
