"""The best plan whose parts may overlap: what several parts compute need not be stored for them.

    h = norm(x)        apart     {h} stores h;  {a} reads h, stores a;  {b} reads h, stores b
    a = h @ w          overlap   {h, a} stores a;  {h, b} stores b
    b = sum(h, 0)

A part is units, and the values of them that it stores. A plan is a way from no stored value to all
outputs: each step adds a part whose values are not stored yet, and reads those that are. So parts
come in an order in which they run. Parts that nobody priced count their bounds; those on the
shortest way are priced, and so on until it has priced parts only: then no plan takes less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf
from operator import or_
from typing import NamedTuple

from blockbuster.errors import message
from blockbuster.selection.parts.partition import Price
from blockbuster.selection.parts.units import Units, numbers_in
from blockbuster.selection.priors import PRIORS


class Making(NamedTuple):
    """A part of a plan whose parts may overlap: units, which values of theirs it ``stores`` for
    others, and which values it ``reads`` of others, all as bits.
    """

    units: int
    stores: int
    reads: int


@dataclass(frozen=True)
class Values:
    """The values that units read of each other or that a program gives.

    ``makers``: the unit that computes each of them; ``reads``: those that each unit reads, as bits;
    ``shown``: the outputs among them, as bits.
    """

    makers: Sequence[int]
    reads: Sequence[int]
    shown: int

    def made(self, units: int) -> int:
        """The values that ``units`` compute."""
        return _bits(at for at, maker in enumerate(self.makers) if units >> maker & 1)

    def read(self, units: int) -> int:
        """The values that ``units`` read, also of each other."""
        return reduce(or_, (self.reads[unit] for unit in numbers_in(units)), 0)

    def useful(self, units: int) -> int:
        """The values of ``units`` that other units read, or that are outputs."""
        everything = (1 << len(self.reads)) - 1
        return self.made(units) & (self.shown | self.read(everything & ~units))

    def needed(self, stores: int, units: int) -> int:
        """Those of ``units`` that compute the values ``stores``."""
        found, left = 0, _bits({self.makers[at] for at in numbers_in(stores)})
        while left:
            found |= left
            made_by = {self.makers[at] for at in numbers_in(self.read(left))}
            left = _bits(made_by) & units & ~found
        return found


def values_of(units: Units) -> tuple[Values, tuple[int, ...]]:
    """The values of a program's units, and the equation that computes each of them."""
    at = tuple(own for unit in range(len(units)) for own in units.given(1 << unit))
    number = {own: value for value, own in enumerate(at)}
    reads = [_bits(number[v.node] for v in unit.reads if v.node >= 0) for unit in units.units]
    shown = {base.node for o in units.program.outputs for base in units.bases[o.value]}
    outputs = _bits(value for own, value in number.items() if own in shown)
    return Values([units.of[own] for own in at], reads, outputs), at


def makings(values: Values, beside: Sequence[int]) -> Iterator[Making]:
    """The parts that a plan may have: connected units, and some of the values that others read.

    No unit is computed in vain. All units together may be a part whatever connects them.
    """
    everything = (1 << len(values.reads)) - 1
    for units in range(1, everything + 1):
        if units == everything or _connected(units, beside):
            reads = values.read(units) & ~values.made(units)
            for stores in _subsets(values.useful(units)):
                if values.needed(stores, units) == units:
                    yield Making(units, stores, reads)


def best_way(
    values: Values, found: Iterable[Making], length: Callable[[Making], float]
) -> tuple[float, list[Making]]:
    """The least sum of lengths of parts that store all outputs, and these parts in order."""
    lengths = [(one, length(one)) for one in found]
    sums: dict[int, float] = {0: 0.0}  # by the values that are stored, as bits
    came: dict[int, Making] = {}
    for state in range(1 << len(values.makers)):  # each behind those that lead to it
        for one, own in lengths if state in sums else ():
            if one.reads & ~state or one.stores & state:
                continue
            behind, total = state | one.stores, sums[state] + own
            if total < sums.get(behind, inf):
                sums[behind], came[behind] = total, one
    ends = [state for state in sums if not values.shown & ~state]
    if not ends:
        return inf, []
    end = state = min(ends, key=lambda state: (sums[state], state))
    way: list[Making] = []
    while state:
        way.append(came[state])
        state &= ~came[state].stores
    return sums[end], way[::-1]


def best_cover(
    values: Values,
    beside: Sequence[int],
    *,
    bound: Callable[[Making], float],
    price: Callable[[Making], Price],
) -> tuple[list[Making], dict[Making, Price]]:
    """The parts of the best plan in the order in which they run, none if it would take infinitely
    long, and the prices of all parts that were priced. ``bound``: what a part does not go below.

    Raises ValueError for more than ``overlapping_values`` values (priors.toml).
    """
    most = PRIORS.overlapping_values
    if (count := len(values.makers)) > most:
        what = f"parts may overlap in programs of at most {most} arrays that groups of operators "
        hint = 'effort="exhaustive" prices all parts that do not overlap'
        raise ValueError(message(f"{what}give: here are {count}", hint=hint))
    prices: dict[Making, Price] = {}
    found = [*makings(values, beside)]

    def length(one: Making) -> float:
        return prices[one].length if one in prices else bound(one)

    while True:
        _, way = best_way(values, found, length)
        new = [one for one in way if one not in prices]
        if not new:
            return way, prices
        prices |= {one: price(one) for one in new}


def _connected(units: int, beside: Sequence[int]) -> bool:
    seen, grown = 0, units & -units
    while grown != seen:
        seen = grown
        grown |= reduce(or_, (beside[unit] for unit in numbers_in(seen))) & units
    return seen == units


def _subsets(bits: int) -> Iterator[int]:
    """All sets of some of ``bits``."""
    left = bits
    while left:
        yield left
        left = (left - 1) & bits


def _bits(numbers: Iterable[int]) -> int:
    return reduce(or_, (1 << number for number in numbers), 0)
