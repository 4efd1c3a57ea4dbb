"""Checked steps of rules over random programs, of which the thorough profile runs thousands.

Half of the programs take random rules at random sites, the others the order of a rule set.
A program is named by the seed of the run and its number alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from blockbuster.interp.trials import Trials
from blockbuster.ir.garbage import collection_paused
from blockbuster.ir.graph import Graph
from blockbuster.rules import (
    PAPER_RULES,
    PEELING_RULES,
    REPEATING_RULES,
    ROLLING_RULES,
    RULES,
    UNFUSING_RULES,
    fuse,
)
from blockbuster.rules.base import Match, Rule
from blockbuster.testing.check import minimal
from blockbuster.testing.generators import GENERATORS
from blockbuster.testing.report import Failure
from blockbuster.testing.sites import UNSETTLED, Site, flaw
from tests.random_programs.finder import Finder

RULE_SETS = (PAPER_RULES, RULES, PEELING_RULES)
BESIDE = (ROLLING_RULES, UNFUSING_RULES, REPEATING_RULES)
EVERY_RULE: tuple[Rule, ...] = tuple(
    dict.fromkeys(rule for rules in (*RULE_SETS, *BESIDE) for rule in rules)
)
MOST_STEPS = 7
LARGEST = 150  # nodes at all levels: extensions in random order copy, and copies of copies grow
RANDOM, ORDERED = "random rule at a random site", "in the order of a rule set"


@dataclass
class Tally:
    """The totals: counts by kind of program, by order and by rule; and the failures."""

    programs: Counter[str] = field(default_factory=Counter)
    orders: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    unsettled: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        for mine, theirs in (
            (self.programs, other.programs), (self.orders, other.orders), (self.steps, other.steps),
        ):  # fmt: skip
            mine.update(theirs)
        self.unsettled += other.unsettled
        self.seconds += other.seconds
        self.failures += other.failures


def walked(seed: int, numbers: Sequence[int]) -> Tally:
    """The programs of these numbers, taken some steps each, every step checked in a trial."""
    tally, start = Tally(), time.process_time()
    for number in numbers:
        with collection_paused():
            _walk(seed, number, tally)
    tally.seconds = time.process_time() - start
    return tally


def _walk(seed: int, number: int, tally: Tally) -> None:
    """One program and its steps, up to the first that is wrong."""
    random = Random(f"walk/{seed}/{number}")
    kind = list(GENERATORS)[number % len(GENERATORS)]
    order = (RANDOM, ORDERED)[number // len(GENERATORS) % 2]
    graph = GENERATORS[kind](random)
    tally.programs[kind] += 1
    steps = randomly(graph, random) if order == RANDOM else ordered(graph, random)
    trials = Trials(1, random.randrange(2**32))
    for site in steps:
        wrong = flaw(site, trials)
        if wrong is None:
            tally.steps[site.match.rule.name] += 1
            tally.orders[order] += 1
        elif wrong.kind == UNSETTLED:
            tally.unsettled += 1
        else:
            where = f"found in program {number} of seed {seed} ({kind}, {order})"
            tally.failures.append(str(minimal(Failure(wrong, site, where), seed)))
            return


def randomly(graph: Graph, random: Random) -> Iterator[Site]:
    """Any rule at any site, up to ``MOST_STEPS`` times; a rule with many sites is not preferred."""
    finder = Finder(EVERY_RULE)
    for _ in range(MOST_STEPS):
        rules = random.sample(EVERY_RULE, len(EVERY_RULE))
        found = next(filter(None, (finder.sites(graph, rule) for rule in rules)), None)
        if found is None:
            return
        site = random.choice(found)
        yield site
        graph = site.after
        if graph.size > LARGEST:
            return


def ordered(graph: Graph, random: Random) -> Iterator[Site]:
    """Steps of ``fuse`` with one of the rule sets: one of each rule, others at random."""
    derivation = fuse(graph, random.choice(RULE_SETS))
    steps = list(derivation.steps)
    random.shuffle(steps)
    first = {step.rule: step for step in steps}
    chosen = dict.fromkeys(step.index for step in (*first.values(), *steps))
    for index in sorted(list(chosen)[:MOST_STEPS]):
        step, rule = derivation.steps[index], derivation.applications[index].rule
        before = step.before
        yield Site(before, step.path, Match(rule, before.at(step.path), step.match))
