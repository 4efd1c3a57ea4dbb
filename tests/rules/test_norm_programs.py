"""What our own rules gain over the paper's on random norm programs, and on which only they help.

``python bench/norm_programs.py`` prints the figures.
"""

import pytest

import blockbuster as bb
from blockbuster.rules import (
    PAPER_RULES,
    PEELING_RULES,
    RULES,
    ExtendMapOverAncestors,
    FoldColumns,
    LocalLinearity,
    PeelFirstIteration,
    fuse,
)
from blockbuster.rules.repair_by_law import RepairByLaw
from blockbuster.rules.swap_mean_dot import SwapMeanDot
from blockbuster.rules.swap_shift_dot import SwapShiftDot
from tests.random_programs.norms import norm_programs, quality
from tests.random_programs.softmaxes import softmax_programs

PROGRAMS = 150


SAFE_PAPER_RULES = tuple(SwapMeanDot() if r == SwapShiftDot() else r for r in PAPER_RULES)
"""The paper's rules, but for shifts behind products in which digits would cancel."""


@pytest.mark.slow
def test_our_rules_leave_half_the_buffered_edges_and_load_less():
    """In November 2026: 243 -> 123 edges, 52 -> 88 programs fully fused, 26433 -> 26262 loads."""
    graphs = norm_programs(PROGRAMS)
    papers = [quality(graph, SAFE_PAPER_RULES) for graph in graphs]
    ours = [quality(graph, RULES) for graph in graphs]
    worse = [
        own.edges > paper.edges or own.loads > paper.loads
        for paper, own in zip(papers, ours, strict=True)
    ]

    assert sum(q.edges for q in ours) <= 0.52 * sum(q.edges for q in papers)
    assert sum(q.loads for q in ours) < sum(q.loads for q in papers)
    assert not any(worse)


def fused(fn, rules=RULES, **inputs):
    return fuse(bb.lower(bb.trace(fn, **inputs)), rules)


def edges_left(fn, rules, inputs):
    return [len(s.buffered_edges()) for s in fused(fn, rules, **inputs).snapshots]


def four_matmuls(x, a, b, c, d):
    return x @ a @ b @ c @ d


def norm_with_weights(x, u, g, b, w):
    x = x @ u
    shift, root = minus_mean_and_root(x)
    return ((x + shift) * root * g + b) @ w


def minus_mean_and_root(x):
    mean = bb.mean(x, axis=-1, keepdims=True)
    return -mean, bb.rsqrt(bb.mean(bb.square(x), axis=-1, keepdims=True) - bb.square(mean) + 1e-5)


WITH_WEIGHTS = {"x": "M J", "u": "J K", "g": "K", "b": "K", "w": "K N"}
UNLOCKED = [
    (ExtendMapOverAncestors(), four_matmuls,
     {"x": "M A", "a": "A B", "b": "B C", "c": "C D", "d": "D E"}, 0, 1),
    (FoldColumns(), norm_with_weights, WITH_WEIGHTS, 0, 1),
    (LocalLinearity(), norm_with_weights, WITH_WEIGHTS, 0, 1),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "fn", "inputs", "with_it", "without"), UNLOCKED)
def test_a_program_that_only_this_rule_unlocks(rule, fn, inputs, with_it, without):
    others = [r for r in RULES if r != rule]

    assert edges_left(fn, RULES, inputs)[-1] == with_it
    assert edges_left(fn, others, inputs)[-1] == without


def test_a_norm_with_weights_leaves_the_matmul(golden):
    made = fused(
        lambda x, g, b, w: bb.layer_norm(x, g, b) @ w, x="M K", g="K", b="K", w="K N"
    ).final

    assert made.buffered_edges() == ()
    golden("fused/layer_norm_with_weights.bb", made.show())


def test_a_root_mean_square_norm_with_a_weight_leaves_the_matmul(golden):
    made = fused(lambda x, g, w: bb.rms_norm(x, g) @ w, x="M K", g="K", w="K N").final

    assert made.buffered_edges() == ()
    golden("fused/rms_norm_with_weight.bb", made.show())


@pytest.mark.parametrize("rule", [r for r in RULES if r not in (*PAPER_RULES, RepairByLaw())])
def test_the_generator_has_sites_for_each_of_our_rules(rule, derivations):
    """Norms search for no maximum: repair-by-law has programs of its own."""
    assert sum(rule.name in [s.rule for s in d.steps] for d in derivations) >= 5


def test_the_generator_has_sites_for_peeling():
    derivations = [fuse(graph, PEELING_RULES) for graph in norm_programs(20)]

    assert sum(PeelFirstIteration.name in [s.rule for s in d.steps] for d in derivations) >= 5


@pytest.fixture(scope="module")
def derivations():
    graphs = norm_programs(PROGRAMS // 3, first=PROGRAMS) + softmax_programs(PROGRAMS // 10)
    return [fuse(graph) for graph in graphs]
