"""Fitting finds the coefficients that made the times, one along after the other."""

from dataclasses import dataclass, fields

import pytest

from bench.costs.fit import BOUNDS, FIXED, NEUTRAL, fit, loss
from blockbuster.costs.coefficients import FITTED

LIMITS = {"memory": (0.5, 1.0)}
PAIRS = [(1.0, 8.0), (2.0, 3.0), (4.0, 1.0), (0.5, 9.0), (3.0, 3.0)]


@dataclass(frozen=True)
class Two:
    """Coefficients of a model of two resources, one after the other."""

    memory: float = 0.9
    dot: float = 20.0


@dataclass(frozen=True)
class Pair:
    bytes: float
    dots: float
    is_clean: bool = True
    times: dict = None


def predict(pair, way, fitted):
    """Bytes and dots, one after the other; what does not fit is infinite."""
    if pair.dots < 0:
        return float("inf")
    return (2.0 if way == "cold" else 1.0) * pair.bytes / fitted.memory + pair.dots * fitted.dot


def measured(made_by):
    pairs = [Pair(*numbers) for numbers in PAIRS]
    times = [{way: predict(pair, way, made_by) for way in ("cold", "warm")} for pair in pairs]
    return [Pair(p.bytes, p.dots, times=t) for p, t in zip(pairs, times, strict=True)]


def test_it_finds_what_made_the_times():
    truth = Two(memory=0.6, dot=0.5)
    groups = [measured(truth)]
    found = fit(groups, predict, Two(), LIMITS, say=lambda _: None)

    assert loss(groups, predict, found) < 0.02 < loss(groups, predict, Two())
    assert found.memory == pytest.approx(truth.memory, rel=0.08)
    assert found.dot == pytest.approx(truth.dot, rel=0.08)


def test_fractions_stay_where_they_make_sense():
    found = fit([measured(Two(memory=0.1, dot=20.0))], predict, Two(), LIMITS, say=lambda _: None)

    assert 0.5 <= found.memory <= 1.0


def test_the_start_and_what_was_found_lie_within_bounds():
    for made in (NEUTRAL, FITTED):
        for name, (low, high) in BOUNDS.items():
            assert low <= getattr(made, name) <= high, name
    assert {each.name for each in fields(NEUTRAL)} - set(BOUNDS) == {*FIXED, "request"}


def test_what_spills_or_does_not_fit_is_left_out():
    groups = [measured(Two())]
    wrong = {"cold": 1.0, "warm": 1.0}
    more = [Pair(1.0, 1.0, is_clean=False, times=wrong), Pair(1.0, -1.0, times=wrong)]

    assert loss([[*groups[0], *more]], predict, Two()) == loss(groups, predict, Two())
