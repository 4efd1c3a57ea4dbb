"""The best plan over parts: a shortest path over down-sets of units, which prices what decides.

    {} --part--> {0, 1} --part--> {0, 1, 2, 4} --part--> all units

A state is a set of units that holds what its units read, an edge adds a part, and the length of a
plan is the sum of its parts' prices. Pricing a part means to fuse and schedule it, so few are
priced: the best plan is looked for with estimates of the others, the parts on it are priced, and so
on, until the best plan has priced parts only, and no other one could be better by as much as
estimates are too high. With bounds in place of estimates the same path says what no plan goes
below. Sets are bits of integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import inf
from operator import or_
from types import MappingProxyType
from typing import NamedTuple

from blockbuster.selection.parts.units import numbers_in
from blockbuster.selection.priors import PRIORS

Part = int
Length = Callable[[Part], float]
Estimate = Callable[[Part, Mapping[Part, float]], float]


AS_GOOD = PRIORS.whole_program_factor
"""Up to so many times as long as the best plan of several parts, one part counts as good as it."""


class Price(NamedTuple):
    """What a part takes: microseconds, infinite if it has no kernels, in so many kernels, and how
    many exponentials in it can overflow. ``weight``: a factor on the microseconds. ``again``: an
    equal part was priced before. ``calls``: functions of whole arrays, where plans may differ in
    them; what they take is not known, and counts as more than any kernel. ``rough``: its schedules
    were not looked for, because they would have been too slow by far.
    """

    us: float
    unsafe: int = 0
    kernels: int = 1
    weight: float = 1.0
    again: bool = False
    calls: int = 0
    rough: bool = False

    @property
    def length(self) -> float:
        """All as one number, by which plans are compared."""
        return self.us * self.weight + PRIORS.unsafe_us * (self.unsafe + self.calls)


@dataclass(frozen=True)
class Best:
    """The parts of the best plan, in order.

    ``total``: the microseconds that it takes; ``bound``: what no plan of parts of at most ``cap``
    units goes below; ``smaller``: what no such plan of several parts goes below. ``prices``: those
    of all parts that were priced. ``near``: the microseconds of the best plan, if that has several
    parts and the whole program, as one part, took its place because it takes about the same.
    ``every``: all parts were priced, so this is the best plan there is.
    """

    parts: tuple[Part, ...]
    total: float
    bound: float
    smaller: float
    cap: int
    prices: Mapping[Part, Price]
    near: float | None = None
    every: bool = False


class Steps:
    """The states of a plan in order, and for each the parts that can come next."""

    def __init__(self, before: Sequence[int], beside: Sequence[int]) -> None:
        self._beside, self._before = beside, before
        self._readers = [0] * len(before)  # those that read each unit, as bits
        for at, own in enumerate(before):
            for read in numbers_in(own):
                self._readers[read] |= 1 << at
        self._behind: list[int] = []  # each unit with all units that it needs, as bits
        for at, own in enumerate(before):
            needed = (self._behind[n] for n in numbers_in(own))
            self._behind.append(reduce(or_, needed, 1 << at))
        self.all = (1 << len(before)) - 1
        for self.cap in PRIORS.part_caps:
            found = self._enumerated(self.cap)
            if found is not None or self.cap == PRIORS.part_caps[-1]:
                break
        self.steps = found or self._singles()
        if self.is_within_cap:
            self.with_whole()  # nothing may connect it, and yet it may be one part

    @property
    def is_within_cap(self) -> bool:
        """True if all units are no more than a part may have."""
        return self.cap >= len(self._behind)

    def with_whole(self) -> list[Part]:
        """All units as one part, which is among the steps from now on, and the other parts."""
        if self.all not in self.steps[0]:
            self.steps[0].append(self.all)
        return list(dict.fromkeys([self.all, *(p for parts in self.steps.values() for p in parts)]))

    def _enumerated(self, cap: int) -> dict[int, list[Part]] | None:
        """By state, in an order in which each comes behind those that lead to it."""
        found: dict[int, list[Part]] = {}
        waiting: list[set[int]] = [set() for _ in range(len(self._behind) + 1)]
        waiting[0].add(0)
        ready = {0: [at for at, own in enumerate(self._before) if not own]}  # by state
        count = 0
        for states in waiting:
            for state in sorted(states):
                found[state], now = [], ready.pop(state)
                for part in self._next(state, now, cap):
                    found[state].append(part)
                    behind = state | part
                    waiting[behind.bit_count()].add(behind)
                    if behind not in ready:
                        ready[behind] = self._ready(now, part, behind)
                    count += 1
                    if count > PRIORS.plan_steps:
                        return None
        return found

    def _singles(self) -> dict[int, list[Part]]:
        """Each unit by itself, in order: the only plan of a program with too many states."""
        return {(1 << at) - 1: [1 << at] for at in range(len(self._behind))} | {self.all: []}

    def _ready(self, before: Sequence[int], part: Part, state: int) -> list[int]:
        """The units that can come next behind ``part``, which leads to ``state``."""
        readers = reduce(or_, (self._readers[unit] for unit in numbers_in(part)))
        new = [at for at in numbers_in(readers & ~state) if not self._before[at] & ~state]
        return [*(at for at in before if not state >> at & 1), *new]

    def _near(self, state: int, ready: Sequence[int], cap: int) -> dict[int, int]:
        """The units that a part of at most ``cap`` can hold behind ``state``, each with all that
        it needs. Those are few, however many units there are.
        """
        found: dict[int, int] = {}
        left = [*ready]
        while left:
            at = left.pop()
            needed = self._behind[at] & ~state
            if at not in found and needed.bit_count() <= cap:
                found[at] = needed
                left += numbers_in(self._readers[at])
        return {at: found[at] for at in sorted(found)}

    def _next(self, state: int, ready: Sequence[int], cap: int) -> Iterator[Part]:
        """The connected parts of at most ``cap`` units that can come behind ``state``."""
        needs = self._near(state, ready, cap)
        near = sum(1 << at for at in needs)
        seen: set[Part] = set()
        left = [(own, self._beside[at]) for at, own in needs.items() if own.bit_count() == 1]
        while left:
            part, beside = left.pop()
            if part in seen:
                continue
            seen.add(part)
            yield part
            for at in numbers_in(beside & near & ~part):
                grown = part | needs[at]
                if grown.bit_count() <= cap and grown not in seen:
                    added = (self._beside[unit] for unit in numbers_in(grown & ~part))
                    left.append((grown, reduce(or_, added, beside)))

    def best(self, length: Length) -> tuple[float, tuple[Part, ...]]:
        """The least sum of lengths from no units to all, and the parts that give it."""
        sums: dict[int, float] = {0: 0.0}
        came: dict[int, Part] = {}
        for state, parts in self.steps.items():
            here = sums.get(state, inf)
            for part in parts:
                total = here + length(part)
                behind = state | part
                if behind not in came or total < sums[behind]:
                    sums[behind], came[behind] = total, part
        path: list[Part] = []
        state = self.all
        while state:
            path.append(came[state])
            state &= ~came[state]
        return sums[self.all], tuple(reversed(path))


def best_plan(
    before: Sequence[int],
    beside: Sequence[int],
    *,
    bound: Length,
    estimate: Estimate,
    price: Callable[[Part, float], Price],
    budget: int,
    calls: Mapping[Part, float] = MappingProxyType({}),
    far: float = inf,
    every: bool = False,
) -> Best:
    """The best plan of units that read the units ``before`` them and may share a part with those
    ``beside`` them.

    ``estimate``: about what a part takes, given the lengths of those that share units with it.
    ``price``: what it takes, roughly if that is far above a limit: somewhat more than the best plan
    that is known, by estimates where parts have no prices.
    ``budget``: the parts of several units that are priced, at most, of equal ones the first; then
    only units by themselves are. Prices that are left go to parts of plans that would be best if
    estimates were too high, in programs of few units. All units as one part are priced first,
    unless they are more than a part may have, or that is estimated ``far`` times as long as the
    best plan; if they are more, one of all is priced last where the best plan has two parts, or is
    longer than that is estimated to be.
    ``calls``: parts that may be calls, and the microseconds of those, which estimates do not know:
    these parts are priced next, unless one part of all takes less than any other plan may.
    ``every``: all parts are priced, and the plan is the best by their lengths, however close others
    are.
    """
    steps, lengths = Steps(before, beside), _Lengths(price, estimate, len(before))
    total = inf if every else steps.best(partial(lengths.of, more=True))[0]
    whole = steps.is_within_cap and not lengths.of(steps.all, more=True) > far * total
    lengths.ask(steps.with_whole() if every else [steps.all] * whole, AS_GOOD * total)
    new = [] if every or _settled(steps, lengths, calls) else [*calls]
    while True:
        lengths.ask(new, AS_GOOD * total)
        more = lengths.tried < budget
        total, parts = steps.best(partial(lengths.of, more=more))
        new = lengths.without_price(parts)
        if not new and more and len(before) <= PRIORS.doubted_units:
            new = lengths.without_price(steps.best(lengths.least)[1])
        if not (new or steps.is_within_cap) and more and len(parts) > 1:
            may_win = len(parts) == 2 or lengths.of(steps.all, more=True) < total
            new = lengths.without_price(steps.with_whole()[:1]) if may_win else new
        new = new or lengths.rough_below(AS_GOOD * total)
        if not new:
            break
    return _best_of(steps, parts, total, lengths, bound, every)


def _settled(steps: Steps, lengths: _Lengths, calls: Mapping[Part, float]) -> bool:
    """True if all units as one part are priced, and may take no longer than any other plan."""
    if steps.all not in lengths.prices or lengths.rough:
        return False

    def least(part: Part) -> float:
        return inf if part == steps.all else min(lengths.least(part), calls.get(part, inf))

    return lengths.prices[steps.all].length <= steps.best(least)[0]


def _best_of(
    steps: Steps,
    parts: tuple[Part, ...],
    total: float,
    lengths: _Lengths,
    bound: Length,
    every: bool,
) -> Best:
    """The plan of ``parts``, of length ``total``, or of one part if that is as good."""
    prices, near = lengths.prices, None
    if not every and _is_as_good(steps.all, parts, prices, total):
        near = None if len(parts) == 1 else sum(prices[part].us for part in parts)
        parts = (steps.all,)

    def least(part: Part) -> float:
        return prices[part].us if part in prices and part not in lengths.rough else bound(part)

    smaller, _ = steps.best(lambda part: inf if part == steps.all else least(part))
    taken = sum(prices[part].us for part in parts)
    bounded = taken if every else steps.best(least)[0]
    return Best(parts, taken, bounded, smaller, steps.cap, prices, near, every)


def _is_as_good(
    whole: Part, parts: Sequence[Part], prices: Mapping[Part, Price], total: float
) -> bool:
    """True if all units as one part take about as long as a plan, in fewer kernels."""
    if whole not in prices:
        return False
    apart = sum(prices[part].us * prices[part].weight for part in parts)
    if prices[whole].length > total + (AS_GOOD - 1.0) * apart:
        return False
    fewer = prices[whole].kernels < sum(prices[part].kernels for part in parts)
    return fewer or prices[whole].length <= total


class _Lengths:
    """The lengths of parts: prices, as they are asked for, ``rough`` ones with a limit that they
    exceed; and estimates of parts that have none, which are kept until a part that shares units
    with them gets a price.
    """

    def __init__(
        self, price: Callable[[Part, float], Price], estimate: Estimate, count: int
    ) -> None:
        self._price, self._estimate = price, estimate
        self.prices: dict[Part, Price] = {}
        self.rough: dict[Part, float] = {}
        self._holding: list[dict[Part, float]] = [{} for _ in range(count)]  # by each unit
        self._known: dict[tuple[Part, bool], float] = {}  # by whether parts beyond count

    def ask(self, parts: Sequence[Part], limit: float) -> None:
        """Price ``parts``, roughly where they take far more than ``limit``: of those others learn
        what they certainly exceed.
        """
        for part in parts:
            self.prices[part] = self._price(part, limit)
            self.rough.pop(part, None)
            if self.prices[part].rough:
                self.rough[part] = limit
            for unit in numbers_in(part):
                length = self.prices[part].length
                self._holding[unit][part] = min(length, self.rough.get(part, inf))
        changed = reduce(or_, parts, 0)
        self._known = {key: known for key, known in self._known.items() if not key[0] & changed}

    @property
    def tried(self) -> int:
        """How many parts of several units were priced, of equal ones the first."""
        return sum(1 for part, one in self.prices.items() if part & (part - 1) and not one.again)

    def without_price(self, parts: Sequence[Part]) -> list[Part]:
        """Those that were not asked for."""
        return [part for part in parts if part not in self.prices]

    def rough_below(self, limit: float) -> list[Part]:
        """Those with rough prices that may be worth more than it seemed, for this limit."""
        return [part for part, most in self.rough.items() if most < limit]

    def of(self, part: Part, *, more: bool) -> float:
        """The length of a part; infinite for one of several units if no ``more`` are priced."""
        if part & (part - 1) and part not in self.prices and not more:
            return inf
        return self._of(part, beyond=True)

    def least(self, part: Part) -> float:
        """The length of a part, as small as it may well be where it has no price: other parts that
        share units with it and took long say nothing of it.
        """
        share = 1.0 if part in self.prices else PRIORS.least_of_estimate
        return share * self._of(part, beyond=False)

    def _of(self, part: Part, *, beyond: bool) -> float:
        if part in self.prices:
            return self.prices[part].length
        if (part, beyond) not in self._known:
            near: dict[Part, float] = {}
            for unit in numbers_in(part):
                near.update(self._holding[unit])
            known = {own: length for own, length in near.items() if beyond or not own & ~part}
            self._known[part, beyond] = self._estimate(part, known)
        return self._known[part, beyond]
