"""What a user's rule does wrong is said with its name, and what it raised is kept."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

import blockbuster as bb
from blockbuster.errors import RuleError, VerifyError
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.graph import Output, Value
from blockbuster.ir.ops import Elementwise, Functional
from blockbuster.ir.parse import parse
from blockbuster.rules import RULES, FuseMaps, fuse
from blockbuster.rules.base import LocalRule, Match, Rule, unheard
from blockbuster.rules.restore import restore

GRAPH = parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x) yield y } return Y }")
EXP = Elementwise(call("exp", Arg(0)))


class Anywhere(Rule):
    """Matches exp; ``do`` is what its ``apply`` does."""

    name: ClassVar[str] = "mine"

    def matches(self, graph, note=unheard):
        for position, node in enumerate(graph.nodes):
            if node.op == EXP:
                yield Match(self, graph, {"node": position})

    def apply(self, match):
        return type(self).do(match)


class Local(LocalRule):
    """The same, where the driver edits a level in place."""

    name: ClassVar[str] = "mine"
    in_place: ClassVar[bool] = True

    def matches_at(self, graph, position, note=unheard):
        if graph.nodes[position].op == EXP:
            yield Match(self, graph, {"node": position})

    def apply(self, match):
        return type(self).do(match)


def look_up(match):
    return {}["nothing"]


def take_a_missing_role(match):
    return match.node("producer")


def assert_it(match):
    raise AssertionError("no such site")


def drop_an_axis(match):
    edit = match.edit()
    edit.replace_op(match.nodes["node"], Functional("row_sum"))
    return edit.finish()


def read_what_does_not_fit(match):
    return match.edit().add(Functional("dot"), match.node("node").operands[0])


def stop_half_way(match):
    edit = match.edit()
    edit.replace_op(match.nodes["node"], Elementwise(call("neg", Arg(0))))
    raise IndexError("stopped")


RAISING = {
    look_up: KeyError,
    take_a_missing_role: KeyError,
    assert_it: AssertionError,
    drop_an_axis: AssertionError,
    read_what_does_not_fit: VerifyError,
    stop_half_way: IndexError,
}


@pytest.mark.parametrize("base", [Anywhere, Local])
@pytest.mark.parametrize("do", RAISING)
def test_a_rule_that_raises_in_apply_is_named(base, do):
    rule = type("Mine", (base,), {"do": do})()

    with pytest.raises(
        RuleError, match=f"mine failed: apply raised {RAISING[do].__name__}"
    ) as info:
        fuse(GRAPH, (*RULES, rule))

    assert isinstance(info.value.__cause__, RAISING[do])
    assert "y = exp(x)" in str(info.value)


def an_output_that_is_not_there(match):
    return replace(match.graph, outputs=(Output(Value(7)),))


WRONG = {
    (lambda match: None): "mine.apply returned None, not the rewritten graph",
    (
        lambda match: match.graph.nodes
    ): "mine.apply returned a (tuple|dict), not the rewritten graph",
}


@pytest.mark.parametrize("base", [Anywhere, Local])
@pytest.mark.parametrize(("do", "text"), WRONG.items(), ids=["nothing", "nodes"])
def test_a_rule_that_returns_no_graph_is_named(base, do, text):
    with pytest.raises(RuleError, match=text) as info:
        fuse(GRAPH, [type("Mine", (base,), {"do": do})()])

    assert "return edit.finish()" in str(info.value)


def test_a_graph_too_broken_to_be_printed_is_the_rules_fault():
    rule = type("Mine", (Anywhere,), {"do": an_output_that_is_not_there})()

    with pytest.raises(RuleError, match="mine made an ill-formed graph: output 0 is") as info:
        fuse(GRAPH, [rule])

    assert "a graph of 1 nodes, too broken to be printed" in str(info.value)


def test_a_node_that_is_none_is_the_rules_fault():
    def do(match):
        return replace(match.graph, nodes=(replace(match.node("node"), op=None),))

    with pytest.raises(RuleError, match="mine made an ill-formed graph") as info:
        fuse(GRAPH, [type("Mine", (Anywhere,), {"do": do})()])

    assert isinstance(info.value.__cause__, AttributeError)


MATRIX = parse("graph(a: [M,K]) { t = exp(a) return t }")


def sum_instead(match):
    edit = match.edit()
    (total,) = edit.add(Functional("row_sum"), match.node("node").operands[0])
    return edit.finish(total)


@pytest.mark.parametrize("base", [Anywhere, Local])
def test_a_rule_that_changes_types_is_named(base):
    with pytest.raises(RuleError, match="mine made an ill-formed graph: the results had types"):
        fuse(MATRIX, [type("Mine", (base,), {"do": sum_instead})()])


def find_by_name(self, graph, *_):
    yield graph.nodes["exp"]


def find_nothing_to_iterate(self, graph, *_):
    return None


def find_a_tuple(self, graph, *_):
    yield (0, "node")


def find_what_is_not_there(self, graph, *_):
    yield Match(self, graph, {"node": 99})


def find_without_roles(self, graph, *_):
    yield Match(self, graph, (0,))


FINDING = {
    find_by_name: r"mine failed: matches(_at)? raised (KeyError|TypeError)",
    find_nothing_to_iterate: r"mine failed: matches(_at)? raised TypeError",
    find_a_tuple: "mine found a tuple instead of a Match",
    find_what_is_not_there: r"mine found nodes that the graph does not have \(node: 99\)",
    find_without_roles: r"mine found nodes without roles \(\(0,\)\)",
}


@pytest.mark.parametrize(("base", "method"), [(Anywhere, "matches"), (Local, "matches_at")])
@pytest.mark.parametrize(
    ("find", "text"), FINDING.items(), ids=lambda x: getattr(x, "__name__", "")
)
def test_a_rule_that_fails_to_match_is_named(base, method, find, text):
    with pytest.raises(RuleError, match=text) as info:
        fuse(GRAPH, [type("Mine", (base,), {method: find})()])

    assert "return Y" in str(info.value)
    assert ("raised" in text) == (info.value.__cause__ is not None)


def test_a_rule_that_cannot_describe_what_it_does_is_named():
    members = {"describe": lambda self, match: match.node("consumer"), "do": drop_an_axis}

    with pytest.raises(RuleError, match="mine failed: describe raised KeyError: 'consumer'"):
        fuse(GRAPH, [type("Mine", (Anywhere,), members)()])


@dataclass(frozen=True)
class Nameless(Rule):
    """Has no name."""


NO_RULES = {
    "one rule": (FuseMaps(), r"rules is one rule, FuseMaps\(\): pass .* rules=\[FuseMaps\(\)\]"),
    "a name": (["a"], r"among the rules is a str\n  value: 'a'\n  hint: a rule is an instance"),
    "a class": ([FuseMaps], r"among the rules is a type[\s\S]*pass an instance, FuseMaps\(\)"),
    "text": ("fuse-maps", "expected a sequence of rules, got a str"),
    "nothing": (None, "expected a sequence of rules, got None"),
    "an iterator": (iter(RULES), "expected a sequence of rules, got a tuple_iterator"),
    "a rule without a name": ([Nameless()], "Nameless has no name: write name: ClassVar"),
}


@pytest.mark.parametrize(("rules", "text"), NO_RULES.values(), ids=NO_RULES)
def test_what_are_no_rules_is_said(rules, text):
    with pytest.raises(TypeError, match=text):
        bb.fuse(GRAPH, rules=rules)
    with pytest.raises(TypeError, match=text):
        restore(bb.fuse(GRAPH).to_json(), rules)
