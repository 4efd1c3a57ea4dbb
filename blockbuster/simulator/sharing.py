"""Processor sharing in virtual time: the active jobs of a resource share its rate equally.

The virtual time of a resource is the amount that a job would have received had it been active from
the start. It advances at the rate divided by the number of active jobs. So a job that starts at
virtual time v and needs the amount a is done at v + a, whichever jobs come and go. Numbers may be
floats or fractions.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

Number = Any


class Job:
    """Something that takes amounts of several resources at once, and is done when it has them all.

    ``began`` and ``ended``: seconds. ``until``: it is not done before. ``parts``: how many amounts
    it still waits for. ``waiter``: who goes on when it is done.
    """

    __slots__ = ("began", "ended", "parts", "until", "waiter")

    def __init__(self, began: Number, until: Number) -> None:
        self.began = self.ended = began
        self.until = until
        self.parts = 0
        self.waiter: Any = None


class Shared:
    """A resource that gives ``rate`` a second, in equal shares to the jobs that are active.

    ``due``: the earliest time at which somebody will look at it; None if nobody will.
    """

    __slots__ = ("_active", "_order", "_since", "_virtual", "due", "rate")

    def __init__(self, rate: Number) -> None:
        self.rate = rate
        self.due: Number = None
        self._active: list[tuple[Number, int, Job]] = []
        self._virtual: Number = 0
        self._since: Number = 0
        self._order = 0

    def add(self, now: Number, amount: Number, job: Job) -> bool:
        """From ``now`` on ``job`` takes ``amount``; True if it is the first to have it.

        What all others take ends later than before, as there is one more to share with.
        """
        active = self._active
        if active:
            passed = (now - self._since) * self.rate / len(active)
            self._virtual += min(passed, active[0][0] - self._virtual)
        self._since = now
        self._order += 1
        job.parts += 1
        heappush(active, (self._virtual + amount, self._order, job))
        return active[0][2] is job

    def next_end(self) -> Number:
        """When the first of the active amounts is given, if nothing is added; None if idle."""
        active = self._active
        if not active:
            return None
        return self._since + (active[0][0] - self._virtual) * len(active) / self.rate

    def ended(self, now: Number) -> list[Job]:
        """The jobs whose amounts are given at ``now``, which is the time of ``next_end``."""
        active, done = self._active, []
        self._since, self._virtual = now, active[0][0]
        while active and active[0][0] <= self._virtual:
            done.append(heappop(active)[2])
        return done
