"""Why two parts of a plan are not one kernel, by what the search for the parts found."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from blockbuster.costs.report import in_us
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.parts.bounds import Bounds
from blockbuster.selection.parts.estimates import Estimates
from blockbuster.selection.parts.operand_views import OPAQUE
from blockbuster.selection.parts.partition import Best, Steps
from blockbuster.selection.parts.units import Units
from blockbuster.selection.priors import PRIORS


@dataclass(frozen=True)
class Found:
    """What the search for the parts of a plan found at ``sizes``, by size class.

    ``refused``: why parts have no kernels. ``by_fusers``: the parts whose programs fusers offered.
    ``bounds``: what no part goes below.
    """

    units: Units
    sizes: Mapping[Dim, int]
    estimates: Estimates
    best: Best
    refused: Mapping[int, str]
    bounds: Bounds
    by_fusers: Collection[int] = ()

    def bound_at(self, sizes: Mapping[Dim, int], prices: Sequence[float]) -> float:
        """Microseconds that no plan goes below at other ``sizes``.

        ``prices`` are those of the plan's own parts there; each other part counts its bound.
        """
        own = dict(zip(self.best.parts, prices, strict=True))
        known = {size_class(dim): size for dim, size in sizes.items()}
        bounds = replace(self.bounds, sizes=known)
        steps = Steps(self.units.before, self.units.beside)
        return steps.best(lambda part: own[part] if part in own else bounds.least(part))[0]

    def must_be_apart(self, one: int, other: int) -> bool:
        """True if there is no kernel that is two parts of the plan, given by their positions."""
        own, behind = self.best.parts[one], self.best.parts[other]
        return bool((own | behind) in self.refused or self._opaque(own) or self._opaque(behind))

    def why_apart(self, one: int, other: int, names: Sequence[str]) -> str:
        """Why a part of the plan is not one kernel with a later one that reads what it writes.

        Both are given by their positions, and ``names`` is an array that each part writes.
        """
        parts, prices = self.best.parts, self.best.prices
        both = f"{names[one]} and {names[other]}"
        opaque = self._opaque(parts[one]) or self._opaque(parts[other])
        if opaque:
            return f"{opaque} runs on whole arrays: no kernel can contain it"
        between = [names[at] for at in self._between(one, other)]
        if between:
            return f"{both} cannot be one kernel without {between[0]}"
        together = parts[one] | parts[other]
        if together in self.refused:
            return f"one kernel for {both} cannot be written: {self.refused[together]}"
        apart = prices[parts[one]].us + prices[parts[other]].us
        if together not in prices:
            return self._not_priced(parts[one], parts[other], both)
        calls = prices[together].calls - prices[parts[one]].calls - prices[parts[other]].calls
        if calls > 0:
            return f"in one kernel for {both}, no fuser takes the place of {self._opaque(together)}"
        unsafe = prices[together].unsafe - prices[parts[one]].unsafe - prices[parts[other]].unsafe
        if unsafe > 0:
            return f"in one kernel for {both}, {unsafe} more exponentials could overflow"
        by = " by its default schedule" if prices[together].rough else ""
        taken = f"{in_us(prices[together].us)}{by}"
        return f"one kernel for {both} would take {taken} instead of {in_us(apart)}"

    def _not_priced(self, one: int, other: int, both: str) -> str:
        """Why two parts are two if the search had no price for the kernel of both."""
        together, prices = one | other, self.best.prices
        count = together.bit_count()
        if count > self.best.cap:
            limit = f"more than {self.best.cap} were not tried"
            return f"one kernel for {both} would be {count} groups of operators; {limit}"
        lengths = {part: price.length for part, price in prices.items()}
        more = self.estimates.of(together, lengths) - lengths[one] - lengths[other]
        if more >= PRIORS.unsafe_us / 2:
            return f"one kernel for {both} would hold a part in which exponentials could overflow"
        estimate = self.estimates.of(together, {part: own.us for part, own in prices.items()})
        apart = prices[one].us + prices[other].us
        if estimate < apart:
            most = PRIORS.priced_parts
            return f"one kernel for {both} was not priced: {most} parts are, at most"
        times = self.estimates.again(together)
        at, often = max(times.items(), key=lambda item: item[1])
        again = ""
        if often > 1:
            again = f"; {self.units.program.names()[Value(at)]} would be computed {often} times"
        taken = f"about {in_us(estimate)} instead of {in_us(apart)}"
        return f"one kernel for {both} would take {taken}{again}"

    def _opaque(self, part: int) -> str:
        """The name of a function of whole arrays in a part, if it holds one."""
        equations = self.units.program.equations
        own = (equations[at] for at in self.units.equations(part) if part not in self.by_fusers)
        return next((str(one.param("name")) for one in own if one.op == OPAQUE), "")

    def _between(self, one: int, other: int) -> list[int]:
        """The parts that read of ``one``, directly or not, and of which ``other`` reads."""
        parts, before = self.best.parts, self.units.before
        reads = [
            [n for n, given in enumerate(parts) if n != at and given & _needed(before, own)]
            for at, own in enumerate(parts)
        ]
        behind = {one}
        for at in range(one + 1, other):
            if behind.intersection(reads[at]):
                behind.add(at)
        needed = {other}
        for at in range(other, one, -1):
            if at in needed:
                needed.update(reads[at])
        return sorted((behind & needed) - {one, other})


def _needed(before: Sequence[int], part: int) -> int:
    """The units that the units of a part read, as bits."""
    found = 0
    for number, own in enumerate(before):
        if part >> number & 1:
            found |= own
    return found
