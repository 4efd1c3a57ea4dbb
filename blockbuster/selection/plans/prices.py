"""The price of a part: the predicted time of its kernels, launches by the host, and copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from blockbuster.costs.coefficients import FITTED
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.selection.considered import Considered
from blockbuster.selection.parts.partition import Price
from blockbuster.selection.plans.part import Part
from blockbuster.selection.plans.pieces import Call
from blockbuster.selection.plans.whole_part import WholePart

WIDTH = 4
"""Bytes of an element that a copy reads and writes: values between kernels are mostly float32."""


def price(
    part: Part, considered: Sequence[Considered], sizes: Mapping[Dim, int], machine: Machine
) -> Price:
    """The price of a part at ``sizes`` (by size class), with the best of what was considered.

    Each kernel counts a launch by the host: that is what calls outside of CUDA graphs pay.
    """
    if isinstance(part, WholePart):
        return part.price(sizes, machine)
    copies = [step for step in part.pieces.steps if isinstance(step, Call) and step.only_moves]
    host = (machine.launch.plain - machine.launch.graph) * 1e6
    count = sum(one.best.kernels for one in considered)
    taken = sum(one.best.price for one in considered) + count * host
    unsafe = sum(len(one.best.unsafe) for one in considered)
    return Price(taken + sum(_copy(one, sizes, machine) for one in copies), unsafe, count)


def _copy(call: Call, sizes: Mapping[Dim, int], machine: Machine) -> float:
    """Microseconds of a copy. Other functions of whole arrays take the same in every plan."""
    elements = sum(prod(sizes[size_class(dim)] for dim in axes if dim) for axes in call.axes)
    moving = 2 * WIDTH * elements / machine.memory.bandwidth
    return (machine.launch.plain + FITTED.start + moving) * 1e6
