"""The price of a part: the predicted time of its kernels and calls, of launches, and of copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.machines.library import library_of
from blockbuster.selection.considered import Considered
from blockbuster.selection.cost import launch_by_host
from blockbuster.selection.parts.partition import Price
from blockbuster.selection.plans.call_prices import copy_us, library_us
from blockbuster.selection.plans.part import Part
from blockbuster.selection.plans.pieces import Axes, Call, Piece, Whole
from blockbuster.selection.plans.whole_part import WholePart
from blockbuster.selection.priors import PRIORS


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
    weight = PRIORS.stored_large_factor if _stores_large(part, sizes) else 1.0
    return Price(taken, unsafe, count, weight, rough=any(one.rest for one in considered))


def _stores_large(part: Part, sizes: Mapping[Dim, int]) -> bool:
    """True if an array between two steps is far larger than all that the part is given or gives."""
    seen = {shown.array for shown in part.pieces.results}
    made = {name: axes for step in part.pieces.steps for name, axes in _written(step)}
    between = [axes for name, axes in made.items() if name not in seen]
    if not between:
        return False
    known = completed(sizes, part.size_rules)

    def elements(axes: Axes) -> int:
        return prod(known[size_class(dim)] for dim in axes if dim is not None)

    shown = [*part.pieces.inputs.values(), *(made[name] for name in seen if name in made)]
    most = PRIORS.large_array_factor * max(map(elements, shown), default=0)
    return max(map(elements, between)) > most


def _written(step: Piece | Call | Whole) -> Iterator[tuple[str, Axes]]:
    """The arrays that a step writes, and their axes."""
    return step.written if isinstance(step, Piece) else zip(step.writes, step.axes, strict=True)


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
