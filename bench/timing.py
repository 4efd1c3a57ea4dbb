"""Times of calls on a GPU, in microseconds: cold, warm, and in rounds in which all take turns.

Cold: the second-level cache is overwritten before each call, and events around the call are read.
Warm: a CUDA graph of several calls is replayed, so that the host's work does not count. In each
round every call is timed once, so that a chip that slows down slows all of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

Run = Callable[[], Any]

FLUSHED = 256 << 20  # bytes: several times the second-level cache
COLD_US, WARM_US = 3000.0, 400.0  # what the calls of a round, and those of a graph, take in all
COLD_CALLS, WARM_CALLS = (5, 15), (2, 20)
REPLAYS = 3
SLOW = 50_000.0  # microseconds from which one call is enough for a time
GRAPHED = 1000.0  # below so many microseconds the host takes a part of the time


class Clock:
    """Times of calls on the current GPU, in microseconds."""

    def __init__(self) -> None:
        import torch

        self._flushed = torch.empty(FLUSHED, dtype=torch.int8, device="cuda")

    def cold(self, run: Run, calls: int) -> float:
        """The median of calls that find nothing in the cache."""
        pairs = [(_event(), _event()) for _ in range(calls)]
        for begun, ended in pairs:
            self._flushed.zero_()
            begun.record()
            run()
            ended.record()
        return statistics.median(_microseconds(pairs))

    def graph(self, run: Run, calls: int) -> Callable[[], float]:
        """A clock of calls that follow each other in a graph, after one replay."""
        import torch

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                run()

        def warm() -> float:
            graph.replay()
            pairs = [(_event(), _event()) for _ in range(REPLAYS)]
            for begun, ended in pairs:
                begun.record()
                graph.replay()
                ended.record()
            return statistics.median(_microseconds(pairs)) / calls

        return warm


def _event() -> Any:
    import torch

    return torch.cuda.Event(enable_timing=True)


def _microseconds(pairs: list[tuple[Any, Any]]) -> list[float]:
    import torch

    torch.cuda.synchronize()
    return [1e3 * begun.elapsed_time(ended) for begun, ended in pairs]


def cold_calls(usual: float) -> int:
    """How many calls of so many microseconds a cold round takes; one of slow ones."""
    return 1 if usual >= SLOW else _within(COLD_US / (usual + 70.0), COLD_CALLS)


def warm_calls(usual: float) -> int:
    """How many calls of so many microseconds a graph holds."""
    return _within(WARM_US / usual, WARM_CALLS)


def usual_time(clock: Clock, run: Run) -> float:
    """About how long a call takes: the least of a few times, of two calls if those are slow."""
    first = min(clock.cold(run, 1) for _ in range(2))
    return first if first >= SLOW else min(clock.cold(run, 3) for _ in range(3))


def _within(number: float, limits: tuple[int, int]) -> int:
    return max(limits[0], min(limits[1], int(number)))


@dataclass(frozen=True)
class Times:
    """The rounds of several calls by name; ``warm`` is empty if graphs were not asked for.

    ``uncaptured``: why a call has no graph, by name.
    """

    cold: Mapping[str, list[float]]
    warm: Mapping[str, list[float]]
    uncaptured: Mapping[str, str]

    def medians(self) -> dict[str, float]:
        """A time for each call: by graph if graphs were taken, else cold."""
        kept = self.warm or self.cold
        return {name: statistics.median(rounds) for name, rounds in kept.items()}


def medians(runs: Mapping[str, Run], rounds: int) -> dict[str, float]:
    """The median time of each call, in microseconds."""
    return timed(runs, rounds, graphed=GRAPHED).medians()


def timed(runs: Mapping[str, Run], rounds: int, *, graphed: float) -> Times:
    """Rounds of all calls in turn, by graph too if the fastest takes less than ``graphed`` us.

    All by graph, or none: only like is compared with like. A call that cannot be captured has no
    warm rounds. Which it is follows from the least of a few times: a host that is busy for a moment
    makes all calls look long.
    """
    clock = Clock()
    usual = {name: usual_time(clock, run) for name, run in runs.items()}
    cold = {name: partial(clock.cold, run, cold_calls(usual[name])) for name, run in runs.items()}
    warm: dict[str, Callable[[], float]] = {}
    uncaptured: dict[str, str] = {}
    if min(usual.values(), default=graphed) < graphed:
        for name, run in runs.items():
            try:
                warm[name] = clock.graph(run, warm_calls(usual[name]))
            except Exception as error:  # what is raised is up to the library that is called
                uncaptured[name] = f"{type(error).__name__}: {error}"[:300]
    return Times(*in_rounds(rounds, cold, warm), uncaptured)


Clocks = Mapping[str, Callable[[], float]]
Rounds = dict[str, list[float]]


def in_rounds(rounds: int, *groups: Clocks) -> list[Rounds]:
    """What clocks say, round by round, group by group."""
    found: list[Rounds] = [{name: [] for name in group} for group in groups]
    for _ in range(rounds):
        for group, times in zip(groups, found, strict=True):
            for name, clock in group.items():
                times[name].append(round(clock(), 3))
    return found
