"""Finder: the sites that rules have, each level looked through once."""

from collections import Counter
from random import Random

import pytest

from blockbuster.ir.ops import Map
from blockbuster.rules import PAPER_RULES, FuseMaps
from blockbuster.testing.generators import GENERATORS, program_for
from blockbuster.testing.sites import sites
from tests.random_programs.finder import Finder
from tests.random_programs.walks import EVERY_RULE


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


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
def test_no_site_without_the_operators_that_a_rule_needs(rule):
    kinds = ("planted", "blocks")
    cases = [(seed, kind) for seed in range(25) for kind in kinds]
    programs = [program_for(rule.name, seed, Random(seed), kinds=[kind])[1] for seed, kind in cases]
    found = [site for program in programs for site in sites(program, [rule])]
    kinds_of = (Counter(type(node.op) for node in site.level.nodes) for site in found)
    assert found
    assert all(kinds >= Counter(rule.needs) for kinds in kinds_of)


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
    several = [level for level in levels if len([*level.of_type(Map)]) > 1]
    assert len(looked) == len({id(level) for level in several})
    assert all(len(finder.matches(rule, level)) <= 1 for level in levels)
    finder.sites(first.after, rule)

    assert len({*map(id, looked)}) == len(looked)
    assert len(looked) < len(levels) + len(list(first.after.walk()))
