"""A program with one block along a dim is the program, and says what would unlock an edge."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster import explain, fuse, lower, softmax, trace
from blockbuster.interp.binding import dims_of, sources
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir import Graph, verify
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Map
from blockbuster.ir.types import size_class
from blockbuster.rules import PAPER_RULES, PEELING_RULES
from blockbuster.rules.one_block import called, with_one_block
from tests.frontend.programs import PROGRAMS
from tests.parameters import one_in
from tests.random_programs.strategies import inputs_for, programs, sizes_and_blocks


def unviewed(graph: Graph) -> Graph:
    """The same equations between values alone, whatever arrays they are read from."""
    inputs = tuple(replace(i, view=None, hint=f"i{at}") for at, i in enumerate(graph.inputs))
    outputs = tuple(replace(o, axes=None, name="") for o in graph.outputs)
    return replace(graph, inputs=inputs, outputs=outputs)


def blocked_dims(graph):
    single = list_only(graph)
    return [d for d in dict.fromkeys(map(size_class, dims_of(graph))) if d not in single]


@pytest.mark.parametrize("kind", ["blocks", "matrices", "norms", "planted"])
@given(st.data())
def test_one_block_keeps_the_meaning(kind, data):
    graph = unviewed(data.draw(programs(kind), label="program"))
    dims = blocked_dims(graph)
    setting = data.draw(sizes_and_blocks(graph), label="sizes")
    arrays = data.draw(inputs_for(graph, setting), label="inputs")
    if not dims:
        return
    dim = data.draw(st.sampled_from(dims), label="dim")

    one = with_one_block(graph, called(graph, dim))

    verify(one)
    assert all(size_class(d) != dim for d in loops(one))
    assert sources(one) == sources(graph)
    whole = {d: setting.sizes[size_class(d)] for d in dims_of(graph)}
    steps = {d: setting.block_sizes.get(size_class(d), n) for d, n in whole.items()}
    steps |= {d: n for d, n in whole.items() if size_class(d) == dim}
    wanted = evaluate(graph, arrays, sizes=setting.sizes, block_sizes=steps)
    left = dict.fromkeys(dims_of(one))  # a dim that was a loop alone is gone
    kept = {d: n for d, n in steps.items() if d in left}
    got = evaluate(one, arrays, sizes=setting.sizes, block_sizes=kept)
    for name in graph.output_names:
        np.testing.assert_allclose(got[name], wanted[name])


def loops(graph):
    return [op.dim for _, level in graph.walk() for _, op in level.of_type(Map)]


def test_a_peeled_map_over_the_dim_is_its_first_iteration():
    graph = lower(trace(lambda x, w, v: (x @ w) @ v, x="M K", w="K N", v="N L"))
    peeled = fuse(graph, PEELING_RULES).final
    starts = [op for _, level in peeled.walk() for _, op in level.of_type(Map) if op.start]
    assert starts
    one = with_one_block(peeled, called(peeled, starts[0].dim))
    verify(one)
    assert not [d for d in loops(one) if d == starts[0].dim]


def test_a_list_only_dim_is_refused():
    graph = lower(trace(lambda x, y: x @ y, x="B M K", y="B K N"))
    with pytest.raises(ValueError, match="B is a list-only dim"):
        with_one_block(graph, ("B",))


def test_explain_finds_the_tile_that_unlocks():
    graph = lower(trace(lambda x: softmax(x, axis=-1), x="M N"))
    final = fuse(graph).final

    (edge,) = explain(final, sizes={"M": 8, "N": 16})

    said = 'if one block holds all of N, nothing has to be stored: bb.fuse(graph, whole=("N",))'
    assert edge.unlock == said
    assert edge.elements == 8 * 16
    assert edge.bytes_at_stake(4) == 2 * 4 * 8 * 16
    assert explain(final)[0].bytes_at_stake() is None


@pytest.mark.parametrize("name", one_in(4, PROGRAMS, first=1))
def test_every_program_that_is_left_with_edges_is_explained(name):
    function, dims = PROGRAMS[name]
    final = fuse(lower(trace(function, **dims)), PAPER_RULES).final
    edges = final.buffered_edges()

    found = explain(final)

    assert len(found) == len(edges)
    assert all(edge.reason for edge in found)


def test_explain_wants_every_dim_of_an_edge():
    final = fuse(lower(trace(lambda x: softmax(x, axis=-1), x="M N"))).final
    with pytest.raises(ValueError, match="lack M"):
        explain(final, sizes={"N": 16})
