"""A level after every edit: what the canonical form of the same program is from scratch."""

from dataclasses import replace
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.errors import RuleError
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.ir import order as order_module
from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Value
from blockbuster.ir.level import Level
from blockbuster.ir.parse import parse
from blockbuster.ir.uses import LOOK_AHEAD, Uses, results_of
from blockbuster.ir.verify import verify
from blockbuster.rules import PAPER_RULES, PEELING_RULES, RULES
from blockbuster.rules.driver import fuse
from blockbuster.testing.generators import GENERATORS
from blockbuster.testing.matrices import MatrixPrograms
from blockbuster.testing.programs import BlockPrograms
from tests.random_programs.norms import norm_programs
from tests.rules.plain_driver import plain_fuse

RULE_SETS = {"paper": PAPER_RULES, "ours": RULES, "peeling": PEELING_RULES}
WRONGLY_SURE = (308, 344, 463, 566, 1103, 1364, 1635, 1838)
"""Matrix programs in which results changed places because of nodes far from them."""
seeds = st.integers(0, 2**32 - 1)


def elementwise(x):
    for i in range(12):
        x = bb.tanh(x) if i % 2 else x * 1.5
    return x


def matmuls(x, a, b, c):
    return ((x @ a) @ b) @ c


def mixed(x, a, b, c):
    for weight in (a, b, c):
        y = bb.silu(bb.rms_norm(x) @ weight)
        x = y * y
    return x


def decoder(x, q, k, v, o):
    y = bb.rms_norm(x)
    x = x + (bb.softmax(((y @ q) @ (y @ k).T) * 0.1) @ (y @ v)) @ o
    return x * bb.rms_norm(x)


def wide(x):
    total = x
    for i in range(4):
        total = total + bb.exp(bb.tanh(x * float(i + 2)) + 1.0)
    return total


def outputs(x):
    results = []
    for i in range(12):
        x = bb.tanh(x) if i % 2 else x * 1.5
        if i % 3 == 2:
            results.append(x)
    return tuple(results)


CHAIN = {"x": "M A", "a": "A B", "b": "B C", "c": "C D"}
PROJECTIONS = {"q": "A E", "k": "A E", "v": "A L", "o": "L A"}
FAMILIES = {
    "elementwise": partial(trace, elementwise, x="M N"),
    "matmuls": partial(trace, matmuls, **CHAIN),
    "mixed": partial(trace, mixed, **CHAIN),
    "decoder": partial(trace, decoder, x="M A", **PROJECTIONS),
    "wide": partial(trace, wide, x="M N"),
    "outputs": partial(trace, outputs, x="M N"),
}


class Checked(Level):
    """A level that compares itself with the same program from scratch after every edit."""

    def __init__(self, graph):
        super().__init__(graph)
        self.in_order = graph.inputs_by_first_use == (*range(len(graph.inputs)),)
        self.leaving = len(graph.output_values)

    def finish(self, *outputs):
        result = super().finish(*outputs)
        graph = self.graph()

        assert graph == from_scratch(graph)
        assert kept_of(self) == kept_of(Level(graph))
        if self.in_order:  # as those of a body are, until they move and the driver hears of it
            in_order = graph.inputs_by_first_use == (*range(len(graph.inputs)),)
            same = len(graph.output_values) == self.leaving
            assert self.ports_moved() == (not in_order or not same)
            self.in_order = in_order and same
        return result

    def take_bodies(self, graph, positions):
        super().take_bodies(graph, positions)

        assert self._numbered(self.nodes, self.order, self.outputs) == self.graph() == graph
        assert kept_of(self) == kept_of(Level(graph))


def from_scratch(graph):
    """The program with every node looked at, and no order known."""
    builder = Builder(graph)
    builder._changed = {*range(len(graph.nodes))}
    return builder.finish()


def kept_of(level):
    """What a level keeps from edit to edit, by the places of nodes."""
    rank = level.rank | {-1: -1}
    readers = {
        (rank[value.node], value.port): {rank[key] for key in keys}
        for value, keys in level._readers.items()
        if keys
    }
    leaving = {(rank[value.node], value.port): at for value, at in level._leaves_at.items()}
    return [rank[key] for key in level.order], readers, leaving


@pytest.fixture(autouse=True)
def _checked_levels(monkeypatch):
    monkeypatch.setattr("blockbuster.rules.driver.Level", Checked)


def check(graph, rules):
    """Every edit as from scratch; the steps and places of the plain driver; a record that holds."""
    derivation = fuse(graph, rules)

    assert derivation.applications == plain_fuse(graph, rules).applications
    derivation.replay()


each_rule_set = pytest.mark.parametrize("rules", RULE_SETS.values(), ids=RULE_SETS)


@each_rule_set
@pytest.mark.parametrize("kind", GENERATORS)
@settings(max_examples=6)
@given(seed=seeds)
def test_random_programs(kind, seed, rules):
    derivation = fuse(GENERATORS[kind](Random(seed)), rules)
    verify(derivation.replay())


@each_rule_set
@pytest.mark.parametrize("first", range(3))
def test_norm_programs(first, rules):
    for graph in norm_programs(2, first=1000 * first):
        fuse(graph, rules).replay()


@each_rule_set
@pytest.mark.parametrize("name", FAMILIES)
def test_families_of_programs(name, rules):
    check(lower(FAMILIES[name]()), rules)


def test_what_was_read_late_moves_ports_where_it_is_read_sooner():
    """S was read behind c; the loop that takes q in reads it before."""
    check(LATE, PAPER_RULES)


@pytest.mark.parametrize("seed", WRONGLY_SURE)
def test_results_whose_order_rests_on_nodes_far_away(seed):
    check(MatrixPrograms(Random(seed)).graph(), RULES)


def never(*_, **__):
    """What a shortcut says if it forgets to look."""
    return False


def always(*_, **__):
    """What a condition says if it is left out."""
    return True


def looking_once(uses, first, second, ahead=0, *, plain=Uses.surely_before):
    """Sure for good of what a look ahead told."""
    return plain(uses, first, second, LOOK_AHEAD)


PATH = parse("""graph(X: M[M], Z: M[M]) {
  P, Q = map M (x in !X) { p = exp(x)  q = tanh(x)  yield p  yield q }
  B = map M (q in !Q) { b = q + 1  yield b }
  C = map M (b in !B, z in !Z) { c = b * z  yield c }
  A = map M (p in !P, c in !C) { a = p * c  yield a }
  return B, A
}""")
LATE = parse("""graph(Y: N,K[N,K], c: [M], S: K[M,K]) {
  A = map N (y in !Y, c1 = c, s = !S) {
    b = map K (y1 in !y) { b1 = y1 * 2  yield b1 }
    r = map K (b2 in !b) { r1 = row_sum(b2)  yield +r1 }
    o = outer(c1, r)
    q = map K (s1 in !s, b3 in !b) { d = dot(s1, b3)  yield +d }
    a = o + q
    yield a
  }
  return A
}""")
ADDED = parse("""graph(X: M[M], Z: M[M]) {
  A = map M (x in !X) { a = exp(x)  yield a }
  W = map M (z in !Z) { w = exp(z)  yield w }
  P = map M (a in !A, w in !W) { p = a * w  yield p }
  V = map M (z in !Z) { v = tanh(z)  yield v }
  Q = map M (v in !V, w in !W) { q = v * w  yield q }
  return P, Q
}""")
BOTH = parse("""graph(X: M[M]) {
  A, P = map M (x in !X) { a = exp(x)  p = tanh(x)  yield a  yield p }
  return A, P
}""")
SOONER = parse("""graph(X: M[M]) {
  A = map M (x in !X) { a = exp(x)  yield a }
  E = map M (a in !A) { e = a + 1  yield e }
  F = map M (a in !A) { f = tanh(a)  yield f }
  T = map M (a in !A, e in !E, f in !F) { t = a * e + f  yield t }
  return E, T
}""")


def cut_the_path():
    """P is used before Q as long as A, which reads it, depends on B."""
    level = checked(PATH)
    level.finish()
    level.set_operand(2, 0, Value(-1, 0))
    level.finish()


def read_what_was_done_sooner():
    """E is an output of its own: it stays before F, whatever T reads first."""
    level = checked(SOONER)
    a, e, f = level.nodes[3].operands
    level.redirect_all([Value(3)], level.add(level.nodes[3].op, a, f, e))
    level.finish()


def forget_what_was_added_late():
    """P was why W came before V; what stands for P does not read W."""
    level = checked(ADDED)
    both = BOTH.nodes[0]
    first, second = level.add(both.op, Value(-1, 0))
    level.redirect_all([Value(0), Value(2)], [first, second])
    level.finish()


def edit_some_programs():
    for seed in range(40):
        edit_some_program(seed)


SHORTCUTS = {
    "sure for good of what a look ahead told": (Uses, "surely_before", looking_once),
    "never looks again at results": (Level, "_sure_of_results", always),
    "looks at no results near the edit": (Level, "_touched", lambda *_: {}),
    "no path ever goes": (Level, "_cuts", never),
    "no port ever moves": (Level, "ports_moved", never),
    "readers may read elsewhere": (order_module, "_same_places", always),
    "others may add more than themselves": (order_module, "_adds_only_itself", always),
    "nothing was done sooner": (order_module, "_entered_sooner", never),
}
TOLD_BY = {
    "no path ever goes": cut_the_path,
    "nothing was done sooner": read_what_was_done_sooner,
    "others may add more than themselves": forget_what_was_added_late,
}


def checked(graph):
    level = Checked(graph)
    level.in_order = False  # no driver hears that ports moved, and the next edit finds them so
    return level


def edit_at_random(level, random):
    """Let a node read something else, or put a new one that does in its place."""
    for _ in range(random.randint(1, 2)):
        key = random.choice(level.order)
        node = level.nodes[key]
        index = random.randrange(len(node.operands))
        before = level.order[: level.rank[key]]
        found = [Value(-1, port) for port in range(len(level.inputs))]
        found += [value for k in before for value in results_of(level.nodes, k)]
        wanted = level.type_of(node.operands[index])
        value = random.choice([v for v in found if level.type_of(v) == wanted])
        if random.random() < 0.5:
            level.set_operand(key, index, value)
            continue
        operands = [*node.operands]
        operands[index] = random.choice((value, operands[index]))
        level.redirect_all(results_of(level.nodes, key), level.add(node.op, *operands))
    level.finish()


def random_programs(random):
    return GENERATORS[random.choice([*GENERATORS])](random)


def edit_some_program(seed):
    """Eight edits of a level of a random program before and after it is fused."""
    random = Random(seed)
    graph = random.choice((MatrixPrograms, BlockPrograms))(random).graph()
    final = fuse(graph, random.choice((PAPER_RULES, RULES))).final
    levels = [level for program in (graph, final) for _, level in program.walk()]
    level = checked(max(levels, key=lambda inner: len(inner.nodes)))
    for _ in range(8):
        if level.order:
            edit_at_random(level, random)


@settings(max_examples=50)
@given(seed=seeds)
def test_any_edit(seed):
    edit_some_program(seed)


def test_edits_that_reach_far():
    cut_the_path()
    read_what_was_done_sooner()
    forget_what_was_added_late()


@pytest.mark.parametrize("name", SHORTCUTS)
def test_each_shortcut_is_guarded(name, monkeypatch):
    """These tests tell a level that forgets to look."""
    monkeypatch.setattr(*SHORTCUTS[name])

    with pytest.raises((AssertionError, RuleError)):  # where a rule's own edit notices it
        TOLD_BY.get(name, edit_some_programs)()


def found_anew(thing, kept):
    """The same thing, knowing nothing, next to what it was said to know."""
    fresh = replace(thing)
    for name, value in kept.items():
        assert getattr(fresh, name) == value, name


@each_rule_set
@given(seed=seeds)
def test_what_graphs_and_nodes_keep_of_others_is_what_they_would_find(seed, rules):
    derivation = fuse(random_programs(Random(seed)), rules)
    for program in (*derivation.checkpoints.values(), derivation.replay()):
        for _, level in program.walk():
            for thing in (level, *level.nodes):
                found_anew(thing, vars(thing))


@pytest.mark.parametrize("name", ["makers", "reads_inputs_in_order"])
def test_what_is_kept_wrongly_is_told(name):
    kept = {"makers": (7,), "reads_inputs_in_order": False}[name]
    thing = BOTH.nodes[0] if name == "makers" else BOTH

    with pytest.raises(AssertionError, match=name):
        found_anew(thing, vars(thing) | {name: kept})


@given(seed=seeds)
def test_nodes_behind_a_graph(seed):
    """The order that is told where nodes were only added is the one of a full walk."""
    random = Random(seed)
    graph = BlockPrograms(random).graph()
    builder, other = Builder(graph), Builder(graph)
    found = [output.value for output in graph.outputs]
    for _ in range(random.randint(1, 4)):
        node = random.choice(graph.nodes)
        operands = [
            random.choice([w for w in found if builder.type_of(w) == builder.type_of(v)] or [v])
            for v in node.operands
        ]
        made = builder.add(node.op, *operands)
        assert other.add(node.op, *operands) == made
        found += made
    ends = random.sample(found, random.randint(1, len(found)))
    other._changed = {*other._nodes}

    assert builder.finish(*ends) == other.finish(*ends)
