"""Programs of many nested maps: what is shown, compared, fused and refused, and how deep."""

from functools import reduce
from inspect import Parameter, Signature
from operator import matmul
from string import ascii_letters

import pytest

import blockbuster as bb
from blockbuster import examples
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.interp.equal import check_equal_exactly
from blockbuster.ir.builder import Builder
from blockbuster.ir.ops import Collect, Functional, Map
from blockbuster.ir.parse import parse
from blockbuster.ir.types import Type
from blockbuster.ir.verify import verify
from blockbuster.rules import PAPER_RULES, RULES, legality
from blockbuster.rules.base import LABEL_WIDTH, label, reasons
from blockbuster.rules.driver import DEEPEST
from blockbuster.rules.extend_map_over_ancestors import ExtendMapOverAncestors


def nest(depth, names=tuple(f"D{i}" for i in range(1000))):
    """``depth`` maps inside each other, and a row sum in the innermost."""
    builder = Builder()
    block = builder.input(Type((), ("R", "C")))
    graph = builder.finish(*builder.add(Functional("row_sum"), block))
    for level in range(depth):
        builder = Builder()
        lists = tuple(reversed(names[: level + 1]))
        operand = builder.input(Type(lists, ("R", "C")))
        loop = Map(names[level], graph, (True,), (Collect(),))
        graph = builder.finish(*builder.add(loop, operand))
    return graph


def matmuls(count):
    shapes = {"x": "M D0", **{f"w{i}": f"D{i} D{i + 1}" for i in range(count)}}

    def chain(*arrays):
        return reduce(matmul, arrays)

    kind = Parameter.POSITIONAL_OR_KEYWORD
    chain.__signature__ = Signature([Parameter(name, kind) for name in shapes])
    return lower(trace(chain, **shapes))


@pytest.mark.parametrize("depth", [0, 1, 5, DEEPEST])
def test_a_nest_is_shown_compared_verified_and_fused(depth):
    graph = nest(depth)

    verify(graph)
    assert graph.depth == depth
    assert graph == nest(depth)
    assert hash(graph) == hash(nest(depth))
    assert parse(graph.show()) == graph
    assert bb.fuse(graph).final == graph


@pytest.mark.parametrize("rules", [PAPER_RULES, RULES], ids=["paper", "default"])
def test_a_nest_too_deep_is_refused_in_words(rules):
    with pytest.raises(bb.FusionError, match=f"nests {DEEPEST + 1} maps, more than {DEEPEST}"):
        bb.fuse(nest(DEEPEST + 1), rules)
    with pytest.raises(bb.FusionError, match="nests 800 maps"):
        bb.fuse(nest(800), rules)


def test_a_label_needs_no_more_depth_than_it_shows():
    (deep,) = nest(800).nodes
    (shallow,) = nest(3).nodes

    assert label(shallow) == "D2<D1<D0<row_sum>>>"
    assert label(deep).startswith("D799<D798<D797<")
    assert len(label(deep)) == LABEL_WIDTH


def test_a_label_leaves_out_nothing_that_would_show():
    """Dims of one letter take the least room."""
    (node,) = nest(40, names=ascii_letters).nodes

    assert label(node) == label(node, 1000)
    assert len(label(node)) == LABEL_WIDTH


def test_a_long_chain_nests_up_to_the_limit(monkeypatch):
    monkeypatch.setattr(legality, "MOST_NESTED", 8)
    graph = matmuls(24)
    derivation = bb.fuse(graph, RULES)
    refused = [
        reason
        for _, level in derivation.final.walk()
        for reason in reasons(ExtendMapOverAncestors(), level)
    ]

    assert any("more than 8 maps would be nested" in reason for reason in refused)
    assert derivation.final.depth <= 8 + 3  # the nest stands in three maps over the blocks of rows
    assert check_equal_exactly(graph, derivation.final, trials=1) is None


def test_the_papers_extension_stops_there_too(monkeypatch):
    graph = lower(examples.ALL[0].program())
    assert any(step.rule == "extend-map" for step in bb.fuse(graph, PAPER_RULES).steps)

    monkeypatch.setattr(legality, "MOST_NESTED", 1)
    assert all(step.rule != "extend-map" for step in bb.fuse(graph, PAPER_RULES).steps)
