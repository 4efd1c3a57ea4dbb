"""The driver works where it changed something; the plain one looks at everything, every time."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster import examples
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.ir.builder import Builder, rebuild
from blockbuster.ir.canonical import Canonical
from blockbuster.ir.expr import Arg, Const, call, rewrite
from blockbuster.ir.level import Level
from blockbuster.rules import PAPER_RULES, RULES
from blockbuster.rules.base import LocalRule
from blockbuster.rules.driver import fuse
from blockbuster.rules.fuse_elementwise import MOST
from blockbuster.testing.arrays import random_array_function
from tests.random_programs.strategies import block_graphs
from tests.rules.plain_driver import plain_fuse

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


def wide(count):
    def program(x):
        total = x
        for i in range(count):
            total = total + bb.exp(bb.tanh(x * float(i + 2)) + 1.0)
        return total

    return lower(trace(program, x="M N"))


def many_outputs(count):
    def program(x):
        results = []
        for i in range(count):
            x = bb.tanh(x) if i % 2 else x * 1.5
            if i % 3 == 2:
                results.append(x)
        return tuple(results)

    return lower(trace(program, x="M N"))


def norms(x, w0, w1, w2):
    for weight in (w0, w1, w2):
        y = bb.silu(bb.rms_norm(x) @ weight)
        x = y * y
    return x


PROGRAMS = {
    **{example.name: lower(example.program()) for example in examples.ALL},
    "one decoder block": decoder(1),
    "two decoder blocks": decoder(2),
    "elementwise chain": chain(12),
    "branches": wide(6),
    "a chain with many outputs": many_outputs(12),
    "three norms": lower(trace(norms, x="M A", w0="A B", w1="B C", w2="C D")),
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

    operators = -(-1000 // MOST)  # one for each that applies as many functions as it may
    assert len(derivation.applications) == 2 * 999 + 1000 - operators
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


def assert_kept_in_step(level):
    """What a level keeps from edit to edit is what a new level finds in the same program."""
    graph = level.graph()
    fresh = Level(graph)

    def placed(level):
        rank, readers = level.rank | {-1: -1}, level._readers
        return {
            (rank[value.node], value.port): sorted(rank[key] for key in keys)
            for value, keys in readers.items()
            if keys
        }

    assert graph == Builder(graph).finish()
    assert level.order == sorted(level.nodes, key=level.rank.__getitem__)
    assert placed(level) == placed(fresh)
    assert len(level.output_values) == len(fresh.output_values)
    for key in level.nodes.keys() - level._unsure.keys():
        assert_in_order_of_first_use(level, key)


def assert_in_order_of_first_use(level, key):
    """A node whose results a level is sure of keeps them, whatever order the builder goes by."""
    work = Canonical(dict(level.nodes), list(level.outputs), set(), rebuild, level.order)
    work.sort()
    assert work.nodes[key] == level.nodes[key]


@each_rule_set
@given(graph=block_graphs(whole=False))
def test_a_level_keeps_in_step_with_its_program(graph, rules):
    local = [rule for rule in rules if isinstance(rule, LocalRule)]
    level = Level(graph)
    for _ in range(30):
        assert_kept_in_step(level)
        found = next((m for rule in local if (m := rule.match(level)) is not None), None)
        if found is None:
            break
        found.rule.apply(found)


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
