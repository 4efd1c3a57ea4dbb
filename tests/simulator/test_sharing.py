"""The fluid clock against a simulation in small steps, both in fractions."""

from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.simulator.clock import Clock
from blockbuster.simulator.sharing import Job, Shared


@dataclass(frozen=True)
class Step:
    """Amounts of resources by number, taken after a delay; the step lasts ``least`` or longer."""

    amounts: dict[int, Fraction]
    after: Fraction
    least: Fraction


fractions = st.builds(Fraction, st.integers(1, 12), st.sampled_from([1, 2, 3]))
none_or_more = st.one_of(st.just(Fraction(0)), fractions)


@st.composite
def steps(draw, resources):
    chosen = draw(st.lists(st.integers(0, resources - 1), min_size=1, max_size=3, unique=True))
    amounts = {resource: draw(fractions) for resource in chosen}
    return Step(amounts, draw(none_or_more), draw(none_or_more))


@st.composite
def scenarios(draw):
    rates = draw(st.lists(fractions, min_size=1, max_size=3))
    chains = st.lists(steps(len(rates)), min_size=1, max_size=4)
    return rates, draw(st.lists(chains, min_size=1, max_size=5))


def by_clock(rates, chains):
    """When each step of each chain ends, on the clock."""
    clock = Clock(Fraction(0))
    resources = [Shared(rate) for rate in rates]
    ends = [[] for _ in chains]

    def actor(chain, found):
        for step in chain:
            amounts = [(resources[r], amount) for r, amount in step.amounts.items()]
            yield clock.job((), least=step.after)
            job = clock.job(amounts, least=max(step.least - step.after, Fraction(0)))
            yield job
            assert job.ended == clock.now
            found.append(clock.now)

    for chain, found in zip(chains, ends, strict=True):
        clock.start(actor(chain, found))
    clock.run()
    return ends


class Running:
    """A chain at one of its steps, in the simulation by small steps."""

    def __init__(self, chain):
        self.chain, self.at, self.ends = chain, -1, []

    def next(self, now):
        self.at += 1
        if self.at < len(self.chain):
            step = self.chain[self.at]
            self.left, self.begins = dict(step.amounts), now + step.after
            self.until = now + step.least

    def over(self):
        return self.at == len(self.chain)

    def active(self, now, resource):
        return not self.over() and now >= self.begins and self.left.get(resource, 0) > 0


def by_small_steps(rates, chains):
    """The same: from one change to the next, everything advances by its share."""
    now, running = Fraction(0), [Running(chain) for chain in chains]
    for one in running:
        one.next(now)
    while not all(one.over() for one in running):
        shares = []
        for resource, rate in enumerate(rates):
            count = sum(one.active(now, resource) for one in running)
            shares.append(rate / count if count else None)
        times = [t for one in running if not one.over() for t in (one.begins, one.until)]
        changes = [t - now for t in times if t > now]
        for one in running:
            for resource, share in enumerate(shares):
                if one.active(now, resource):
                    changes.append(one.left[resource] / share)
        passed = min(changes)
        for one in running:
            for resource, share in enumerate(shares):
                if one.active(now, resource):
                    one.left[resource] -= share * passed
        now += passed
        for one in running:
            if not one.over() and now >= max(one.begins, one.until) and not any(one.left.values()):
                one.ends.append(now)
                one.next(now)
    return [one.ends for one in running]


@given(scenario=scenarios())
def test_every_step_ends_when_small_steps_say(scenario):
    rates, chains = scenario

    assert by_clock(rates, chains) == by_small_steps(rates, chains)


def test_two_jobs_share_a_resource():
    clock, memory = Clock(Fraction(0)), Shared(Fraction(2))
    short, long = (clock.job([(memory, Fraction(amount))]) for amount in (2, 6))
    clock.run()

    assert short.ended == 2  # 2 at the rate 1
    assert long.ended == 4  # 2 at the rate 1, 4 at the rate 2


def test_a_job_of_several_resources_ends_with_the_last():
    clock, memory, unit = Clock(Fraction(0)), Shared(Fraction(1)), Shared(Fraction(1))
    job = clock.job([(memory, Fraction(3)), (unit, Fraction(1))])
    clock.run()

    assert job.ended == 3


def test_a_job_without_amounts_lasts_its_least():
    clock = Clock(Fraction(0))
    job = clock.job((), least=Fraction(5))
    clock.run()

    assert (job.began, job.ended) == (0, 5)


def test_an_actor_goes_on_at_once_with_what_is_done():
    clock, seen = Clock(), []

    def actor():
        yield Job(0.0, 0.0)  # no parts: done before it was waited for
        seen.append(clock.now)

    clock.start(actor())

    assert seen == [0.0]


def test_a_joined_job_waits_for_all_its_parts():
    clock = Clock()
    job = clock.joined(2)
    seen = []

    def actor():
        yield job
        seen.append("on")

    clock.start(actor())
    clock.given(job)
    assert not seen
    clock.given(job)
    assert seen == ["on"]


@pytest.mark.parametrize("count", [1, 7])
def test_equal_jobs_end_together(count):
    clock, memory = Clock(), Shared(1.0)
    jobs = [clock.job([(memory, 0.1)]) for _ in range(count)]
    clock.run()

    assert len({job.ended for job in jobs}) == 1
    assert jobs[0].ended == pytest.approx(0.1 * count)
