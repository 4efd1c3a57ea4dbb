"""The clock of a simulation: the queue of events, and the actors that continue at each.

An *actor* is a generator that yields the jobs that it waits for: it continues when the job is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import TypeAlias

from blockbuster.simulator.sharing import Job, Number, Shared

Actor: TypeAlias = Iterator[Job]
Amounts: TypeAlias = Sequence[tuple[Shared, Number]]


class Clock:
    """The events on shared resources, in the order of time; ties in the order they were noted."""

    def __init__(self, zero: Number = 0.0) -> None:
        self.now = zero
        self._order = 0
        self._queue: list[tuple[Number, int, Shared | Callable[[], None]]] = []

    def start(self, actor: Actor) -> None:
        """Let an actor run until it waits, or ends."""
        for job in actor:
            if job.parts:
                job.waiter = actor
                return

    def job(self, amounts: Amounts, *, least: Number = 0) -> Job:
        """A job that takes amounts from now on, and lasts at least so many seconds."""
        job = Job(self.now, self.now + least)
        job.parts = 1  # until all amounts are taken
        self._take(job, amounts)
        self.given(job)
        return job

    def joined(self, parts: int, *, least: Number = 0) -> Job:
        """A job that is done when ``given`` was called so many times, and ``least`` has passed."""
        job = Job(self.now, self.now + least)
        job.parts = parts
        return job

    def later(self, after: Number, what: Callable[[], None]) -> None:
        """Call ``what`` in so many seconds, behind all that was noted for that time before."""
        self._push(self.now + after, what)

    def given(self, job: Job) -> None:
        """``job`` has one more of its parts; with the last it is done, and its waiter goes on."""
        job.parts -= 1
        if job.parts:
            return
        if self.now < job.until:
            job.parts = 1
            self._push(job.until, partial(self.given, job))
            return
        job.ended = self.now
        if job.waiter is not None:
            actor, job.waiter = job.waiter, None
            self.start(actor)

    def run(self) -> None:
        """Until nothing is left to happen."""
        queue = self._queue
        while queue:
            self.now, _, what = heappop(queue)
            if isinstance(what, Shared):
                self._look(what)
            else:
                what()

    def _take(self, job: Job, amounts: Amounts) -> None:
        for resource, amount in amounts:
            if amount and resource.add(self.now, amount, job):
                self._note(resource)

    def _look(self, resource: Shared) -> None:
        """At one of the times that were noted: shares may have changed since."""
        if resource.due == self.now:
            resource.due = None
        end = resource.next_end()
        if end is None:
            return
        done = resource.ended(self.now) if end <= self.now else ()
        self._note(resource)
        for job in done:
            self.given(job)

    def _note(self, resource: Shared) -> None:
        """Look at ``resource`` when the next of its amounts is given, if not before."""
        end = resource.next_end()
        if end is not None and (resource.due is None or end < resource.due):
            resource.due = end
            self._push(end, resource)

    def _push(self, time: Number, what: Shared | Callable[[], None]) -> None:
        self._order += 1
        heappush(self._queue, (time, self._order, what))
