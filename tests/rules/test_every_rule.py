"""What every rule owes, at every site and level of random programs, and that rules do fire."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster.ir.graph import Graph
from blockbuster.ir.parse import parse
from blockbuster.ir.verify import verify
from blockbuster.rules import PAPER_RULES, fuse
from blockbuster.rules.base import Match
from blockbuster.rules.derivation import splice
from blockbuster.testing.programs import BlockPrograms
from tests.rules.array_programs import ArrayPrograms
from tests.rules.numbers import assert_same_numbers

RULES_BY_NAME = {rule.name: rule for rule in PAPER_RULES}
GENERATORS = {
    "blocks": BlockPrograms,
    "arrays": ArrayPrograms,
}
FEWEST = 10
"""How many of the counted programs must have a site of a rule: else its property says nothing."""


def program(generator: str, random: Random, *, whole: bool = True) -> Graph:
    return GENERATORS[generator](random, whole=whole).graph()


Site = tuple[Graph, tuple[int, ...], Match]


def sites(graph: Graph, rule: object) -> list[tuple[tuple[int, ...], Match]]:
    """Every site of the rule at every level."""
    return [(path, match) for path, level in graph.walk() for match in rule.matches(level)]


def check_site(graph: Graph, path: tuple[int, ...], match: Match) -> None:
    """Everything a rule owes at one site of a program."""
    text = graph.show()
    level = graph.at(path)
    rewritten = match.rule.apply(match)
    after, _ = splice(graph, path, rewritten)

    verify(after)
    assert rewritten.inputs == level.inputs
    assert [rewritten.type_of(o.value) for o in rewritten.outputs] == [
        level.type_of(o.value) for o in level.outputs
    ]
    assert match.rule.name in {node.origin.rule for node in rewritten.nodes}
    assert graph.show() == text
    assert parse(after.show()) == after
    assert match.rule.describe(match)
    assert_same_numbers(graph, after)


def sample_of_sites(graph: Graph, random: Random) -> list[Site]:
    """Up to two sites of each rule: among those taken by fusion and those left at some stages."""
    derivation = fuse(graph, PAPER_RULES)
    count = len(derivation.steps)
    stages = [
        derivation.graph_after(at) for at in sorted(random.sample(range(count + 1), min(count, 3)))
    ]
    found: dict[str, list[Site]] = {name: [] for name in RULES_BY_NAME}
    for stage in stages:
        for rule in PAPER_RULES:
            found[rule.name] += [(stage, *site) for site in sites(stage, rule)]
    for name, known in found.items():
        taken = [step for step in derivation.steps if step.rule == name]
        for step in random.sample(taken, min(len(taken), 1)):
            match = Match(RULES_BY_NAME[name], step.before.at(step.path), step.match)
            known.append((step.before, step.path, match))
    return [site for known in found.values() for site in random.sample(known, min(len(known), 2))]


@pytest.mark.parametrize("generator", GENERATORS)
@settings(max_examples=15)
@given(random=st.randoms(use_true_random=False))
def test_keeps_meaning_at_every_site(generator, random):
    for graph, path, match in sample_of_sites(program(generator, random), random):
        check_site(graph, path, match)


@settings(max_examples=8)
@given(random=st.randoms(use_true_random=False))
def test_keeps_meaning_with_curved_functions(random):
    for graph, path, match in sample_of_sites(program("arrays", random, whole=False), random):
        check_site(graph, path, match)


def test_every_rule_fires_on_generated_programs():
    fired: Counter[str] = Counter()
    for seed in range(100):
        derivation = fuse(program("arrays", Random(seed)), PAPER_RULES)
        fired.update({step.rule for step in derivation.steps})

    assert {name: fired[name] for name in RULES_BY_NAME if fired[name] < FEWEST} == {}


@pytest.mark.parametrize("generator", GENERATORS)
@settings(max_examples=20)
@given(random=st.randoms(use_true_random=False))
def test_every_snapshot_computes_the_same(generator, random):
    graph = program(generator, random)
    derivation = fuse(graph, PAPER_RULES)
    for snapshot in derivation.snapshots:
        assert_same_numbers(graph, snapshot)

    assert derivation.replay() == derivation.final


@settings(max_examples=10)
@given(random=st.randoms(use_true_random=False))
def test_sites_may_be_taken_in_any_order(random):
    graph = program("arrays", random)
    now = graph
    for _ in range(12):
        found = [site for rule in PAPER_RULES for site in sites(now, rule)]
        if not found:
            break
        path, match = random.choice(found)
        now, _ = splice(now, path, match.rule.apply(match))
        verify(now)
        assert_same_numbers(graph, now)
