"""The price of a part: the predicted time of its kernels and calls, of launches, and of copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim
from blockbuster.machines import Machine
from blockbuster.machines.library import library_of
from blockbuster.selection.considered import Considered
from blockbuster.selection.cost import launch_by_host
from blockbuster.selection.parts.partition import Price
from blockbuster.selection.plans.call_prices import copy_us, library_us
from blockbuster.selection.plans.part import Part
from blockbuster.selection.plans.pieces import Call
from blockbuster.selection.plans.whole_part import WholePart


def price(
    part: Part, considered: Sequence[Considered], sizes: Mapping[Dim, int], machine: Machine
) -> Price:
    """The price of a part at ``sizes`` (by size class), with the best of what was considered.

    Each kernel counts a launch by the host: that is what calls outside of CUDA graphs pay.
    """
    if isinstance(part, WholePart):
        return part.price(sizes, machine)
    count = sum(one.best.kernels for one in considered)
    taken = sum(one.best.price for one in considered) + count * launch_by_host(machine)
    taken += calls_us(part, sizes, machine)
    count += sum(call.is_library for call in part.calls)
    unsafe = sum(len(one.best.unsafe) for one in considered)
    return Price(taken, unsafe, count, rough=any(one.rest for one in considered))


def predicted(
    part: Part, considered: Sequence[Considered], sizes: Mapping[Dim, int], machine: Machine
) -> float:
    """The microseconds that are told of a part: its price, without the factors on its kernels'
    times by which candidates are ranked, and without kernels that are kept from call to call.
    """
    if isinstance(part, WholePart):
        return part.price(sizes, machine).us
    return sum(one.best.predicted for one in considered) + calls_us(part, sizes, machine)


def calls_us(part: Part, sizes: Mapping[Dim, int], machine: Machine) -> float:
    """Microseconds of a part's copies and calls of a library, launched by the host."""
    sizes = completed(sizes, part.size_rules)  # lowering made dims of a part's own
    return sum(call_us(part, call, sizes, machine) or 0.0 for call in part.calls)


def call_us(
    part: Part, call: Call, sizes: Mapping[Dim, int], machine: Machine, *, by_host: bool = True
) -> float | None:
    """Microseconds of a copy, or of a library's call, which the host launches or not; None for a
    user's function, and for a call on a machine whose library nobody has measured.
    """
    if call.only_moves:
        return copy_us(call, sizes, machine)
    if not call.is_library or library_of(machine) is None:
        return None
    return library_us(part, call, sizes, machine) + launch_by_host(machine) * by_host
