"""The best plan of parts: against all partitions, on random programs of up to eight units."""

from __future__ import annotations

import random
from functools import lru_cache
from math import inf

import pytest

from blockbuster.selection.parts.partition import AS_GOOD, Price, Steps, best_plan
from blockbuster.selection.priors import PRIORS


def drawn(rng, count):
    """What each unit reads, and which units are beside each other: some share an input."""
    before = [sum(1 << other for other in range(at) if rng.random() < 0.35) for at in range(count)]
    beside = list(before)
    for at, own in enumerate(before):
        for other in range(count):
            if own >> other & 1:
                beside[other] |= 1 << at
    for one in range(count):
        for other in range(one):
            if rng.random() < 0.15:
                beside[one] |= 1 << other
                beside[other] |= 1 << one
    return before, beside


def connected(part, beside):
    seen = part & -part
    while True:
        grown = seen
        for at, near in enumerate(beside):
            if seen >> at & 1:
                grown |= near & part
        if grown == seen:
            return seen == part
        seen = grown


def brute_force(before, beside, price):
    """The least sum of prices over all sequences of connected parts that can run in their order."""
    everything = (1 << len(before)) - 1

    @lru_cache(None)
    def least(done):
        if done == everything:
            return 0.0
        found = inf
        left = everything & ~done
        part = left
        while part:
            needs = 0
            for at, own in enumerate(before):
                if part >> at & 1:
                    needs |= own
            alone = connected(part, beside) or part == everything
            if not needs & ~(done | part) and alone:
                found = min(found, price(part) + least(done | part))
            part = (part - 1) & left
        return found

    return least(0)


def greedy(steps, price):
    """The sum of prices of the way that always takes the part that is cheapest for a unit."""
    state, total = 0, 0.0
    while state != steps.all:
        part = min(steps.steps[state], key=lambda part: price(part) / part.bit_count())
        state, total = state | part, total + price(part)
    return total


def random_prices(rng):
    prices = {}
    return lambda part: prices.setdefault(part, rng.uniform(1.0, 2.0 + part.bit_count()))


@pytest.mark.parametrize("seed", range(500))
def test_the_best_plan_is_the_best_of_all_partitions(seed):
    rng = random.Random(seed)
    before, beside = drawn(rng, rng.randint(1, 8))
    price = random_prices(rng)
    everything = (1 << len(before)) - 1
    expected = brute_force(before, beside, price)
    steps = Steps(before, beside)

    total, parts = steps.best(price)

    assert total == pytest.approx(expected)
    assert total <= greedy(steps, price) + 1e-9
    assert sum(parts) == everything
    assert sum(map(price, parts)) == pytest.approx(total)


@pytest.mark.parametrize("seed", range(200))
def test_bounds_for_estimates_find_the_optimum_and_estimates_a_plan_within_the_gap(seed):
    rng = random.Random(seed)
    before, beside = drawn(rng, rng.randint(2, 7))
    price = random_prices(rng)
    asked = []

    def counted(part, _):
        asked.append(part)
        return Price(price(part), kernels=1)

    shares = {}

    def bound(part):
        return price(part) * shares.setdefault(part, rng.uniform(0.3, 1.0))

    def estimate(part, near):
        """Somewhat too high, and far too high where a part that reaches beyond is known."""
        return bound(part) / PRIORS.least_of_estimate + sum(9.0 for own in near if own & ~part)

    optimum = brute_force(before, beside, price)
    proven = best_plan(
        before, beside, bound=bound, estimate=estimate, price=counted, budget=10_000,
    )  # fmt: skip
    assert len(asked) == len({*asked}) == len(proven.prices)
    several = len(proven.parts) > 1 or proven.near is None
    assert proven.total == pytest.approx(optimum) if several else proven.near <= proven.total
    assert proven.total <= PRIORS.whole_program_factor * optimum + 1e-9

    steered = best_plan(
        before, beside, bound=bound, estimate=lambda part, _: 1.4 * bound(part),
        price=lambda part, _: Price(price(part)), budget=4,
    )  # fmt: skip
    assert steered.bound <= optimum + 1e-9 <= steered.total + 2e-9
    assert sum(steered.parts) == (1 << len(before)) - 1


@pytest.mark.parametrize(
    ("too_high", "more", "budget"), [(1.02, 0, 9), (1.02, 1, 9), (1.1, 0, 9), (1.02, 0, 1)]
)
def test_a_part_is_priced_whose_estimate_may_be_too_high(too_high, more, budget):
    """Only of small programs, by as much as estimates are, and within the budget."""
    count, asked = PRIORS.doubted_units + more, []
    before = [0, *(1 << at for at in range(count - 1))]
    beside = [own | (1 << at + 1 if at + 1 < count else 0) for at, own in enumerate(before)]

    def priced(part, _):
        asked.append(part)
        return Price(1.9 if part == 3 else part.bit_count() ** 2)

    best = best_plan(
        before, beside, bound=lambda _: 0.1, price=priced, budget=budget,
        estimate=lambda part, _: 2.0 * too_high if part == 3 else 9.0 * count,
        calls={1 << at: 0.0 for at in range(count)},
    )  # fmt: skip

    found = (too_high, more, budget) == (1.02, 0, 9)
    assert (3 in asked) == (3 in best.parts) == found


def test_with_every_part_priced_the_plan_is_the_optimum_whatever_is_estimated():
    for seed in range(40):
        rng = random.Random(seed)
        before, beside = drawn(rng, rng.randint(1, 6))
        price, asked = random_prices(rng), []

        def priced(part, _, price=price, asked=asked):
            asked.append(part)
            return Price(price(part))

        best = best_plan(
            before, beside, bound=lambda _: 0.1, estimate=lambda *_: 99.0, price=priced, budget=0,
            every=True,
        )  # fmt: skip

        assert best.total == pytest.approx(brute_force(before, beside, price))
        assert (best.total, best.near, best.every) == (best.bound, None, True)
        parts = {part for parts in Steps(before, beside).steps.values() for part in parts}
        assert sorted(asked) == sorted(parts)


def test_a_part_without_kernels_is_no_part_of_a_plan():
    before, beside = [0, 1, 2], [2, 5, 2]

    def price(part, _):
        return Price(inf if part.bit_count() > 1 else 1.0)

    found = best_plan(
        before, beside, bound=lambda _: 0.5, estimate=lambda *_: 0.6, price=price, budget=24
    )

    assert found.parts == (1, 2, 4)
    assert (found.total, found.prices[0b111].us) == (3.0, inf)


def test_two_parts_may_each_hold_the_lowest_unit_that_is_left():
    # 3 reads 0 and 2; 1 reads nothing: {0, 3} can run only behind {1, 2}
    before, beside = [0, 0, 2, 5], [8, 4, 10, 5]

    def price(part):
        return 1.0 if part in (0b0110, 0b1001) else 10.0

    total, parts = Steps(before, beside).best(price)

    assert (total, parts) == (2.0, (0b0110, 0b1001))


def test_the_cap_falls_where_there_are_many_plans():
    count = 40
    before = [0] * count
    beside = [((1 << count) - 1) & ~(1 << at) for at in range(count)]

    steps = Steps(before, beside)

    assert steps.cap == 1
    assert sum(map(len, steps.steps.values())) <= PRIORS.plan_steps
    total, parts = steps.best(lambda part: 1.0)
    assert (total, len(parts)) == (count, count)


def test_one_part_takes_the_place_of_an_equal_plan_only_with_fewer_kernels():
    before, beside = [0, 1], [2, 1]

    def found(kernels, whole):
        prices = {1: Price(1.0), 2: Price(1.0), 3: Price(whole, kernels=kernels)}
        return best_plan(
            before, beside, bound=lambda _: 0.1, estimate=lambda *_: 0.1, price=prices.get,
            budget=24,
        )  # fmt: skip

    assert found(1, 2.1).parts == (3,)
    assert found(2, 2.1).parts == (1, 2)
    assert found(1, 2.3).parts == (1, 2)
    assert found(2, 1.9).parts == (3,)


@pytest.mark.parametrize(("times", "asked"), [(0.9, True), (1.1, False)])
def test_all_units_are_priced_first_unless_estimates_rule_that_out(times, asked):
    before, beside = [0, 1, 2], [2, 5, 2]
    far = 9.0
    whole = 3.0 * far * times
    priced = []

    def price(part, _):
        priced.append(part)
        return Price(99.0 if part & (part - 1) else 1.0)

    best = best_plan(
        before, beside, bound=lambda _: 0.1, price=price, budget=24, far=far,
        estimate=lambda part, _: whole if part == 7 else 1.0 + 99.0 * (part & (part - 1) > 0),
    )  # fmt: skip

    assert best.parts == (1, 2, 4)
    assert (7 in priced) == asked


@pytest.mark.parametrize(("of_call", "whole", "asked"), [(0.5, 5.0, True), (3.0, 5.0, False)])
@pytest.mark.parametrize("rough", [False, True])
def test_what_may_be_a_call_is_priced_where_a_plan_with_the_call_may_be_best(
    of_call, whole, asked, rough
):
    """Estimates alone, 4 for a unit, would have one part of both first in any case."""
    priced = []

    def price(part, _):
        priced.append(part)
        return Price(whole, rough=rough and len(priced) == 1) if part == 3 else Price(9.0)

    best = best_plan(
        [0, 1], [2, 1], bound=lambda _: 0.1, price=price, budget=24, calls={1: of_call},
        estimate=lambda part, _: 4.0 * part.bit_count(),
    )  # fmt: skip

    assert priced[0] == 3
    assert (1 in priced) == (asked or rough)
    assert best.parts == (3,)


@pytest.mark.parametrize(("whole", "parts"), [(5.0, 1), (9.0, 2)])
def test_two_parts_are_compared_with_one_beyond_the_cap(whole, parts):
    count = PRIORS.part_caps[0] + 3  # a chain, cut where that is cheapest
    before = [at and 1 << at - 1 for at in range(count)]
    beside = [own | 1 << at + 1 & (1 << count) - 1 for at, own in enumerate(before)]
    everything = (1 << count) - 1

    def price(part, _):
        return Price(whole if part == everything else 3.0)

    best = best_plan(
        before, beside, bound=lambda _: 0.1, estimate=lambda *_: 3.0, price=price, budget=24,
    )  # fmt: skip

    assert len(best.parts) == parts
    assert best.prices[everything].us == whole


def test_exponentials_that_overflow_count_before_time_and_weights_beside_it():
    before, beside = [0, 1], [2, 1]
    prices = {1: Price(1.0), 2: Price(1.0), 3: Price(1.0, unsafe=1)}
    asked = dict(bound=lambda _: 0.1, estimate=lambda *_: 0.1, budget=24)

    assert best_plan(before, beside, price=prices.get, **asked).parts == (1, 2)
    prices = {1: Price(1.0, weight=3.0), 2: Price(1.0), 3: Price(3.0)}
    assert best_plan(before, beside, price=prices.get, **asked).parts == (3,)
    for last in (Price(1.0, unsafe=1), Price(1.0, calls=1)):  # the same in every plan
        slow = last._replace(us=99.0)
        prices = {1: Price(1.0), 2: last, 3: slow}
        assert best_plan(before, beside, price=prices.get, **asked).parts == (1, 2)
        prices[3] = Price(99.0)
        assert best_plan(before, beside, price=prices.get, **asked).parts == (3,)


def test_parts_equal_to_others_do_not_count_for_the_budget():
    # four equal chains of three: three units in one kernel are slow, two are not
    before = [at % 3 and 1 << at - 1 for at in range(12)]
    beside = [before[at] | (at % 3 < 2) << at + 1 for at in range(12)]

    def found(*, equal):
        def price(part, _):
            us = {1: 1.0, 2: 1.0, 3: 10.0}.get(part.bit_count(), inf)
            return Price(us, again=equal and part >= 1 << 3)

        return best_plan(
            before, beside, bound=lambda _: 0.5, estimate=lambda *_: 0.6, price=price, budget=3
        )

    assert found(equal=True).total == 8.0
    assert found(equal=False).total == 12.0


def test_a_part_far_above_the_best_plan_is_priced_roughly_until_that_takes_as_long():
    """Both units were estimated at 1; once they are known to take 60, their part may win."""
    asked = []

    def price(part, limit):
        asked.append((part, limit))
        rough = part == 3 and limit < 50.0
        return Price(100.0 if rough else 50.0 if part == 3 else 60.0, rough=rough)

    best = best_plan(
        [0, 1], [2, 1], bound=lambda _: 0.1, estimate=lambda *_: 1.0, price=price, budget=24,
    )  # fmt: skip

    assert asked[0] == (3, pytest.approx(AS_GOOD))
    assert [limit for part, limit in asked if part == 3][1:] == [pytest.approx(100.0 * AS_GOOD)]
    assert best.parts == (3,)
    assert not best.prices[3].rough


def test_a_part_that_stays_rough_is_asked_for_again_only_as_the_best_plan_gets_longer():
    asked = []

    def price(part, limit):
        asked.append((part, limit))
        return Price(100.0 if part == 3 else 2.0, rough=part == 3)

    best = best_plan(
        [0, 1], [2, 1], bound=lambda _: 0.1, estimate=lambda *_: 3.0, price=price, budget=24,
    )  # fmt: skip

    limits = [limit / AS_GOOD for part, limit in asked if part == 3]
    assert limits == [pytest.approx(3.0), pytest.approx(4.0)]
    assert best.parts == (1, 2)


@pytest.mark.parametrize(("whole", "parts"), [(1.05, 1), (1.2, 2)])
def test_one_part_that_counts_as_the_same_is_looked_for(whole, parts):
    """Roughly it takes 1.4 times as long as two parts; searched for, it may be as good."""

    def price(part, limit):
        if part != 3:
            return Price(1.0)
        rough = 2.0 * whole > limit
        return Price(2.8 if rough else 2.0 * whole, rough=rough)

    best = best_plan(
        [0, 1], [2, 1], bound=lambda _: 0.1, estimate=lambda *_: 1.0, price=price, budget=24,
    )  # fmt: skip

    assert len(best.parts) == parts
    assert best.smaller == pytest.approx(2.0)


def test_a_rough_price_is_no_bound():
    price = lambda part, _: Price(9.0, rough=True) if part == 3 else Price(2.0)  # noqa: E731
    best = best_plan(
        [0, 1], [2, 1], bound=lambda _: 0.5, estimate=lambda *_: 1.0, price=price, budget=24,
    )  # fmt: skip

    assert best.parts == (1, 2)
    assert best.bound == 0.5
