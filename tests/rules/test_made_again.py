"""Larger values made again: the derivation, its proofs, and where there is nothing to gain."""

import sys

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.ir.ops import Map
from blockbuster.ir.parse import parse
from blockbuster.rules import (
    REPEATING_RULES,
    RULES,
    CopyProducer,
    ExtendMapOverCopies,
    made_again,
    reasons,
)
from blockbuster.rules.ends import ends_of, first_names, larger, named
from blockbuster.rules.restore import restore
from tests.gradients import ATTENTION, PROGRAMS, traced
from tests.parameters import one_in

RULES_AGAIN = (*RULES, ExtendMapOverCopies())


def again(name, **more):
    return made_again(bb.fuse(bb.lower(traced(name))), RULES_AGAIN, **more)


def stored(graph):
    """The dims of what is stored between maps, at all levels."""
    edges = graph.buffered_edges()
    types = [graph.at(path).type_of(value) for path, value, _ in edges]
    return {frozenset((*type.lists, *type.axes)) for type in types}


@pytest.mark.parametrize("name", one_in(3, ATTENTION))
def test_only_rows_and_inputs_are_stored(name):
    graph = bb.lower(traced(name))
    given = {frozenset((*i.type.lists, *i.type.axes)) for i in graph.inputs}
    before = [dims for dims in stored(bb.fuse(graph).final) if {"M", "N"} <= dims]
    after = stored(again(name).final) - given

    assert before or name == "self"
    assert all(len(dims & {"M", "N", "S", "S'"}) == 1 for dims in after)


@pytest.mark.parametrize("name", one_in(3, PROGRAMS))
def test_the_program_is_the_same(name):
    derivation = again(name)
    proof = bb.prove_equal(derivation.start, derivation.final, trials=2)

    assert proof.equal, proof


def test_each_step_is_proved_and_replayed_from_json():
    derivation = again("statistics")
    back = restore(derivation.to_json(), (*RULES, *REPEATING_RULES))
    report = derivation.prove(trials=2)
    rules = [step.rule for step in derivation.steps]

    assert back == derivation
    assert derivation.replay() == derivation.final
    assert all(entry.proof.equal for entry in report.entries)
    assert rules.count("copy-producer") == 12
    assert rules.index("transpose-producer") > rules.index("copy-producer")
    assert rules.count("extend-map-over-copies") == 1


def test_products_in_columns_are_under_finished_exponents():
    stable = bb.safe(again("one head").final)
    rows, columns = (op for _, op in stable.of_type(Map))

    assert (rows.dim, columns.dim) == ("M", "N")
    assert "yield max" in rows.body.show()  # the running maximum of the statistics
    assert "yield max" not in columns.body.show()
    assert "exp(" in columns.body.show()


def test_with_whole_dims_two_products_share_a_loop():
    final = again("statistics", whole=("D", "D'", "D''", "D'''")).final
    loops = [op for _, level in final.walk() for _, op in level.of_type(Map)]
    summing = [op for op in loops if op.serial]

    assert [op.dim for op in summing] == ["N", "M"]
    assert [len(op.results) for op in summing] == [1, 2]


def test_nothing_is_made_again_where_nothing_is_stored():
    def forward(q, k, v):
        return bb.softmax(q @ k.T, axis=-1) @ v

    program = bb.trace(forward, q="M D", k="N D", v="N L")

    assert made_again(bb.fuse(bb.lower(program)), RULES_AGAIN) is None


def test_values_as_small_as_inputs_stay_stored():
    def norm(x, w, v):
        y = bb.layer_norm(x)
        return y @ w, y.T @ v

    derivation = bb.fuse(bb.lower(bb.trace(norm, x="M K", w="K N", v="M L")))

    assert derivation.final.buffered_edges()
    assert made_again(derivation, RULES_AGAIN) is None


def test_programs_that_need_many_copies_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys.modules[made_again.__module__], "MOST_COPIES", 8)

    assert again("statistics") is None


def test_ends_are_where_larger_values_are_used_up():
    graph = bb.lower(traced("one head"))
    large = larger(graph)
    ends = {end for found in ends_of(graph, large).values() for end in found}
    dims = [{*graph.nodes[end].types[0].lists} for end in sorted(ends)]

    assert all({"M", "N"} <= {*graph.nodes[at].types[0].lists} for at in large)
    assert sum(found == {"M"} for found in dims) == 2  # the sums of a row, of p and of dp * p
    assert sum(len(found) == 2 for found in dims) == 3  # dq, dk, dv


def test_functions_of_whole_arrays_are_not_copied():
    text = """graph(X: M,K[M,K], W: N,K[N,K]) {
      S = misc "f" : M,N[M,N] (!X, !W)
      l = map M (s in !S) {
        t = map N (s_1 in !s) { r = row_sum(s_1) yield +r } yield t
      }
      m = map M (s_2 in !S) {
        u = map N (s_3 in !s_2) { v = row_max(s_3) yield max v } yield u
      }
      return l, m
    }"""
    graph = parse(text, {"f": np.matmul})

    assert reasons(CopyProducer(), graph) == [
        "f is a function of whole arrays, which may not run twice"
    ]


def test_nor_are_maps_that_hold_them():
    text = """graph(X: M[N,M], W: K,M[K,M]) {
      E, F = map M (x in !X) {
        e = misc "f" : [N,M] (x)
        f = abs(x)
        yield e
        yield f
      }
      A = map K (e_1 = !E, w in !W) {
        a = map M (e_2 in !e_1, w_1 in !w) { d = dot(e_2, w_1) yield +d } yield a
      }
      B = map M (g in !F) { b = row_sum(g) yield +b }
      return A, B
    }"""
    graph = parse(text, {"f": np.exp})

    assert reasons(ExtendMapOverCopies(), graph) == [
        "M<misc abs(x)> holds a function of whole arrays"
    ]


def test_dims_of_one_axis_are_told_apart_by_their_number():
    names = {"S'": "S", "S''": "S"}
    one, other = named(("S", "S'", "D"), names), named(("S''", "D", "S"), names)
    assert one == other != named(("S", "D", "D'"), names)


def test_what_is_larger_does_not_depend_on_words():
    """A product of square matrices has two dims, as its operands have: whatever they are called."""

    def program(x, wq, wk):
        q, k = x @ wq, x @ wk
        return bb.softmax(q @ k.T, axis=-1) @ k, q

    found = []
    for words in ({"wq": "D E", "wk": "D E"}, {"wq": "D D", "wk": "D D"}):
        graph = bb.lower(bb.trace(program, x="S D", **words))
        found.append(list(larger(graph)))
        names = first_names(graph)
        assert len({names[dim] for dim in names}) == 3
    assert found[0] == found[1]


def test_a_relabeled_list_is_as_small_as_the_list():
    def program(h, wq, wk, wv):
        x = bb.rms_norm(h)
        return bb.softmax((x @ wq) @ (x @ wk).T, axis=-1) @ (x @ wv)

    graph = bb.lower(bb.trace(program, h="S D", wq="D E", wk="D E", wv="D L"))

    assert made_again(bb.fuse(graph), RULES_AGAIN) is None
