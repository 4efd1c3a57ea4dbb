"""networkx as an oracle: what it sees must be what the graph says, and equality is isomorphism."""

import networkx
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import categorical_multiedge_match

from blockbuster.ir import Graph, parse
from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Value
from blockbuster.ir.ops import Map
from tests.random_programs.strategies import block_graphs

EDGES = categorical_multiedge_match(["operand", "port", "type"], [None, None, None])


def isomorphic(one, other):
    return networkx.is_isomorphic(one, other, node_match=same_node, edge_match=EDGES)


def same_node(one, other):
    """Equal operators, whatever the positions inside the bodies of maps."""
    if one["types"] != other["types"] or ("body" in one) is not ("body" in other):
        return False
    if "body" not in one:
        return one["op"] == other["op"]
    frames = [(op.dim, op.start, op.iterated, op.results) for op in (one["op"], other["op"])]
    return frames[0] == frames[1] and isomorphic(one["body"], other["body"])


def levels(level):
    yield level
    for _, body in level.nodes(data="body"):
        if body is not None:
            yield from levels(body)


@given(block_graphs())
def test_every_level_is_there_with_its_operands(graph: Graph):
    exported = list(levels(graph.to_networkx()))
    inner = [g for _, g in graph.walk()]
    assert len(exported) == len(inner)
    assert sum(len(level) for level in exported) == sum(
        len(g.inputs) + len(g.nodes) + len(g.outputs) for g in inner
    )
    assert all(networkx.is_directed_acyclic_graph(level) for level in exported)


@given(block_graphs())
def test_interior_buffered_edges_are_the_graphs_own(graph: Graph):
    interior = [
        edge
        for level in levels(graph.to_networkx())
        for *edge, buffered in level.edges(data="buffered")
        if buffered and isinstance(edge[0], int) and isinstance(edge[1], int)
    ]
    assert len(interior) == len(graph.buffered_edges())


@given(block_graphs())
def test_reaching_is_a_path(graph: Graph):
    level = graph.to_networkx()
    for consumer in graph.places():
        above = networkx.ancestors(level, consumer)
        for producer in graph.places():
            assert graph.reaches(producer, consumer) is (producer in above)


@given(block_graphs(), st.randoms(use_true_random=False))
def test_built_in_another_order_it_is_isomorphic_and_equal(graph: Graph, random):
    other = rebuilt(graph, random)
    assert other == graph
    assert isomorphic(other.to_networkx(), graph.to_networkx())


def rebuilt(graph, random):
    """The same equations, each added as soon as chance takes it among those that are ready."""
    builder = Builder()
    made = {Value(-1, i): builder.input(x.type, x.view) for i, x in enumerate(graph.inputs)}
    waiting = list(graph.places())
    while waiting:
        ready = [p for p in waiting if all(v in made for v in graph.nodes[p].operands)]
        position = random.choice(ready)
        waiting.remove(position)
        node = graph.nodes[position]
        results = builder.add(node.op, *(made[v] for v in node.operands))
        made.update((Value(position, port), result) for port, result in enumerate(results))
    return builder.finish(*(type(o)(made[o.value], o.name, o.axes) for o in graph.outputs))


def test_other_operand_order_is_another_program():
    text = "graph(X: M[M], Y: M[M]) { Z = map M (x in X, y in Y) { z = %s yield z } return Z }"
    one, two = parse(text % "x - y"), parse(text % "y - x")
    assert not isomorphic(one.to_networkx(), two.to_networkx())


def test_a_map_shows_its_body_and_an_edge_what_it_carries():
    graph = parse("graph(X: M[M]) { Y = map M (x in X) { y = exp(x) yield y } return Y }")
    level = graph.to_networkx()
    assert isinstance(level.nodes[0]["op"], Map)
    assert set(level.nodes[0]["body"]) == {0, ("input", 0), ("output", 0)}
    assert level.edges[("input", 0), 0, 0]["buffered"]
    assert not level.nodes[0]["body"].edges[("input", 0), 0, 0]["buffered"]
