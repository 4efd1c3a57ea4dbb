"""A rule of a user sees a graph and nothing else, whatever it derives from and wherever it runs."""

from dataclasses import dataclass
from random import Random
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Elementwise, Map
from blockbuster.ir.parse import parse
from blockbuster.rules import PAPER_RULES, RULES, FuseElementwise, FuseMaps, fuse
from blockbuster.rules.base import LocalRule, Match, Rule, UpstreamRule, takes_levels, unheard
from blockbuster.rules.explain import explain_with
from blockbuster.testing.generators import GENERATORS
from tests.parameters import rest_slow
from tests.rules.plain_driver import plain_fuse

NEGATION = Elementwise(call("neg", Arg(0)))


def some_value(graph):
    return graph.outputs[0].value


QUESTIONS = {
    "inputs": lambda g: [given.type for given in g.inputs],
    "nodes": lambda g: [at for at, node in enumerate(g.nodes) if node.op == g.nodes[at].op],
    "outputs": lambda g: [g.type_of(output.value) for output in g.outputs],
    "type_of": lambda g: g.type_of(some_value(g)),
    "types_of": lambda g: g.types_of([output.value for output in g.outputs]),
    "output_names": lambda g: g.output_names,
    "output_axes": lambda g: g.output_axes(0),
    "size_rules": lambda g: g.size_rules,
    "mentions": lambda g: g.mentions.dims,
    "uses": lambda g: g.uses,
    "grown": lambda g: g.grown((), (), g.outputs) == g,
    "with_op": lambda g: g.with_op(0, g.nodes[0].op) == g if g.nodes else g,
    "several_results": lambda g: g.several_results,
    "inputs_by_first_use": lambda g: g.inputs_by_first_use,
    "reads_inputs_in_order": lambda g: g.reads_inputs_in_order,
    "output_values": lambda g: g.output_values,
    "places": lambda g: [*g.places()] == [*range(len(g.nodes))],
    "rank": lambda g: [*g.rank],
    "uses_of": lambda g: g.uses_of(some_value(g)),
    "consumers": lambda g: g.consumers(Value(-1, 0)),
    "readers_before": lambda g: [g.readers_before(at) for at in range(len(g.nodes))],
    "reaches": lambda g: [g.reaches(0, at) for at in range(len(g.nodes))],
    "of_type": lambda g: [(at, op.dim) for at, op in g.of_type(Map)],
    "at": lambda g: g.at(()) is g,
    "along": lambda g: [*g.along(())],
    "walk": lambda g: [path for path, _ in g.walk()],
    "loops": lambda g: g.loops,
    "size": lambda g: g.size,
    "depth": lambda g: g.depth,
    "buffered_edges": lambda g: g.buffered_edges(),
    "show": lambda g: parse(g.show()) == g if g.outputs else g,
    "listing": lambda g: g.listing().count("\n"),
    "meaning": lambda g: g.meaning,
    "to_networkx": lambda g: g.to_networkx().number_of_nodes(),
}
"""All that a graph can be asked."""


def test_no_question_is_left_out():
    assert QUESTIONS.keys() == {name for name in vars(Graph) if not name.startswith("_")} | {
        "inputs",
        "nodes",
        "outputs",
    }


def ask(graph):
    """Ask a graph all that it can be asked; the answers are the finished graph's."""
    assert type(graph) is Graph
    for question in QUESTIONS.values():
        question(graph)
    assert hash(graph) == hash(Graph(graph.inputs, graph.nodes, graph.outputs))


def cancelled(match):
    (x,) = match.node("first").operands
    edit = match.edit()
    edit.redirect(match.value("second"), x)
    return edit.finish()


def negated_twice(graph, position):
    if graph.nodes[position].op != NEGATION:
        return None
    first = graph.nodes[position].operands[0].node
    return first if first >= 0 and graph.nodes[first].op == NEGATION else None


@dataclass(frozen=True)
class Anywhere(Rule):
    """Cancels two negations in a row, and asks all that there is to ask."""

    name: ClassVar[str] = "cancel-negations"
    kind: ClassVar[str] = "companion"

    def matches(self, graph, note=unheard):
        ask(graph)
        for second in range(len(graph.nodes)):
            first = negated_twice(graph, second)
            if first is not None:
                yield Match(self, graph, {"first": first, "second": second})

    def describe(self, match):
        ask(match.graph)
        return f"cancel {match.nodes['first']} and {match.nodes['second']}"

    def apply(self, match):
        ask(match.graph)
        return cancelled(match)


class Near(LocalRule):
    """The same, one node at a time."""

    name: ClassVar[str] = "cancel-negations"
    kind: ClassVar[str] = "companion"
    describe = Anywhere.describe
    apply = Anywhere.apply

    def matches_at(self, graph, position, note=unheard):
        ask(graph)
        first = negated_twice(graph, position)
        if first is not None:
            yield Match(self, graph, {"first": first, "second": position})


class Upstream(Near, UpstreamRule):
    """The same, said to look at all upstream."""


@dataclass(frozen=True)
class AskingFuseMaps(FuseMaps):
    """A rule of ours that a user has made curious."""

    name: ClassVar[str] = "fuse-maps-of-mine"

    def matches_at(self, graph, position, note=unheard):
        ask(graph)
        yield from super().matches_at(graph, position, note)

    def apply(self, match):
        ask(match.graph)
        return super().apply(match)


class AskingFuseElementwise(FuseElementwise):
    """The same for one operator."""

    name: ClassVar[str] = "fuse-elementwise-of-mine"

    def matches_at(self, graph, position, note=unheard):
        ask(graph)
        yield from super().matches_at(graph, position, note)


CURIOUS = (Anywhere(), Near(), Upstream())
EXAMPLE = """graph(X: M[M]) {
  Y, Z = map M (x in !X) { t = -x  y = -t  z = exp(y)  w = exp(t)  yield z  yield w }
  V = map M (y in !Y) { v = tanh(y)  yield v }
  return V, Z
}"""
each = pytest.mark.parametrize("rule", CURIOUS, ids=lambda rule: type(rule).__name__)


@each
def test_a_curious_rule_works_among_ours(rule):
    graph = parse(EXAMPLE)
    derivation = fuse(graph, (*PAPER_RULES[:3], rule, *PAPER_RULES[3:]))

    assert [step.rule for step in derivation.steps].count("cancel-negations") == 1
    assert bb.prove_equal(graph, derivation.final).equal


@each
@settings(max_examples=settings().max_examples // 6)
@given(kind=st.sampled_from([*GENERATORS]), seed=st.integers(0, 2**32 - 1))
def test_it_may_ask_all_on_any_program(rule, kind, seed):
    graph = GENERATORS[kind](Random(seed))
    rules = (*PAPER_RULES[:-1], rule, AskingFuseMaps(), AskingFuseElementwise(), PAPER_RULES[-1])

    assert fuse(graph, rules).applications == plain_fuse(graph, rules).applications


@pytest.mark.parametrize("seed", rest_slow(range(2), [0]))
@pytest.mark.parametrize("kind", GENERATORS)
def test_what_a_rule_of_ours_does_it_does_for_a_user(kind, seed):
    """The curious ones stand for ours, and find the same at the same places."""
    stand_in = {"fuse-maps": AskingFuseMaps(), "fuse-elementwise": AskingFuseElementwise()}
    mine = tuple(stand_in.get(rule.name, rule) for rule in RULES)
    graph = GENERATORS[kind](Random(seed))
    steps = [fuse(graph, rules).steps for rules in (RULES, mine)]
    places = [[(s.path, s.match, s.rule.removesuffix("-of-mine")) for s in ss] for ss in steps]
    assert places[0] == places[1]


@each
def test_it_may_ask_all_when_it_is_checked(rule):
    report = bb.check_rule(rule, programs=12, examples=[EXAMPLE])

    assert report.passed, str(report)
    assert report.fired >= 5


@each
def test_it_may_ask_all_when_it_explains(rule):
    graph = parse(EXAMPLE)

    assert len(explain_with(graph, (*RULES, rule))) == len(graph.buffered_edges()) == 1


def test_a_subclass_of_ours_does_not_work_in_place():
    assert takes_levels(FuseMaps())
    assert not takes_levels(AskingFuseMaps())
    assert not any(map(takes_levels, CURIOUS))


def test_handing_levels_to_users_is_told(monkeypatch):
    """As it was: any local rule got a level."""
    for module in (bb.rules.driver, bb.rules.worklist):
        monkeypatch.setattr(module, "takes_levels", lambda rule: isinstance(rule, LocalRule))

    with pytest.raises(bb.RuleError, match="cancel-negations failed: matches_at raised"):
        fuse(parse(EXAMPLE), (Near(),))
