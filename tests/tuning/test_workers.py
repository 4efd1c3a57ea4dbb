"""Calls in processes of their own: one that crashes or hangs is lost, for a reason in words."""

import time

import pytest

from blockbuster.tuning.entry import LATE
from blockbuster.tuning.workers import Lost, called
from tests.tuning import calls

NOTHING = ()  # modules to load first


def in_worker(function, seconds=30.0):
    return called(NOTHING, time.monotonic() + seconds, function, 21)


def test_a_call_gives_its_result():
    assert in_worker(calls.doubled) == 42


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (calls.raising, "ValueError: 21 is refused"),
        (calls.refusing, "LaunchError: 21 is refused; launching out; hint: give 42"),
        (calls.dying, "its worker ended by signal 11"),
        (calls.leaving, "its worker ended with code 7"),
    ],
)
def test_a_call_that_is_lost_says_why(function, reason):
    with pytest.raises(Lost, match=reason):
        in_worker(function)
    assert in_worker(calls.doubled) == 42  # the next one has a process of its own


def test_a_call_that_hangs_is_ended_in_time():
    with pytest.raises(Lost, match="did not finish"):
        in_worker(calls.hanging, 1.0)


def test_no_call_begins_when_time_is_up():
    with pytest.raises(Lost, match=LATE):
        in_worker(calls.doubled, 0.0)


def test_a_worker_keeps_what_it_has_begun_until_a_call_fails():
    numbers = [in_worker(calls.counted) for _ in range(3)]
    assert numbers == [*range(numbers[0], numbers[0] + 3)]
    with pytest.raises(Lost):
        in_worker(calls.raising)
    assert in_worker(calls.counted) == 1
