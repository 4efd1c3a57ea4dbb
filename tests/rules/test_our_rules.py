"""Rule 7, the third witness of rule 6 and our own rules: exact at every site, and they end."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster.emit.tile.listing import listing
from blockbuster.errors import EmitError, VerifyError
from blockbuster.examples import ALL
from blockbuster.frontend import lower
from blockbuster.interp.equal import check_equal_exactly
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.ops import Map
from blockbuster.ir.parse import parse
from blockbuster.ir.verify import verify
from blockbuster.rules import PAPER_RULES, PEELING_RULES, RULES, PeelFirstIteration, fuse
from blockbuster.rules.base import Match
from blockbuster.rules.derivation import splice
from blockbuster.testing.matrices import MatrixPrograms
from blockbuster.testing.programs import BlockPrograms
from tests.interp.counted import graph_traffic
from tests.random_programs.norms import norm_programs
from tests.rules.golden import GOLDEN, read_case
from tests.rules.numbers import assert_same_numbers
from tests.rules.test_every_rule import check_site

RULE_SETS = {"ours": RULES, "peeling": PEELING_RULES}
OURS = tuple(rule for rules in RULE_SETS.values() for rule in rules if rule not in PAPER_RULES)


def sites(graph, rules):
    """Every site of every rule at every level, with its path."""
    return [
        (path, match)
        for path, level in graph.walk()
        for rule in rules
        for match in rule.matches(level)
    ]


@pytest.mark.parametrize("name", RULE_SETS)
@pytest.mark.parametrize("seed", range(12))
def test_our_rules_are_exact_at_every_site(name, seed):
    """Along a derivation: at the steps taken, and at the sites of our rules that were left."""
    (graph,) = norm_programs(1, first=1000 + seed)
    derivation = fuse(graph, RULE_SETS[name])
    ours = [rule for rule in RULE_SETS[name] if rule in OURS]
    names = [rule.name for rule in ours]
    taken = [s for s in derivation.steps if s.rule in names]
    for step in taken[:4]:
        assert check_equal_exactly(step.before, step.after, trials=1, seed=seed) is None
    for snapshot in derivation.snapshots:
        assert check_equal_exactly(graph, snapshot, trials=2, seed=seed) is None
        for path, match in sites(snapshot, ours)[:2]:
            check_site(snapshot, path, match)
            after, _ = splice(snapshot, path, match.rule.apply(match))
            assert check_equal_exactly(snapshot, after, trials=1, seed=seed) is None


@pytest.mark.parametrize("name", RULE_SETS)
@pytest.mark.parametrize("generator", [BlockPrograms, MatrixPrograms])
@settings(max_examples=15)
@given(random=st.randoms(use_true_random=False))
def test_every_rule_set_ends_and_keeps_meaning(name, generator, random):
    graph = generator(random).graph()
    derivation = fuse(graph, RULE_SETS[name])

    for snapshot in derivation.snapshots:  # in floats, repeated products would outgrow 53 bits
        assert check_equal_exactly(graph, snapshot, trials=1) is None
    assert derivation.replay() == derivation.final


@pytest.mark.parametrize("name", RULE_SETS)
@pytest.mark.parametrize("seed", range(4))
def test_every_rule_set_ends_in_any_order(name, seed):
    """The arguments in the rules' docstrings do not rest on the driver's order."""
    random = Random(seed)
    graph = now = MatrixPrograms(random).graph()
    for _ in range(400):
        found = sites(now, RULE_SETS[name])
        if not found:
            break
        path, match = random.choice(found)
        now, _ = splice(now, path, match.rule.apply(match))
    else:
        pytest.fail("400 steps, and rules apply still")
    verify(now)
    assert check_equal_exactly(graph, now, trials=1) is None


@pytest.mark.parametrize("example", ALL, ids=[example.name for example in ALL])
def test_on_the_papers_examples_our_rules_take_the_papers_steps(example):
    graph = lower(example.program())
    ours, papers = fuse(graph, RULES), fuse(graph, PAPER_RULES)

    assert [s.description for s in ours.steps] == [s.description for s in papers.steps]
    assert ours.snapshots == papers.snapshots


def before(name):
    return parse(read_case(GOLDEN / f"{name}.bb").before)


def test_a_program_for_the_third_witness_of_rule_6():
    """Both maps read the list P and its sum r, so rule 1 can fuse neither with the map of P."""
    derivation = fuse(before("extend_map/c_both_read_a_node"), PAPER_RULES)

    assert [s.description for s in derivation.steps] == [
        "extend L for (c) N<row_scale dot> | N<row_scale row_max>",
        "N<row_scale dot> | N<row_scale row_max>",
    ]
    assert_same_numbers(derivation.start, derivation.final)


# rule 7 -----------------------------------------------------------------------------------


PEELED = {  # steps, interior buffered edges of the snapshots: each list read by head counts one
    "attention": (17, [1, 2]),
    "layernorm-matmul": (22, [0, 1]),
    "rmsnorm-swiglu": (24, [1, 3]),
}


@pytest.mark.parametrize("example", ALL, ids=[example.name for example in ALL])
def test_peeling_the_papers_examples(example):
    graph = lower(example.program())
    derivation = fuse(graph, PEELING_RULES)
    steps, edges = PEELED[example.name]

    assert len(derivation.steps) == steps
    assert [len(s.buffered_edges()) for s in derivation.snapshots] == edges
    assert derivation.replay() == derivation.final
    for snapshot in derivation.snapshots:
        assert parse(snapshot.show()) == snapshot
        assert check_equal_exactly(graph, snapshot, trials=4) is None


def test_peeling_saves_a_pass_over_what_the_maps_share():
    graph = before("peel_first_iteration/b_both_read_an_input")
    peeled = PeelFirstIteration().apply(PeelFirstIteration().match(graph))
    (final,) = fuse(peeled, PAPER_RULES).snapshots
    dims = dict.fromkeys("MNL", 3)

    # in blocks: X once for the sum and once per L, VT once; then X one time less
    assert graph_traffic(graph, dims, dims | {"M": 1}).loads == 3 + 3 * 3 + 9
    assert graph_traffic(final, dims, dims | {"M": 1}).loads == 3 * 3 + 9


def test_the_first_block_is_not_the_whole_axis():
    """Peeled all the same, a value is spread over all of L, not over its first block."""
    graph = before("peel_first_iteration/extent_of_the_first_block")
    (position,) = (p for p, op in graph.of_type(Map) if op.dim == "L")
    rule = PeelFirstIteration()
    peeled = rule.apply(Match(rule, graph, {"map": position}))
    arrays = {"X": np.ones((3, 2)), "VT": np.ones((4, 3))}

    with pytest.raises(ValueError, match="broadcast"):
        evaluate(peeled, arrays)


STARTED = """graph(X: K[M,K] = port) {
  x = head K (!X)
  p0 = row_sum(x)
  P, s = map K from 1 (a in !X; p0, p0) {
    p = row_sum(a)
    yield p
    yield +p
  }
  return P, s
}
"""


def test_a_map_from_1_prints_and_parses_back():
    assert parse(STARTED).show() == STARTED


def test_a_map_from_1_of_one_block_is_its_first_values():
    x = np.arange(6.0).reshape(2, 3)
    text = """graph(X: M,K[M,K]) {
      S = map M (r in !X) {
        x = head K (!r)
        p0 = row_sum(x)
        s = map K from 1 (a in !r; p0) { p = row_sum(a) yield +p }
        yield s
      }
      return S
    }"""
    for blocks in (1, 2, 3):
        np.testing.assert_array_equal(
            evaluate(parse(text), {"X": x}, {"K": blocks})["out"], x.sum(1)
        )


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("p0, p0)", "p0)", "map takes 3 operands, got 2"),
        ("p0, p0)", "p0, x)", r"first value of result 1 has type \[M,K\], the others \[M\]"),
        ("from 1", "from 2", "starts at 2: only its first iteration can be peeled off"),
        ("head K", "head M", "operand of head has type K.M,K., expected a list over M"),
    ],
)
def test_a_map_from_1_is_verified(old, new, reason):
    with pytest.raises(VerifyError, match=reason):
        parse(STARTED.replace(old, new))


def test_equal_results_with_other_first_values_are_two():
    graph = parse("""graph(X: K[M,K] = port, c: [M]) {
      P, s = map K from 1 (a in !X; c, c) { p = row_sum(a) yield +p yield +p }
      Q, t = map K from 1 (a in !X; c, s) { p = row_sum(a) yield +p yield +p }
      return P, s, Q, t
    }""")

    assert [len(node.types) for node in graph.nodes] == [1, 2]


def test_peeled_loops_are_not_lowered_to_tiles():
    final = fuse(lower(ALL[0].program()), PEELING_RULES).final

    with pytest.raises(EmitError, match="the first iteration of a loop was peeled off"):
        listing(final)
