"""Finder: the sites that rules have, each level looked through once."""

from random import Random

import pytest

from blockbuster.rules import PAPER_RULES, FuseMaps
from blockbuster.testing.generators import GENERATORS
from blockbuster.testing.sites import Finder, sites


@pytest.mark.parametrize("kind", GENERATORS)
def test_the_sites_of_each_program_of_a_walk(kind):
    for seed in range(4):
        random = Random(f"finder {seed}")
        graph, finder = GENERATORS[kind](random), Finder(PAPER_RULES)
        for _ in range(8):
            found = []
            for rule in PAPER_RULES:
                plain = list(sites(graph, [rule]))
                assert finder.sites(graph, rule) == plain
                found += plain
            for _, level in graph.walk():
                assert [*finder.hopeful(level).values()] == [
                    rule for rule in PAPER_RULES if rule.match(level)
                ]
            if not found:
                break
            graph = random.choice(found).after


def test_a_level_is_looked_through_once(monkeypatch):
    looked = []
    matches = FuseMaps.matches
    monkeypatch.setattr(
        FuseMaps, "matches", lambda self, *at: looked.append(at[0]) or matches(self, *at)
    )
    finder = Finder(PAPER_RULES, most=1)
    (rule,) = (rule for rule in PAPER_RULES if isinstance(rule, FuseMaps))
    graph = next(
        graph for seed in range(99)
        if len(list(sites(graph := GENERATORS["arrays"](Random(seed)), [rule]))) > 1
    )  # fmt: skip
    looked.clear()

    (first, *_) = finder.sites(graph, rule)
    levels = [level for _, level in graph.walk()]
    assert len(looked) == len({id(level) for level in levels})
    assert all(len(finder.matches(rule, level)) <= 1 for level in levels)
    finder.sites(first.after, rule)

    assert len({*map(id, looked)}) == len(looked)
    assert len(looked) < len(levels) + len(list(first.after.walk()))
