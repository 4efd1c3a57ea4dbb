"""Every mutant dies, by the part of the suite that is meant to kill it; the rules live."""

import sys

import pytest

from blockbuster.ir.graph import Value
from blockbuster.ir.parse import parse
from blockbuster.rules import PAPER_RULES, FuseMaps
from blockbuster.testing.cases import read_cases
from blockbuster.testing.planted_sites import SITES
from blockbuster.testing.sites import flaw, sites
from tests.mutants.mutate import Mutant, judge
from tests.mutants.of_ours import MUTANTS_OF_OURS
from tests.mutants.of_the_paper import MUTANTS as MUTANTS_OF_THE_PAPER
from tests.parameters import one_in
from tests.rules.golden import GOLDEN

MUTANTS = MUTANTS_OF_THE_PAPER + MUTANTS_OF_OURS
MUTATED = {m.rule_module for m in MUTANTS}


@pytest.mark.parametrize("mutant", one_in(8, MUTANTS), ids=lambda mutant: mutant.name)
def test_is_caught(mutant, record_property):
    verdict = judge(mutant, read_cases(GOLDEN / mutant.rule_module))
    record_property("killed by", str(verdict))

    assert verdict.dead, f"a mutant survives, the suite has a hole: {verdict}"


def test_there_are_enough_of_them_and_each_rule_has_some():
    assert len(MUTANTS) >= 25
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert {type(rule).__module__.rsplit(".", 1)[1] for rule in PAPER_RULES} <= MUTATED


def test_the_rules_in_use_stay_as_they_are():
    before = {name: module for name, module in sys.modules.items() if "blockbuster.rules" in name}
    for mutant in MUTANTS:
        mutant.build()
    graph = parse(SITES["fuse-maps"][0])

    assert {n: m for n, m in sys.modules.items() if "blockbuster.rules" in n} == before
    assert [flaw(site) for site in sites(graph, PAPER_RULES)].count(None) >= 1
    assert all(flaw(site) is None for site in sites(graph, PAPER_RULES))


def test_an_edit_that_does_not_fit_the_source_is_an_error():
    mutant = Mutant("gone", "FuseMaps", "fuse_maps", "no such text", "")

    with pytest.raises(ValueError, match="has 'no such text' 0 times, expected once"):
        mutant.build()


def test_a_copy_of_a_rule_without_an_edit_does_what_the_rule_does():
    copy = Mutant("none", "FuseMaps", "legality", "", "").build()
    graph = parse(SITES["fuse-maps"][0])

    assert type(copy) is not FuseMaps
    assert copy.apply(copy.match(graph)) == FuseMaps().apply(FuseMaps().match(graph))


def test_the_survivor_of_the_prototype_is_a_type_error():
    """Rule 4 on the right operand of A A': there it was wrong, with dims that coincide."""
    (mutant,) = (m for m in MUTANTS if m.name == "4 the right operand")
    graph = parse("""graph(X: M,K[M,K], Y: M',K[M',K], c: M'[M']) {
      S = map M' (y in !Y, v in !c) {
        s = map K (b in !y, w = v) { r = row_scale(b, w) yield r }
        yield s
      }
      G = map M' (s_1 in !S, X_1 = !X) {
        g = map M (x in !X_1, s_2 = !s_1) {
          p = map K (a in !x, b_1 in !s_2) { d = dot(a, b_1) yield +d }
          yield p
        }
        yield g
      }
      return G
    }""")
    level = parse("""graph(X: M,K[M,K], y: K[M',K] = port, c: [M']) {
      S = map K (b in !y, w = c) { r = row_scale(b, w) yield r }
      G = map M (x in !X, s = !S) {
        p = map K (a in !x, b_1 in !s) { d = dot(a, b_1) yield +d }
        yield p
      }
      return G
    }""")
    wrong = mutant.build()
    found = [flaw(site) for site in sites(level, [wrong])]

    assert graph.type_of(Value(1)).axes == ("M", "M'")
    assert [f.kind for f in found] == ["apply fails"]
    assert "axes [M'], expected [M]" in found[0].story
