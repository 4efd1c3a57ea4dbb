"""What every rule owes, at every site and level of random programs, and that rules do fire."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster.frontend import lower, trace
from blockbuster.interp.trials import Trials
from blockbuster.ir.graph import Graph
from blockbuster.ir.verify import verify
from blockbuster.rules import (
    REPEATING_RULES,
    ROLLING_RULES,
    RULES,
    UNFUSING_RULES,
    fuse,
    made_again,
)
from blockbuster.rules.base import Match, Rule
from blockbuster.testing.cases import problem, read_cases
from blockbuster.testing.check import check_rule
from blockbuster.testing.generators import GENERATORS, arrays
from blockbuster.testing.matrices import MatrixPrograms
from blockbuster.testing.sites import UNSETTLED, Site, difference, flaw, sites
from tests.random_programs.norms import norm_programs
from tests.random_programs.searches import search_programs
from tests.random_programs.softmaxes import softmax_programs
from tests.random_programs.strategies import programs, programs_with_site
from tests.random_programs.walks import EVERY_RULE, RULE_SETS
from tests.rules.golden import GOLDEN, folder_of
from tests.rules.numbers import assert_same_numbers
from tests.rules.test_rolling_update import MUSTS, inputs_of

FEWEST = 10
"""How many of the counted programs must have a site of a rule: else its property says nothing."""
BY_NAME = pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)


def check_site(graph: Graph, path: tuple[int, ...], match: Match) -> None:
    """Everything a rule owes at one site of a program, and the same numbers in floating point."""
    site = Site(graph, path, match)
    wrong = flaw(site)
    assert wrong is None, f"{wrong.kind} at {site}: {wrong.story}\n{graph}"
    assert_same_numbers(graph, site.after)


def check_some(graph: Graph, rule: Rule, random: Random, most: int = 3) -> None:
    found = list(sites(graph, [rule]))
    trials = Trials(2, random.randrange(1000))
    for site in random.sample(found, min(len(found), most)):
        wrong = flaw(site, trials)
        settled = wrong is None or wrong.kind != UNSETTLED  # test_passes_the_suite counts these
        assert wrong is None or not settled, f"{wrong.kind} at {site}: {wrong.story}\n{graph}"


SEEDS = {"rolling-update": 1}
"""Where seed 0 has a program that proofs do not decide: a cube over a magnitude of any sign."""


@BY_NAME
def test_passes_the_suite(rule):
    report = check_rule(rule, programs=30, seed=SEEDS.get(rule.name, 0))

    assert report.passed, str(report)
    assert report.fired >= FEWEST
    assert report.unsettled <= report.checked_sites / 20


@pytest.mark.slow
@BY_NAME
def test_golden_cases_are_proved(rule):
    """`make test` compares them in floating point."""
    for case in read_cases(GOLDEN / folder_of(rule)):
        assert problem(rule, case) is None, case.path


@BY_NAME
@settings(max_examples=settings().max_examples // 6)
@given(data=st.data())
def test_keeps_meaning_at_planted_sites(rule, data):
    graph = data.draw(programs_with_site(rule.name), label="program")

    check_some(graph, rule, data.draw(st.randoms(use_true_random=False), label="choices"))


@BY_NAME
@settings(max_examples=5)
@given(random=st.randoms(use_true_random=False))
def test_keeps_meaning_at_stages_of_fusion(rule, random):
    derivation = fuse(MatrixPrograms(random, whole=False).graph(), RULES)
    count = len(derivation.applications)
    for at in random.sample(range(count + 1), min(count, 2)):
        check_some(derivation.graph_after(at), rule, random, most=2)


@pytest.mark.parametrize("kind", GENERATORS)
@settings(max_examples=5)
@given(data=st.data())
def test_keeps_the_numbers_exactly_where_integers_stay_integers(kind, data):
    graph = data.draw(programs(kind), label="program")
    random = data.draw(st.randoms(use_true_random=False), label="choices")
    found = list(sites(graph, EVERY_RULE))
    for site in random.sample(found, min(len(found), 3)):
        check_site(graph, site.path, site.match)


def fired(graph: Graph) -> set[str]:
    """The rules that fuse a program, or have a site in it or in what it becomes."""
    found = {site.match.rule.name for site in sites(graph, EVERY_RULE)}
    for rules in (*RULE_SETS, ROLLING_RULES):
        derivation = fuse(graph, rules)
        found |= {step.rule for step in derivation.steps}
        found |= {site.match.rule.name for site in sites(derivation.final, UNFUSING_RULES)}
    return found


def fired_again(graph: Graph) -> set[str]:
    """The rules that make larger values of a program again."""
    again = made_again(fuse(graph), (*RULES, *REPEATING_RULES[-1:]))
    return {step.rule for step in again.steps} if again else set()


def test_every_rule_fires_on_generated_programs():
    graphs = [MatrixPrograms(Random(seed)).graph() for seed in range(60)]
    plain = graphs + norm_programs(40) + softmax_programs(20) + search_programs(10)
    plain += [lower(trace(fn, **inputs_of(fn))) for fn in MUSTS]
    again = graphs[::3] + [arrays(Random(seed)) for seed in range(60)]
    tries = [(fired, graph) for graph in plain] + [(fired_again, graph) for graph in again]
    Random(0).shuffle(tries)
    missing = {rule.name for rule in EVERY_RULE}
    while missing and tries:
        names, graph = tries.pop()
        missing -= names(graph)

    assert missing == set()


@pytest.mark.parametrize("kind", GENERATORS)
@settings(max_examples=8)
@given(data=st.data())
def test_every_snapshot_computes_the_same(kind, data):
    graph = data.draw(programs(kind), label="program")
    derivation = fuse(graph, RULES)
    for snapshot in derivation.snapshots:
        wrong = difference(graph, snapshot)
        assert wrong is None or wrong.kind == "unsettled", wrong

    assert derivation.replay() == derivation.final


@settings(max_examples=10)
@given(random=st.randoms(use_true_random=False))
def test_sites_may_be_taken_in_any_order(random):
    graph = MatrixPrograms(random).graph()
    now = graph
    for _ in range(12):
        found = list(sites(now, EVERY_RULE))
        if not found:
            break
        now = random.choice(found).after
        verify(now)
        assert_same_numbers(graph, now)
