"""Clocks of benchmarks, as far as they need no GPU: rounds, medians, and how many calls."""

import pytest

from bench.timing import (
    COLD_CALLS,
    SLOW,
    WARM_CALLS,
    Times,
    cold_calls,
    in_rounds,
    usual_time,
    warm_calls,
)


def test_all_clocks_are_read_in_turn_round_by_round():
    heard = []

    def clock(name):
        def read():
            heard.append(name)
            return len(heard)

        return read

    cold, warm = in_rounds(2, {"a": clock("a"), "b": clock("b")}, {"a": clock("a by graph")})
    assert heard == ["a", "b", "a by graph"] * 2
    assert (cold, warm) == ({"a": [1, 4], "b": [2, 5]}, {"a": [3, 6]})


def test_medians_are_of_graphs_if_there_are_any():
    rounds = {"a": [1.0, 5.0, 2.0]}
    assert Times(rounds, {}, {}).medians() == {"a": 2.0}
    assert Times(rounds, {"a": [0.5]}, {"b": "no stream"}).medians() == {"a": 0.5}


@pytest.mark.parametrize("usual", [1.0, 30.0, 300.0, SLOW / 3])
def test_short_calls_are_made_more_often_within_limits(usual):
    for count, (fewest, most) in ((cold_calls, COLD_CALLS), (warm_calls, WARM_CALLS)):
        assert fewest <= count(2 * usual) <= count(usual) <= most


class Told:
    """A clock that says what it is told, and counts the calls."""

    def __init__(self, *times):
        self.times, self.calls = list(times), 0

    def cold(self, run, calls):
        self.calls += calls
        return self.times.pop(0)


def test_slow_calls_are_made_once_for_a_time():
    slow, short = Told(SLOW, 2 * SLOW), Told(SLOW, 900.0, 30.0, 20.0, 25.0)
    assert (usual_time(slow, None), slow.calls, cold_calls(SLOW)) == (SLOW, 2, 1)
    assert (usual_time(short, None), short.calls) == (20.0, 11)
