"""What the driver does with rules that go wrong: it says so, with the steps or both listings."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from blockbuster.errors import RuleError, VerifyError
from blockbuster.interp.equal import prove_equal
from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.graph import Graph, Node, Output, Value
from blockbuster.ir.ops import Elementwise, Functional, Map
from blockbuster.ir.parse import parse
from blockbuster.rules import PAPER_RULES, fuse
from blockbuster.rules.base import LocalRule, Match, Rule, unheard
from tests.interp import examples
from tests.rules.plain_driver import plain_fuse

GRAPH = parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x) yield y } return Y }")
NEGATED = Elementwise(call("neg", Arg(0)))


class OnExp(Rule):
    """Rules that replace one elementwise operator by another."""

    name: ClassVar[str]
    old: ClassVar[Elementwise]
    new: ClassVar[Elementwise]

    def matches(self, graph, note=lambda _: None):
        for position, node in enumerate(graph.nodes):
            if node.op == self.old:
                yield Match(self, graph, {"node": position})

    def apply(self, match):
        edit = Builder(match.graph)
        edit.replace_op(match.nodes["node"], self.new)
        return edit.finish()


@dataclass(frozen=True)
class Negate(OnExp):
    name: ClassVar[str] = "negate"
    old: ClassVar[Elementwise] = Elementwise(call("exp", Arg(0)))
    new: ClassVar[Elementwise] = NEGATED


@dataclass(frozen=True)
class Restore(OnExp):
    name: ClassVar[str] = "restore"
    old: ClassVar[Elementwise] = NEGATED
    new: ClassVar[Elementwise] = Elementwise(call("exp", Arg(0)))


@dataclass(frozen=True)
class Misstate(Negate):
    """Leaves the old result types beside a new operator that gives others."""

    name: ClassVar[str] = "misstate"

    def apply(self, match):
        node = match.node("node")
        wrong = replace(node, types=(node.types[0]._replace(axes=("N",)),))
        return replace(match.graph, nodes=(wrong,))


@dataclass(frozen=True)
class DropResult(Negate):
    """Returns another value than the program did."""

    name: ClassVar[str] = "drop-result"

    def matches(self, graph, note=lambda _: None):
        if len(graph.nodes) == 2:
            yield Match(self, graph, {"node": 0})

    def apply(self, match):
        return replace(match.graph, nodes=(), outputs=(Output(Value(-1)),))


def test_rules_that_undo_each_other_are_stopped():
    with pytest.raises(
        RuleError, match="the rules loop: step 2 gives the program of step 0"
    ) as error:
        fuse(GRAPH, (Negate(), Restore()))

    text = str(error.value)
    assert "exp(x)" in text
    assert "-x" in text
    assert "a rule among negate, restore undoes another: leave one out" in text


def test_the_loop_shows_only_its_own_steps():
    graph = parse("""graph(X: M[M]) {
      T = map M (x in !X) { t = exp(x) yield t }
      Y = map M (t in !T) { y = t + 1 yield y }
      return Y
    }""")
    with pytest.raises(RuleError, match="step 3 gives the program of step 1") as error:
        fuse(graph, (*PAPER_RULES[5:6], Negate(), Restore()))

    assert "M<" not in str(error.value)


@dataclass(frozen=True)
class FromOutside(Rule):
    """Looks into the bodies of maps: it may apply where only a body has changed."""

    name: ClassVar[str] = "from-outside"

    def matches(self, graph, note=unheard):
        for position, op in graph.of_type(Map):
            if op.body.nodes[0].op == NEGATED:
                yield Match(self, graph, {"node": position})

    def apply(self, match):
        body = match.map("node").body
        node = replace(body.nodes[0], op=Elementwise(call("tanh", Arg(0))))
        op = match.map("node").around(replace(body, nodes=(node,)))
        return match.graph.with_op(match.nodes["node"], op)


@dataclass(frozen=True)
class ExtendElsewhere(OnExp):
    """An extension that brings the driver back to every level."""

    name: ClassVar[str] = "extend-elsewhere"
    kind: ClassVar[str] = "extension"
    old: ClassVar[Elementwise] = Elementwise(call("sqrt", Arg(0)))
    new: ClassVar[Elementwise] = Elementwise(call("tanh", Arg(0)))


NESTED = parse("""graph(X: M,N[M,N], Z: L[L]) {
  Y = map M (x in !X) {
    y = map N (a in !x) { b = exp(a)  yield b }
    yield y
  }
  W = map L (z in !Z) { w = sqrt(z)  yield w }
  return Y, W
}""")
LOOKING_IN = (FromOutside(), Negate(), ExtendElsewhere())


def test_levels_are_visited_again_when_bodies_changed():
    found = fuse(NESTED, LOOKING_IN).applications

    assert [(a.rule.name, a.path) for a in found] == [
        ("negate", (0, 0)),
        ("extend-elsewhere", (1,)),
        ("from-outside", (0,)),
    ]
    assert found == plain_fuse(NESTED, LOOKING_IN).applications


def test_visiting_again_is_guarded(monkeypatch):
    monkeypatch.setattr("blockbuster.rules.driver._Work._is_settled", lambda *_: True)

    with pytest.raises(AssertionError):
        test_levels_are_visited_again_when_bodies_changed()


def test_an_ill_formed_graph_is_the_rules_fault():
    with pytest.raises(RuleError, match="misstate made an ill-formed graph") as error:
        fuse(GRAPH, (Misstate(),))

    text = str(error.value)
    assert "results are stated as [N], the operator gives [M]" in text
    assert text.count("graph(") >= 2
    assert "---" in text


@dataclass(frozen=True)
class MisstateInside(LocalRule):
    """The same one level further in, by an edit of the level around it."""

    name: ClassVar[str] = "misstate-inside"
    in_place: ClassVar[bool] = True

    def matches_at(self, graph, position, note=unheard):
        op = graph.nodes[position].op
        if isinstance(op, Map) and Misstate().match(op.body):
            yield Match(self, graph, {"node": position})

    def apply(self, match):
        op, edit = match.map("node"), match.edit()
        body = Misstate().apply(Misstate().match(op.body))
        wrong = replace(body.nodes[0], op=Functional("row_sum"), types=body.nodes[0].types)
        new = Map(op.dim, replace(body, nodes=(wrong,)), op.iterated, op.results)
        made = edit._append(Node(new, match.node("node").operands, match.node("node").types))
        edit.redirect_all(match.values("node"), made)
        return edit.finish()


def test_an_ill_formed_body_is_the_rules_fault():
    with pytest.raises(RuleError, match="misstate-inside made an ill-formed graph"):
        fuse(GRAPH, (MisstateInside(),))


@dataclass(frozen=True)
class LeaveAndReturn(OnExp):
    """An extension that undoes what a rule does."""

    name: ClassVar[str] = "leave-and-return"
    kind: ClassVar[str] = "extension"
    old: ClassVar[Elementwise] = NEGATED
    new: ClassVar[Elementwise] = Elementwise(call("exp", Arg(0)))


def test_extensions_that_undo_rules_are_stopped():
    with pytest.raises(RuleError, match="leave-and-return"):
        fuse(GRAPH, (Negate(), LeaveAndReturn()))


def test_results_of_other_types_are_the_rules_fault():
    graph = parse("graph(a: [M,K], b: [M]) { s = row_sum(a) t = exp(s) return t }")

    with pytest.raises(RuleError, match="the results had types"):
        fuse(graph, (DropResult(),))


TWICE_THE_SAME = """graph(V: N[N], X: B,M,K[M,K]) {
  t1 = map B (v = !V) {
    t2 = map M (v_1 = !v) {
      t3 = map N (v_2 in !v_1) { t4 = row_sum(v_2) yield t4 }
      yield t3
    }
    yield t2
  }
  t5 = map B (a in !t1) {
    t6 = map M (b in !a) {
      t7 = reduce + N (!b)
      t8 = map K (c = t7) { t9 = sigmoid(c) yield max t9 }
      yield t8
    }
    yield t6
  }
  t10 = map B (d in !t5) { t11 = reduce min M (!d) yield +t11 }
  t12 = map B (e in !t5) { t13 = reduce min M (!e) yield +t13 }
  t14 = t12 + 1
  return t10, t14
}
"""


def test_a_level_may_lose_a_result_that_is_another():
    """Two results become one value, so the map drops one, and the level has one type fewer."""
    graph = parse(TWICE_THE_SAME)
    fused = fuse(graph).final

    assert len(fused.nodes[0].types) == 1
    assert prove_equal(graph, fused).equal


def test_the_program_is_verified_first():
    broken = replace(GRAPH, nodes=GRAPH.nodes * 2)

    with pytest.raises(VerifyError):
        fuse(broken, PAPER_RULES)


def test_rules_are_tried_in_order_of_priority():
    graph = parse(examples.SWIGLU_START)

    first = fuse(graph, PAPER_RULES).steps
    backwards = fuse(graph, PAPER_RULES[::-1]).steps

    assert first[0].rule == "fuse-maps"
    assert backwards[0].rule == "fuse-siblings"
    assert fuse(graph, PAPER_RULES[::-1]).final.buffered_edges() == ()


def test_no_rules_no_steps():
    derivation = fuse(GRAPH, ())

    assert isinstance(derivation.final, Graph)
    assert derivation.final == GRAPH
    assert derivation.snapshots == (GRAPH,)
