"""The best plan whose parts may overlap, against an integer program, brute force, partitions."""

from __future__ import annotations

import random
from itertools import chain, combinations

import pytest

from blockbuster.selection.parts.overlapping import (
    Making,
    Values,
    best_cover,
    best_way,
    makings,
)
from blockbuster.selection.parts.partition import Price, Steps
from blockbuster.selection.priors import PRIORS
from tests.selection.integer_program import solved, those_that_cannot_run
from tests.selection.test_partition import drawn


def drawn_values(rng, count):
    """Units that give a value each, outputs among them, and what they may share a part with."""
    before, beside = drawn(rng, count)
    everything = (1 << count) - 1
    read = 0
    for own in before:
        read |= own
    shown = everything & ~read | sum(1 << at for at in range(count) if rng.random() < 0.15)
    return Values(range(count), before, shown), before, beside


def drawn_prices(rng):
    prices = {}
    return lambda one: prices.setdefault(one, rng.uniform(1.0, 2.0 + one.units.bit_count()))


def partitioned(values, before, beside, price):
    """The least of the plans whose parts do not overlap."""

    def length(units):
        reads = values.read(units) & ~values.made(units)
        return price(Making(units, values.useful(units), reads))

    return Steps(before, beside).best(length)[0]


def check(seed, largest):
    rng = random.Random(seed)
    values, before, beside = drawn_values(rng, rng.randint(1, largest))
    price, found = drawn_prices(rng), [*makings(values, beside)]
    apart = partitioned(values, before, beside, price)

    total, way = best_way(values, found, price)

    assert total == pytest.approx(sum(map(price, way)))
    assert total <= apart + 1e-9
    assert not those_that_cannot_run(way, [*range(len(way))])
    least = min(map(price, found))
    rest = {one: least if values.shown & ~one.stores else 0.0 for one in found}  # of a plan with it
    cheap = [one for one in found if price(one) + rest[one] <= apart + 1e-9]
    assert total == pytest.approx(solved(values, cheap, [*map(price, cheap)]))
    return total < apart - 1e-9


def test_the_best_way_is_the_optimum_of_an_integer_program_and_never_above_partitions():
    assert sum(check(seed, 5) for seed in range(25)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 500, 50))
def test_the_best_way_is_the_optimum_for_up_to_eight_units(first):
    assert sum(check(seed, 8) for seed in range(first, first + 50)) > 10


def test_the_best_way_is_the_best_of_all_sets_of_parts():
    for seed in range(12):
        rng = random.Random(seed)
        values, _, beside = drawn_values(rng, rng.randint(1, 4))
        price, found = drawn_prices(rng), [*makings(values, beside)]
        most = len(values.makers)  # each part of a best plan stores a value that no other does
        sets = chain.from_iterable(combinations(found, n) for n in range(1, most + 1))

        least = min(sum(map(price, some)) for some in sets if is_plan(values, some))

        assert best_way(values, found, price)[0] == pytest.approx(least)


def is_plan(values, parts):
    stored = [one.stores >> value & 1 for one in parts for value in range(len(values.makers))]
    each = [sum(stored[value :: len(values.makers)]) for value in range(len(values.makers))]
    shown = all(each[value] for value in range(len(each)) if values.shown >> value & 1)
    return shown and max(each) == 1 and not those_that_cannot_run(parts, [*range(len(parts))])


def test_bounds_find_the_optimum_and_price_a_part_once():
    for seed in range(20):
        rng = random.Random(seed)
        values, _, beside = drawn_values(rng, rng.randint(2, 5))
        price, found, asked = drawn_prices(rng), [*makings(values, beside)], []
        shares = {one: rng.uniform(0.5, 1.0) for one in found}

        def priced(one, price=price, asked=asked):
            asked.append(one)
            return Price(price(one))

        def bound(one, price=price, shares=shares):
            return shares[one] * price(one)

        way, prices = best_cover(values, beside, bound=bound, price=priced)

        assert sum(map(price, way)) == pytest.approx(best_way(values, found, price)[0])
        assert len(asked) == len({*asked}) == len(prices)


def test_a_value_is_made_again_where_storing_it_takes_longer():
    # 1 and 2 read 0, and all three as one kernel are slow
    values, beside = Values([0, 1, 2], [0, 1, 1], 0b110), [6, 5, 3]
    prices = {0b001: 4.0, 0b010: 4.0, 0b100: 4.0, 0b011: 4.0, 0b101: 4.0, 0b111: 20.0}

    def length(one):
        return prices.get(one.units, 9.0) + one.stores.bit_count()

    total, way = best_way(values, makings(values, beside), length)

    assert (total, sorted(way)) == (10.0, [(0b011, 0b010, 0), (0b101, 0b100, 0)])
    assert partitioned(values, values.reads, beside, length) == 11.0


def test_what_a_part_computes_in_vain_is_no_part():
    values = Values([0, 1], [0, 1], 0b10)  # 1 reads 0
    both = Values([0, 1], [0, 1], 0b11)
    alone = [(0b01, 0b01, 0), (0b10, 0b10, 0b01)]

    assert [*makings(values, [2, 1])] == [*alone, (0b11, 0b10, 0)]
    assert [*makings(both, [2, 1])] == [*alone, (0b11, 0b11, 0), (0b11, 0b10, 0)]


def test_a_program_with_too_many_arrays_is_refused_in_words():
    most = PRIORS.overlapping_values
    values = Values(range(most + 1), [0] * (most + 1), 1)

    with pytest.raises(ValueError, match=r"programs of at most 8 arrays .* give: here are 9"):
        best_cover(values, [0] * (most + 1), bound=lambda one: 1.0, price=lambda one: Price(1.0))


def test_without_kernels_there_is_no_plan():
    values = Values([0], [0], 1)

    way, _ = best_cover(values, [0], bound=lambda one: 1.0, price=lambda one: Price(float("inf")))

    assert way == []
