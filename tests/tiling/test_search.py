"""Searches: the evolutionary one comes near the best of all with few measurements, and repeats."""

import math
import random
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster.errors import EmitError
from blockbuster.tiling import estimate, gemm_chain, pruned, self_attention
from blockbuster.tiling.measurement import Measurement, Workers
from blockbuster.tiling.mutation import of_tiles
from blockbuster.tiling.search import Settings, evolutionary, exhaustive
from tests.tiling.chains import SMALL

CHAIN = gemm_chain(512, 256, 64, 128)
SPACE = pruned(CHAIN, 65536).candidates


def by_model(chain, one):
    return estimate(chain, one, SMALL).seconds


MODEL = partial(by_model, CHAIN)


def searched(seconds, *, candidates=SPACE, model=MODEL, **settings):
    with Workers() as workers:
        measured = partial(workers.measure, seconds)
        return evolutionary(candidates, of_tiles(SPACE), model, measured, Settings(**settings))


def test_the_model_alone_comes_near_the_best_of_all():
    with Workers() as workers:
        best = exhaustive(SPACE, partial(workers.measure, MODEL))
    found = [searched(MODEL, seed=seed) for seed in range(5)]

    assert len(best.measured) == len(SPACE)
    assert best.seconds == min(map(MODEL, SPACE))
    assert max(one.seconds for one in found) <= 1.1 * best.seconds
    assert max(len(one.measured) for one in found) < len(SPACE) / 10


def test_equal_seeds_give_equal_searches():
    assert searched(MODEL, seed=7) == searched(MODEL, seed=7)


def test_no_candidate_is_measured_twice_and_the_best_never_gets_worse():
    found = searched(lambda one: hash(str(one)) % 1000 + 1.0, population=32, gap=1e-9)
    names = [str(one.candidate) for one in found.measured]

    assert len(names) == len(set(names))
    assert list(found.best_of) == sorted(found.best_of, reverse=True)
    assert found.seconds == min(one.seconds for one in found.measured)


def test_what_fails_is_recorded_and_not_chosen():
    best = min(SPACE, key=MODEL)

    def measure(one):
        if one == best:
            raise MemoryError("too large")
        return MODEL(one)

    found = searched(measure, population=len(SPACE))
    assert found.best != best
    assert found.lost == (Measurement(best, None, "MemoryError: too large"),)


def test_a_search_without_candidates_or_times_says_so():
    def refuse(one):
        raise RuntimeError("no GPU")

    with pytest.raises(
        ValueError, match="no candidate gave a time; the first: RuntimeError: no GPU"
    ):
        searched(refuse, generations=2)
    with pytest.raises(ValueError, match="no candidate to search among"):
        searched(MODEL, candidates=())


@settings(max_examples=30)
@given(st.data())
def test_a_mutation_changes_one_tile_and_stays_in_the_space(data):
    mutations = of_tiles(SPACE)
    one = data.draw(st.sampled_from(SPACE))
    other = mutations.mutated(one, random.Random(data.draw(st.integers(0, 9))))

    assert other in SPACE
    assert other.body == one.body
    assert sum(a != b for a, b in zip(one.tiles, other.tiles, strict=True)) == 1


def test_a_space_of_one_has_no_mutation():
    tiny = pruned(self_attention(16, 16, 16, 16), 65536).candidates
    assert of_tiles(tiny).mutated(tiny[0], random.Random(0)) == tiny[0]


@pytest.mark.parametrize("trouble", [EmitError("no"), ValueError("no"), math.nan, 0.0, math.inf])
def test_what_the_model_calls_impossible_is_neither_measured_nor_chosen(trouble):
    possible = set(SPACE[::3])

    def model(one):
        if one in possible:
            return MODEL(one)
        if isinstance(trouble, float):
            return trouble
        raise trouble

    found = searched(MODEL, model=model, population=32)
    assert {one.candidate for one in found.measured} <= possible


def test_a_model_that_calls_all_impossible_is_heard():
    def model(one):
        raise ValueError("it does not fit")

    with pytest.raises(ValueError, match="no candidate gave a time; the first: it does not fit"):
        searched(MODEL, model=model, generations=2)


def test_what_measures_may_give_no_time():
    one, other = SPACE[:2]
    found = exhaustive(
        SPACE[:2], lambda some: [Measurement(one, math.nan), Measurement(other, 1.0)]
    )
    assert found.best == other
    assert found.lost == (Measurement(one, None, "it gave nan, and no time in seconds"),)


@pytest.mark.parametrize(
    "wrong", [dict(population=0), dict(top=0), dict(generations=1.5), dict(gap=math.nan)]
)
def test_settings_that_search_nothing(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} is"):
        Settings(**wrong)
