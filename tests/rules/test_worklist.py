"""What the driver remembers from step to step, against looking at everything again."""

from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.ir.graph import Value
from blockbuster.ir.level import Change, Level
from blockbuster.ir.ops import Map
from blockbuster.ir.parse import parse
from blockbuster.rules import PAPER_RULES, PEELING_RULES, RULES, worklist
from blockbuster.rules.driver import fuse
from blockbuster.rules.extend_map import ExtendMap
from blockbuster.rules.extend_map_over_ancestors import ExtendMapOverAncestors
from blockbuster.rules.fuse_siblings import FuseSiblings
from blockbuster.rules.local_linearity import LocalLinearity
from blockbuster.rules.worklist import Worklist
from blockbuster.testing.generators import GENERATORS

RULE_SETS = {"paper": PAPER_RULES, "ours": RULES, "peeling": PEELING_RULES}
each_rule_set = pytest.mark.parametrize("rules", RULE_SETS.values(), ids=RULE_SETS)
seeds = st.integers(0, 2**32 - 1)


class Checked(Worklist):
    """A worklist that asks a new one, of the same level from scratch, for the first site too."""

    def __init__(self, level, rules, extensions):
        super().__init__(level, rules, extensions)
        self.asked = (rules, extensions)

    def first(self):
        found = super().first()
        assert self.placed(found) == self.placed(self.new().first())
        return found

    def first_extension(self):
        found = super().first_extension()
        assert self.placed(found) == self.placed(self.new().first_extension())
        return found

    def new(self):
        return Worklist(Level(self.level.graph()), *self.asked)

    def placed(self, found):
        """The rule and where its nodes are in the graph."""
        if found is None:
            return None
        places = {role: found.graph.rank[key] for role, key in found.nodes.items()}
        return found.rule.name, places, found.detail


@pytest.fixture(autouse=True)
def _checked_worklists(monkeypatch):
    monkeypatch.setattr("blockbuster.rules.driver.Worklist", Checked)


def matmuls(x, a, b, c, d, e):
    return ((((x @ a) @ b) @ c) @ d) @ e


def two_heads(x, q, k, v, o, w):
    y = bb.rms_norm(x)
    x = x + (bb.softmax(((y @ q) @ (y @ k).T) * 0.1) @ (y @ v)) @ o
    return bb.silu(bb.rms_norm(x) @ w), x


WEIGHTS = {"a": "A B", "b": "B C", "c": "C D", "d": "D E", "e": "E F"}
PROJECTIONS = {"q": "A E", "k": "A E", "v": "A L", "o": "L A", "w": "A K"}
PROGRAMS = {
    "matmuls": partial(trace, matmuls, x="M A", **WEIGHTS),
    "attention": partial(trace, two_heads, x="M A", **PROJECTIONS),
}


@each_rule_set
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_are_extended(name, rules):
    derivation = fuse(lower(PROGRAMS[name]()), rules)

    assert derivation.replay() == derivation.final


@each_rule_set
@pytest.mark.parametrize("kind", GENERATORS)
@settings(max_examples=15)
@given(seed=seeds)
def test_random_programs(kind, seed, rules):
    fuse(GENERATORS[kind](Random(seed)), rules)


SUMS = """graph(X: K[M,K], c: [M], Y: K[N,K]) {
  p = map K (x in !X, c1 = c, y in !Y) { s = row_scale(x, c1)  %s  yield +d }
  return p
}"""
TOTAL = """graph(X: N[M], V: L[M,L]) {
  A = map N (x in !X) { a = exp(x)  yield a }
  O = map L (a = !A, v in !V) { r = %s  o = row_scale(v, r)  yield o }
  return O
}"""
PATH = parse("""graph(X: M[M], Z: M[M]) {
  A = map M (x in !X) { a = exp(x)  yield a }
  B = map M (a in !A) { b = tanh(a)  yield b }
  D = map M (b in !B) { d = b + 1  yield d }
  C = map M (x in !X, d in !D) { c = x * d  yield c }
  return A, C
}""")


def hear_of_another_body(before, after, rules, extensions):
    """What stood in the way in a body has gone from there."""
    start, end = parse(before), parse(after)
    position, op = [*end.of_type(Map)][-1]
    todo = Checked(Level(start), rules, extensions)
    assert (todo.first(), todo.first_extension()) == (None, None)

    todo.take_body(start.with_op(position, op), position)
    assert todo.first() or todo.first_extension()


def hear_of_a_row_operator():
    calls = ("u = exp(s)  d = dot(u, y)", "d = dot(s, y)")
    hear_of_another_body(*(SUMS % call for call in calls), (LocalLinearity(),), ())


def hear_of_a_map():
    sums = ("reduce + N (!a)", "map N (x in !a) { y = x * 2  yield +y }")
    hear_of_another_body(*(TOTAL % total for total in sums), (), (ExtendMap(),))


def hear_of_a_path_that_went():
    """A and C read X, but C depended on A, three nodes away from where that ends."""
    todo = Checked(Level(PATH), (FuseSiblings(),), ())
    assert todo.first() is None

    todo.level.set_operand(1, 0, Value(-1, 1))
    todo.level.finish()
    todo.update()
    assert todo.first() is not None


@pytest.mark.parametrize("hear", [hear_of_a_row_operator, hear_of_a_map, hear_of_a_path_that_went])
def test_changes_far_from_a_site(hear):
    hear()


def fuse_some_programs():
    for program in PROGRAMS.values():
        fuse(lower(program()), RULES)
    for kind in GENERATORS:
        for seed in range(25):
            for rules in RULE_SETS.values():
                fuse(GENERATORS[kind](Random(seed)), rules)


def unnoticed(level, graph, positions, *, plain=Level.take_bodies):
    """Other bodies as if nothing could follow from them."""
    plain(level, graph, positions)
    level.change = Change()


def forgetful(*_):
    """What a list says if it does not open anything again."""


def as_if_none_went(places, level, opened, *, plain=worklist._Behind.update):
    """Counts on as many nodes as before although some of them went."""
    level.change = Change(level.change.new, level.change.near)
    plain(places, level, opened)


def without_gaps(places, level, opened, *, plain=worklist._Near.update):
    """Takes a path that went for one that is still there."""
    places._cut_off.clear()
    plain(places, level, opened)


SHORTCUTS = {
    "bodies are not noticed": (Level, "take_bodies", unnoticed),
    "local rules open nothing": (worklist._Near, "update", forgetful),
    "upstream rules open nothing": (worklist._Behind, "update", forgetful),
    "whole levels open nothing": (worklist._Anywhere, "update", forgetful),
    "none went": (worklist._Behind, "update", as_if_none_went),
    "no path went": (worklist._Near, "update", without_gaps),
}

TOLD_BY = {
    "bodies are not noticed": hear_of_a_row_operator,
    "whole levels open nothing": hear_of_a_map,
    "no path went": hear_of_a_path_that_went,
}


@pytest.mark.parametrize("name", SHORTCUTS)
def test_each_shortcut_is_guarded(name, monkeypatch):
    """These tests tell a list that forgets to open something."""
    monkeypatch.setattr(*SHORTCUTS[name])

    with pytest.raises((AssertionError, KeyError)):
        TOLD_BY.get(name, fuse_some_programs)()


@pytest.mark.parametrize("kind", GENERATORS)
@settings(max_examples=15)
@given(seed=seeds)
def test_extensions_find_the_same_with_and_without_reasons(kind, seed):
    """Without anybody to hear refusals they look no further than a site can be."""
    start = GENERATORS[kind](Random(seed))
    for program in (start, *fuse(start, RULES).snapshots):
        for _, level in program.walk():
            rule = ExtendMapOverAncestors()
            assert [*rule.matches(level)] == [*rule.matches(level, [].append)]
            assert ExtendMap().match(level) == next(ExtendMap().matches(level), None)
