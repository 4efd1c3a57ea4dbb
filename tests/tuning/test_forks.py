"""Calls in processes of their own: what crashes or hangs there is an answer in words here."""

import os
import time

import pytest

from blockbuster.tuning import forks
from blockbuster.tuning.forks import LATE, Gone, Lost, called, called_for_each
from tests.tuning import calls

NOTHING = ()  # modules to load first


def in_fork(function, seconds=30.0):
    return called(NOTHING, time.monotonic() + seconds, function, 21)


def test_a_call_gives_its_result():
    assert in_fork(calls.doubled) == 42


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (calls.raising, "ValueError: 21 is refused"),
        (calls.dying, "its process was ended by signal 11"),
        (calls.leaving, "its process ended with code 7"),
    ],
)
def test_a_call_that_is_lost_says_why(function, reason):
    with pytest.raises(Lost, match=reason):
        in_fork(function)
    assert in_fork(calls.doubled) == 42  # the next one has a process of its own


def test_a_call_that_hangs_is_ended_in_time():
    with pytest.raises(Lost, match="did not finish"):
        in_fork(calls.hanging, 1.0)


def test_no_call_begins_when_time_is_up():
    with pytest.raises(Lost, match=LATE):
        in_fork(calls.doubled, 0.0)


# several calls ---------------------------------------------------------------------------


def in_forks(given, seconds=30.0, count=2):
    until = time.monotonic() + seconds
    return called_for_each(NOTHING, until, calls.by_number, given, count=count)


def test_each_of_several_calls_is_lost_alone():
    assert in_forks([1, 3, 2, 7, 4]) == [
        2,
        Gone("its process was ended by signal 11"),
        4,
        Gone("ValueError: seven is refused"),
        8,
    ]
    assert in_forks([]) == []


def test_those_that_hang_are_ended_and_others_do_not_begin():
    began = time.monotonic()
    assert in_forks([1, 5, 5, 2], 2.0) == [2, Gone(LATE), Gone(LATE), Gone(LATE)]
    assert time.monotonic() - began < 10


def test_nothing_begins_when_time_is_up():
    assert in_forks([1, 2], -2.0) == [Gone(LATE)] * 2


@pytest.mark.parametrize(
    ("text", "most"), [("max 100000", None), ("250000 100000", 2), ("50000 100000", 1), ("?", None)]
)
def test_a_container_has_a_share_of_the_cores(monkeypatch, tmp_path, text, most):
    quota = tmp_path / "cpu.max"
    quota.write_text(text, encoding="ascii")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {*range(8)})
    monkeypatch.setattr(forks, "QUOTA", quota)
    assert forks.cores() == (most or 8)
    monkeypatch.setattr(forks, "QUOTA", tmp_path / "none")
    assert forks.cores() == 8
