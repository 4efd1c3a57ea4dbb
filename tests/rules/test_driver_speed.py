"""The driver works where it changed something; the plain one looks at everything, every time."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster import examples
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Const, call, rewrite
from blockbuster.ir.level import Level
from blockbuster.rules import PAPER_RULES, RULES
from blockbuster.rules.driver import fuse
from blockbuster.testing.arrays import random_array_function
from blockbuster.testing.plain_driver import plain_fuse
from blockbuster.testing.strategies import block_graphs

RULE_SETS = {"paper": PAPER_RULES, "ours": RULES}
each_rule_set = pytest.mark.parametrize("rules", RULE_SETS.values(), ids=RULE_SETS)


def chain(count):
    def program(x):
        for i in range(count):
            x = bb.tanh(x) if i % 2 else x * 1.5
        return x

    return lower(trace(program, x="M N"))


def decoder(count):
    def program(h, wq, wk, wv, wo, w1, w2, w3):
        for _ in range(count):
            x = bb.rms_norm(h)
            q, k, v = x @ wq, x @ wk, x @ wv
            h = h + (bb.softmax((q @ k.T) * 0.1) @ v) @ wo
            x = bb.rms_norm(h)
            h = h + (bb.silu(x @ w1) * (x @ w2)) @ w3
        return h

    inputs = {"wq": "D E", "wk": "D E", "wv": "D L", "wo": "L D", "w1": "D K", "w2": "D K"}
    return lower(trace(program, h="S D", **inputs, w3="K D"))


PROGRAMS = {
    **{example.name: lower(example.program()) for example in examples.ALL},
    "one decoder block": decoder(1),
    "two decoder blocks": decoder(2),
    "elementwise chain": chain(12),
}


def assert_same_derivation(graph, rules):
    """The same steps at the same places, and the same programs wherever both keep one."""
    plain, fast = plain_fuse(graph, rules), fuse(graph, rules)

    assert fast.applications == plain.applications
    assert fast.snapshots_after == plain.snapshots_after
    for count, program in fast.checkpoints.items():
        assert program == plain.checkpoints[count], f"after step {count}"
    assert fast.final == plain.final


@each_rule_set
@pytest.mark.parametrize("graph", PROGRAMS.values(), ids=PROGRAMS)
def test_known_programs_fuse_as_the_plain_driver_fuses_them(graph, rules):
    assert_same_derivation(graph, rules)


@each_rule_set
@given(graph=block_graphs(whole=False))
def test_random_block_programs_fuse_as_the_plain_driver_fuses_them(graph, rules):
    assert_same_derivation(graph, rules)


@each_rule_set
@given(seed=st.integers(0, 2**32 - 1))
def test_random_array_programs_fuse_as_the_plain_driver_fuses_them(seed, rules):
    function = random_array_function(Random(seed))

    assert_same_derivation(lower(trace(function, **function.inputs)), rules)


def test_a_thousand_operators_in_a_row():
    derivation = fuse(chain(1000), PAPER_RULES)

    assert len(derivation.applications) == 3 * 999
    assert derivation.final.buffered_edges() == ()


def test_an_edited_level_is_the_graph_that_a_builder_makes():
    graph = PROGRAMS["elementwise chain"]
    level = Level(graph)
    rule = PAPER_RULES[5]
    for _ in range(3):
        found = rule.match(graph)
        graph = rule.apply(found)
        at = {role: level.order[position] for role, position in found.nodes.items()}
        rule.apply(type(found)(rule, level, at))

        assert level.graph() == graph
        assert [level.rank[key] for key in level.order] == list(range(len(graph.nodes)))


def test_deep_expressions_need_no_recursion():
    def tower(height):
        expr = Arg(0)
        for i in range(height):
            expr = call("add", call("tanh", expr), Const(float(i)))
        return expr

    one, other = tower(5000), tower(5000)

    assert one == other
    assert hash(one) == hash(other)
    assert one != tower(4999)
    assert one.calls == 10_000
    assert rewrite(one, lambda leaf: leaf) is one
    assert rewrite(one, lambda leaf: Arg(1) if leaf == Arg(0) else leaf).arguments == (1,)


def test_inlining_checks_types():
    graph = PROGRAMS["elementwise chain"]
    builder = Builder()

    with pytest.raises(AssertionError):
        builder.inline(graph, [builder.input(graph.inputs[0].type.element())])
