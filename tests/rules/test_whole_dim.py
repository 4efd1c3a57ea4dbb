"""A dim in one block: what the rule owes, when it refuses, and that only one block fits it."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.errors import EmitError, RuleError
from blockbuster.interp.binding import source_names, sources
from blockbuster.ir.graph import Read
from blockbuster.ir.ops import Map, Misc
from blockbuster.ir.parse import parse
from blockbuster.ir.types import Type, size_class, whole
from blockbuster.ir.verify import verify
from blockbuster.ir.whole_dims import whole_dims
from blockbuster.rules import RULES, WHOLE_RULES, WholeDim, fuse, reasons
from blockbuster.rules.one_block import tied
from blockbuster.rules.restore import restore
from blockbuster.rules.whole_dim import fuse_with_dims, site_of
from blockbuster.selection.candidates.whole import measure
from blockbuster.testing.generators import GENERATORS
from blockbuster.testing.sites import DEBTS, Site, difference, does_not_fit, sites
from tests.frontend.programs import PROGRAMS
from tests.mutants.mutate import Mutant
from tests.parameters import one_in
from tests.random_programs.strategies import programs

RULE = WholeDim()
OWED = tuple(debt for debt in DEBTS if debt is not does_not_fit)
"""All but the types of the interface: the arrays stay, which proofs look at."""


def residual(x, r, w):
    y = x + r
    return bb.rms_norm(y, w), y


def layer_norm_backward(x, g, dy):
    mean = x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    normal, d = (x - mean) * scale, dy * g
    dx = (d - d.mean(-1, keepdims=True) - normal * (d * normal).mean(-1, keepdims=True)) * scale
    return dx, (dy * normal).sum(0), dy.sum(0)


def softmax_and_log(x):
    m = x.max(-1, keepdims=True)
    e = np.exp(x - m)
    total = e.sum(-1, keepdims=True)
    return e / total, x - m - np.log(total)


def chain(x, w):
    y = x + np.tanh(bb.rms_norm(x, w))
    return y + np.tanh(bb.rms_norm(y, w)), y


def attention(q, k, v):
    return bb.softmax(bb.rms_norm(q) @ bb.rms_norm(k).T, axis=-1) @ v


UNLOCKED = {
    "residual": (residual, {"x": "M D", "r": "M D", "w": "D"}),
    "softmax and log": (softmax_and_log, {"x": "M D"}),
    "chain": (chain, {"x": "M D", "w": "D"}),
    "layer norm twice": (lambda x: bb.layer_norm(bb.layer_norm(x) * x), {"x": "M D"}),
    "norm and product": (
        lambda x, r, w: (bb.rms_norm(x + r) @ w, x + r),
        {"x": "M D", "r": "M D", "w": "D N"},
    ),
}


def lowered(name):
    function, dims = UNLOCKED[name]
    return bb.lower(bb.trace(function, **dims))


def arrays_named(graph):
    """The same program, every list that enters it an array, no two of one name."""
    names = source_names(graph)
    inputs = tuple(
        replace(given, view=Read(f"a{at}", whole(given.type)))
        if given.type.buffered and (given.view is None or names.count(names[at]) > 1)
        else given
        for at, given in enumerate(graph.inputs)
    )
    return replace(graph, inputs=inputs)


@pytest.mark.parametrize("name", UNLOCKED)
def test_what_it_unlocks(name):
    graph = lowered(name)

    made = fuse(graph, whole=("D",))

    assert measure(made.final) == (0, 0) < measure(fuse(graph).final)
    assert made.final.buffered_edges() == ()
    assert len(made.final.nodes) == 1
    assert made.steps[0].rule == "whole-dim"
    assert made.steps[0].description == "D is one block"
    assert whole_dims(made.final)[0] == "D"
    assert "D" not in {size_class(dim) for dim in made.final.loops}


@pytest.mark.parametrize("name", UNLOCKED)
def test_each_step_is_proved_and_says_where_it_holds(name):
    made = fuse(lowered(name), whole=("D",))

    report = made.prove(trials=4)

    assert [entry.proof.equal for entry in report.entries] == [True] * (len(made.steps) + 1)
    said = "D in one block: other numbers of blocks are not shown"
    assert said in report.entries[0].proof.assumptions
    assert said in report.entries[-1].proof.assumptions


def test_other_proofs_assume_no_blocks():
    proof = bb.prove_equal(lowered("residual"), fuse(lowered("residual")).final)

    assert not [said for said in proof.assumptions if "block" in said]


def test_derivations_are_replayed_and_read_back():
    made = fuse(lowered("residual"), whole=("D",))

    back = restore(made.to_json(), (*RULES, *WHOLE_RULES))

    assert back == made
    assert back.final == made.final == made.replay()
    assert parse(made.final.show()) == made.final


def test_the_arrays_stay():
    graph = bb.lower(bb.trace(lambda x, w: bb.rms_norm(x.T, w), x="D M", w="D"))

    after = fuse(graph, whole=("D",)).final

    assert sources(after) == sources(graph) == {"x": ("D", "M"), "w": ("D",)}
    assert after.inputs[0].type == Type(("M",), ("M", "D"))
    x, w = np.arange(6.0).reshape(3, 2), np.ones(3)
    np.testing.assert_allclose(
        bb.evaluate(after, {"x": x, "w": w})["out"], bb.evaluate(graph, {"x": x, "w": w})["out"]
    )


def test_a_normalized_row_keeps_what_it_reads_in_one_iteration():
    final = fuse(lowered("residual"), whole=("D",)).final

    (node,) = final.nodes
    assert isinstance(node.op, Map)
    assert [type(inner.op).__name__ for inner in node.op.body.nodes].count("Map") == 0
    assert final.show().count("_1 in !x") == 1


# what every rule owes ------------------------------------------------------------------


@pytest.mark.parametrize("kind", GENERATORS)
@settings(max_examples=25)
@given(data=st.data())
def test_keeps_what_rules_owe(kind, data):
    graph = arrays_named(data.draw(programs(kind), label="program"))
    for match in RULE.matches(graph):
        site = Site(graph, (), match)
        for debt in OWED:
            assert debt(site) == ""
        assert sources(site.after) == sources(graph)
        wrong = difference(graph, site.after)
        assert wrong is None or wrong.kind == "unsettled", wrong.story


@settings(max_examples=25)
@given(data=st.data())
def test_fused_with_random_whole_dims(data):
    kind = data.draw(st.sampled_from(("arrays", "norms", "matrices")), label="kind")
    graph = arrays_named(data.draw(programs(kind), label="program"))
    dims = [dim for match in RULE.matches(graph) for dim in match.nodes]
    if not dims:
        return
    chosen = data.draw(st.lists(st.sampled_from(dims), min_size=1, max_size=2, unique=True))

    made = fuse(graph, whole=chosen)

    assert made.replay() == made.final
    for snapshot in made.snapshots:
        verify(snapshot)
        wrong = difference(graph, snapshot)
        assert wrong is None or wrong.kind == "unsettled", wrong.story


def test_it_fires_on_random_programs():
    graphs = [arrays_named(make(Random(seed))) for make in GENERATORS.values() for seed in range(9)]

    assert sum(RULE.match(graph) is not None for graph in graphs) >= len(graphs) // 3


@pytest.mark.parametrize("name", one_in(4, PROGRAMS, first=2))
def test_every_program_with_a_dim_whole(name):
    function, dims = PROGRAMS[name]
    graph = bb.lower(bb.trace(function, **dims))
    for match in RULE.matches(graph):
        after = RULE.apply(match)
        verify(after)
        assert sources(after) == sources(graph)
        wrong = difference(graph, after)
        assert wrong is None or wrong.kind == "unsettled", wrong.story


# where it refuses ----------------------------------------------------------------------

COUNTED = """graph(s: [], X: M,D[M,D]) {
  y = map D (a = s) { yield +a }
  Y = map M (x in !X) { yield x }
  return y, Y
}"""
"""The number of blocks of D, times s: with one block s itself; D is an axis of what is read."""

UNSEEN = """graph(s: []) { y = map D (a = s) { b = exp(a) yield +b } return y }"""
UNREAD = """graph(s: [], X: M,D[M,D]) { y = map D (a = s) { b = exp(a) yield +b } return y }"""
PORTS = """graph(X: D[M,D] = port) { Y = map D (x in !X) { y = exp(x) yield y } return Y }"""
HEADS = """graph(X: D,M[M]) { Y = map D (x in !X) {
  y = map M (a in !x) { b = exp(a) yield b } yield y } return Y }"""
HEADS_AND_AXES = """graph(X: D,M[M], W: D[D]) {
  Y = map D (x in !X) { y = map M (a in !x) { b = exp(a) yield b } yield y }
  V = map D (w in !W) { v = exp(w) yield v }
  return Y, V
}"""


def with_function():
    kinds = (Type(("D", "M"), ("M", "D")),)
    graph = parse(
        """graph(X: D,M[M,D]) {
          Y = map D (x in !X) { y = map M (a in !x) { b = exp(a) yield b } yield y }
          Z = misc "sort" : D,M[M,D] (!Y)
          return Z
        }""",
        {"sort": np.sort},
    )
    assert [op.results for _, op in graph.of_type(Misc)] == [kinds]
    return graph


REFUSED = {
    "a list-only dim": (parse(HEADS), r"D is a list-only dim \(batch, heads\)"),
    "no array": (parse(PORTS), "X is a list over D and no array: only whole programs"),
    "seen by nothing": (parse(UNSEEN), "no input or output has items along D"),
    "read by nothing": (parse(UNREAD), "no input or output has items along D"),
    "a function of lists": (with_function(), "sort is a function of whole arrays"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    graph, reason = REFUSED[name]

    assert "D" not in [dim for match in RULE.matches(graph) for dim in match.nodes]
    with pytest.raises(RuleError, match=f"D cannot be whole: {reason}"):
        fuse(graph, whole=("D",))
    assert reasons(RULE, graph)


def test_refuses_what_no_loop_runs_over():
    graph = lowered("residual")

    with pytest.raises(RuleError, match=r"E cannot be whole: no loop runs over it\n.*: D, M"):
        site_of(graph, "E")
    with pytest.raises(TypeError, match="whole is a sequence of dims"):
        fuse(graph, whole="D")


SQUARE = bb.lower(bb.trace(lambda x, a, b: (x @ a) @ b, x="M D", a="D D", b="D D"))


def test_a_word_means_all_dims_of_its_size_and_one_with_primes_itself():
    loops = {dim for dim in SQUARE.loops if size_class(dim) == "D"}
    assert len(loops) > 1

    assert {d for d in fuse(SQUARE, whole=("D",)).final.loops if size_class(d) == "D"} == set()
    left = {d for d in fuse(SQUARE, whole=("D'",)).final.loops if size_class(d) == "D"}
    assert left == loops - {"D'"}


def test_one_of_several_dims_of_a_size_is_whole_and_proved():
    made = fuse_with_dims(SQUARE, RULES, ("D",))

    assert "D" not in made.final.loops
    assert "D'" in made.final.loops
    assert all(entry.proof.equal for entry in made.prove(trials=4).entries)


def test_what_relabels_make_of_a_dim_goes_with_it():
    def program(x, r):
        h = x + r
        return bb.softmax(h @ h.T) @ h

    graph = bb.lower(bb.trace(program, x="M D", r="M D"))
    together = [tied(graph, (dim,)) for match in RULE.matches(graph) for dim in match.nodes]

    assert any(len(dims) > 1 for dims in together)
    for match in RULE.matches(graph):
        (dim,) = match.nodes
        assert not tied(graph, (dim,)) & RULE.apply(match).loops


def test_what_counts_blocks_holds_for_one_block():
    graph = parse(COUNTED)
    after = RULE.apply(site_of(graph, "D"))

    assert bb.prove_equal(graph, after).equal
    with pytest.raises(EmitError, match="D has size 100 and no loop runs over it"):
        bb.emit(after, {"M": 4, "D": 100}, tiles={"D": 32})


MUTANTS = (
    (Mutant("a list-only dim", "WholeDim", "whole_dim", "not_in_blocks(graph, dim)\n", '""\n'),
     parse(HEADS_AND_AXES)),
    (Mutant("ports", "WholeDim", "whole_dim", "or not_an_array(graph, dim, dims)\n", "\n"),
     parse(HEADS)),
    (Mutant("seen by nothing", "WholeDim", "whole_dim",
            "or seen_by_nothing(graph, dim, dims)\n", "\n"),
     parse(UNSEEN)),
    (Mutant("read by nothing", "WholeDim", "whole_dim",
            "for port in graph.inputs_by_first_use", "for port in range(len(graph.inputs))"),
     parse(UNREAD)),
    (Mutant("a function", "WholeDim", "whole_dim", "or opaque(graph, dim, dims)\n", "\n"),
     with_function()),
    (Mutant("axes in the order of lists", "WholeDim", "one_block",
            "axes=graph.output_axes(at)", "axes=None"),
     parse("""graph(X: D,M[M,D]) { Y = map D (x in !X) {
       y = map M (a in !x) { b = exp(a) yield b } yield y } return Y }""")),
    (Mutant("the first of several results", "WholeDim", "one_block",
            "return self.level(op.body, operands, builder, moved=True)",
            "return self.level(op.body, operands, builder, moved=True)[:1] * len(op.results)"),
     fuse(lowered("residual")).final),
)  # fmt: skip


@pytest.mark.parametrize(("mutant", "graph"), MUTANTS, ids=lambda m: getattr(m, "name", ""))
def test_a_broken_precondition_is_caught(mutant, graph):
    assert flawed(RULE, graph) == ""
    assert flawed(mutant.build(), graph) != ""


def flawed(rule, graph):
    """What is wrong with what a rule makes of a program, at any level; "" for nothing."""
    for site in sites(graph, [rule]):
        for debt in OWED:
            if found := debt(site):
                return found
        wrong = difference(graph, site.after)
        if wrong is not None:
            return wrong.story
    return ""


def test_a_schedule_with_several_blocks_is_refused():
    made = fuse(lowered("residual"), whole=("D",))
    sizes = {"M": 64, "D": 100}

    kernel = bb.emit(made, sizes)

    assert "D 128 whole" in kernel.schedule
    with pytest.raises(EmitError, match="no loop runs over D: it is one block, D LANES whole"):
        bb.emit(made, sizes, schedule="block M 16, D 32\nwarps 4")
    with pytest.raises(EmitError, match="D has 100 elements, more than one block of 64"):
        bb.emit(made, sizes, schedule="block M 16, D 64 whole\nwarps 4")


@pytest.mark.parametrize("name", UNLOCKED)
def test_kernels_are_proved(name):
    sizes = {"M": 64, "D": 100} | ({"N": 70} if name == "norm and product" else {})
    derivation = bb.emit(fuse(lowered(name), whole=("D",)), sizes).derivation

    assert derivation is not None
    report = derivation.prove(trials=4)
    assert all(entry.proof.equal for entry in report.entries), str(report)
