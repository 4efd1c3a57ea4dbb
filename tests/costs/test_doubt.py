"""Estimates of registers that may be off, and what follows for how long a kernel takes."""

from dataclasses import replace
from math import sqrt
from statistics import mean

import pytest

from blockbuster.costs import time_of
from blockbuster.costs.footprint import Footprint
from blockbuster.machines import machine
from tests.costs.test_footprints import pairs
from tests.costs.test_tiered import works

H200 = machine("h200")


@pytest.mark.parametrize(
    ("footprint", "likely"),
    [
        (Footprint(shared=0, registers=128, warps=4), {4: 1.0}),  # a binary's: no doubt
        (Footprint(shared=0, registers=128, warps=4, doubt=1), {4: 0.75, 3: 0.25}),
        (Footprint(shared=0, registers=160, warps=4, doubt=20), {3: 0.75, 2: 0.25}),
        (Footprint(shared=0, registers=140, warps=4, doubt=33), {3: 0.5, 4: 0.25, 2: 0.25}),
        (Footprint(shared=120_000, registers=140, warps=4, doubt=33), {1: 1.0}),
        (Footprint(shared=0, registers=16, warps=4, doubt=40), {16: 0.75, 9: 0.25}),
    ],
)
def test_an_estimate_that_may_be_off_says_how_many_programs_are_likely(footprint, likely):
    assert footprint.likely_residents(H200) == likely


def test_estimates_are_as_far_off_as_they_say():
    """Where a program has more than accumulators, indices and loops, its estimate errs by more."""
    found = [
        (abs(registers - estimate.registers), estimate.doubt)
        for target, estimate, _, registers, spills in pairs()
        if target == "sm_90" and not spills and estimate.doubt
    ]
    assert any(not estimate.doubt for _, estimate, *_ in pairs()), "kernels without dots"
    for low, high in ((0, 10), (10, 20), (20, 40), (40, 100)):
        errors = [error for error, doubt in found if low <= doubt < high]
        doubts = [doubt for _, doubt in found if low <= doubt < high]
        spread = sqrt(mean(error**2 for error in errors))
        assert len(errors) > 10
        assert 0.6 * spread <= mean(doubts) <= 1.6 * spread, (low, high)


def test_the_time_is_the_mean_over_how_many_programs_are_likely():
    (one,) = works("attention")
    sure = replace(one.footprint, doubt=0, shared=1000)

    def seconds_of(registers, doubt=0):
        footprint = replace(sure, registers=registers, doubt=doubt)
        return time_of(replace(one, footprint=footprint), H200).seconds

    few, usual, many = (seconds_of(registers) for registers in (200, 160, 120))
    assert many < usual < few  # 2, 3 and 4 programs side by side
    doubt = 40
    assert seconds_of(160, doubt) == pytest.approx(usual / 2 + many / 4 + few / 4)
    found = time_of(replace(one, footprint=replace(sure, registers=160, doubt=doubt)), H200)
    assert found.resident == replace(sure, registers=160).resident(H200)
