"""Maps beside the one whose body a rule changed: they may lose results, and their nodes move."""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import pytest

import blockbuster as bb
from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.graph import Output, Value
from blockbuster.ir.ops import Elementwise
from blockbuster.ir.parse import parse
from blockbuster.rules import PAPER_RULES, RULES, driver, fuse
from blockbuster.rules.base import Match, Rule, unheard
from blockbuster.rules.derivation import splice
from tests.rules.plain_driver import plain_fuse

ACTIVATIONS = {"plain": lambda x: x, "exp": bb.exp, "norm": bb.rms_norm}
EXPERTS = [*product(ACTIVATIONS, ("plain", "exp"), (False, True))]


def gate_of_experts(inner, outer, both):
    """Experts of one or two matmuls under a softmax: fusing one loop leaves results unread."""
    inner, outer = ACTIVATIONS[inner], ACTIVATIONS[outer]

    def simple(x, p, y, u):
        return (bb.softmax(p @ x).T[:, :, None] * outer(inner(p @ y) @ u)).sum(0)

    def gated(x, p, y, u, v):
        made = inner(p @ y) * bb.silu(p @ v)
        return (bb.softmax(p @ x).T[:, :, None] * outer(made @ u)).sum(0)

    shapes = dict(x="D N", p="S D", y="N D K", u="N K D")
    traced = bb.trace(gated, **shapes, v="N D K") if both else bb.trace(simple, **shapes)
    return bb.lower(traced)


@pytest.fixture
def moved(monkeypatch):
    """The levels after whose changes nodes of others had moved, as the driver saw them."""
    found, look_again = [], driver._Work._look_again

    def noting(work, but):
        found.append(but)
        look_again(work, but)

    monkeypatch.setattr(driver._Work, "_look_again", noting)
    return found


@pytest.mark.parametrize(("inner", "outer", "both"), EXPERTS)
def test_a_gate_of_experts_fuses_as_the_plain_driver_fuses_it(inner, outer, both, moved):
    graph = gate_of_experts(inner, outer, both)
    derivation = fuse(graph, RULES)

    assert moved
    assert derivation == plain_fuse(graph, RULES)
    assert derivation.replay() == derivation.graph_after(len(derivation.steps))
    assert fuse(derivation.final, RULES).steps == ()
    assert fuse(graph, PAPER_RULES) == plain_fuse(graph, PAPER_RULES)


def test_a_gate_of_experts_computes_the_same():
    graph = gate_of_experts("plain", "plain", both=False)

    assert bb.prove_equal(graph, fuse(graph, RULES).final).equal is True


@dataclass(frozen=True)
class TakeSecond(Rule):
    """Replaces a level of one node and two inputs by its second input."""

    name: ClassVar[str] = "take-second"

    def matches(self, graph, note=unheard):
        if len(graph.nodes) == 1 and len(graph.inputs) == 2:
            yield Match(self, graph, {"node": 0})

    def apply(self, match):
        return Builder(match.graph).finish(Output(Value(-1, 1)))


@dataclass(frozen=True)
class NegateAlone(Rule):
    """Negates instead of exp, where that is all there is."""

    name: ClassVar[str] = "negate-alone"

    def matches(self, graph, note=unheard):
        if [node.op for node in graph.nodes] == [Elementwise(call("exp", Arg(0)))]:
            yield Match(self, graph, {"node": 0})

    def apply(self, match):
        edit = Builder(match.graph)
        edit.replace_op(0, Elementwise(call("neg", Arg(0))))
        return edit.finish()


FLAT = parse("""graph(X: M[M], Z: M[M]) {
  P, Q = map M (x in !X, z in !Z) {
    p = exp(x)
    q = exp(z)
    yield p
    yield q
  }
  Y = map M (p in !P, q in !Q) { y = p + q  yield y }
  return Y
}""")

NESTED = parse("""graph(X: M,N[M,N], Z: M,N[M,N]) {
  P, Q = map M (x in !X, z in !Z) {
    p = map N (a in !x) { b = exp(a)  yield b }
    q = map N (c in !z) { d = exp(c)  yield d }
    yield p
    yield q
  }
  Y = map M (p in !P, q in !Q) {
    y = map N (e in !p, f in !q) { g = e + f  yield g }
    yield y
  }
  return Y
}""")


@pytest.mark.parametrize("drive", [fuse, plain_fuse])
@pytest.mark.parametrize(("graph", "level"), [(FLAT, (0,)), (NESTED, (0, 0))])
def test_a_level_that_lost_a_result_is_visited_with_all_inside_it(drive, graph, level):
    derivation = drive(graph, (TakeSecond(), NegateAlone()))

    steps = [(step.rule, step.path) for step in derivation.steps]
    assert steps == [("take-second", (1,)), ("negate-alone", level)]


@pytest.mark.parametrize("graph", [FLAT, NESTED])
def test_visiting_maps_beside_is_guarded(graph, monkeypatch):
    """As if nothing beside a map ever changed."""
    monkeypatch.setattr(driver._Work, "_look_again", lambda work, but: None)

    with pytest.raises((AssertionError, IndexError)):
        test_a_level_that_lost_a_result_is_visited_with_all_inside_it(
            fuse, graph, (0,) if graph is FLAT else (0, 0)
        )


APART = parse("""graph(X: M,N[M,N], Z: M,N[M,N]) {
  P = map M (x in !X) { p = map N (a in !x) { b = exp(a)  yield b }  yield p }
  Q = map M (z in !Z) { q = map N (c in !z) { d = exp(c)  yield d }  yield q }
  Y = map M (p in !P, q in !Q) {
    y = map N (e in !p, f in !q) { g = e + f  yield g }
    yield y
  }
  return Y
}""")


@pytest.mark.parametrize("drive", [fuse, plain_fuse])
def test_a_level_that_nobody_needs_any_more_is_not_visited(drive):
    derivation = drive(APART, (TakeSecond(), NegateAlone()))

    steps = [(step.rule, step.path) for step in derivation.steps]
    assert steps == [("take-second", (2,)), ("negate-alone", (0, 0))]


def test_a_level_has_another_place_once_nodes_are_gone():
    inner = Builder(APART.at((2,))).finish(Output(Value(-1, 1)))
    made, path = splice(APART, (2,), inner)

    assert path == (1,)
    assert len(made.nodes) == 2


def test_without_other_ports_all_stays_in_its_place():
    assert splice(NESTED, (1,), NESTED.at((1,))) == (NESTED, (1,))
