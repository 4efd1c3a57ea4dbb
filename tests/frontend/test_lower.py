"""Lowered programs compute what the oracle does, at one block per dim and at ragged blocks."""

from dataclasses import replace

import numpy as np
import pytest
from torch.nn import functional as F

import blockbuster.frontend as bb
from blockbuster.interp.binding import list_only
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.graph import Index, Read, Value
from blockbuster.ir.ops import Elementwise, Functional, Map, Misc, Relabel, Transpose
from blockbuster.ir.parse import parse
from blockbuster.ir.types import size_class
from blockbuster.ir.verify import verify
from tests.frontend.programs import PROGRAMS, attention, inputs_for
from tests.parameters import one_in, rest_slow

SIZES = {"B": 2, "H": 3, "G": 2, "M": 5, "N": 7, "D": 4, "K": 6, "L": 3, "E": 3, "F": 2}


def lowered(fn, **dims):
    graph = bb.lower(bb.trace(fn, **dims))
    verify(graph)
    return graph


def innermost(graph, position):
    """The names of the ops that a top-level node comes down to."""
    op = graph.nodes[position].op
    while isinstance(op, Map):
        ops = [node.op for node in op.body.nodes]
        op = ops[0]
    return [getattr(o, "name", type(o).__name__) for o in ops]


def kinds(graph):
    return [type(node.op) for node in graph.nodes]


def two_per_block(graph):
    dims = {size_class(d) for i in graph.inputs for d in i.type.lists}
    single = list_only(graph)
    return {d: 1 if d in single else 2 for d in sorted(dims)}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("ragged", rest_slow([False, True], [True]))
def test_evaluates_to_the_oracle(name, ragged):
    fn, dims = PROGRAMS[name]
    program = bb.trace(fn, **dims)
    graph = bb.lower(program)
    arrays = inputs_for(program, SIZES)
    wanted = program.numpy(arrays)

    verify(graph)
    read = {i.view.source for i in graph.inputs if isinstance(i.view, Read)}
    given = {source: arrays[source] for source in sorted(read)}
    got = evaluate(graph, given, block_sizes=two_per_block(graph) if ragged else None)

    assert sorted(got) == sorted(wanted)
    for key in wanted:
        np.testing.assert_allclose(got[key], wanted[key], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", one_in(4, PROGRAMS, first=1))
def test_prints_and_parses(name):
    graph = bb.lower(bb.trace(PROGRAMS[name][0], **PROGRAMS[name][1]))
    functions = {op.name: op.fn for _, op in graph.of_type(Misc)}

    assert parse(graph.show(), functions=functions) == graph


def test_attention_is_the_papers():
    graph = lowered(attention, q="M D", k="N D", v="N L")

    assert len(graph.nodes) == 7
    assert [i.view for i in graph.inputs] == [
        Read("q", ("M", "D")),
        Read("k", ("N", "D")),
        Read("v", ("N", "L")),
    ]
    assert [str(i.type) for i in graph.inputs] == ["M,D[M,D]", "N,D[N,D]", "L,N[L,N]"]
    assert [innermost(graph, i) for i in range(7)] == [
        ["dot"], ["Elementwise"], ["Elementwise"], ["row_sum"], ["Elementwise"], ["row_scale"],
        ["dot"],
    ]  # fmt: skip


def test_safe_softmax_writes_the_maximum_out():
    graph = lowered(lambda x: bb.softmax(x, safe=True), x="M N")

    assert [innermost(graph, i)[0] for i in range(6)] == [
        "row_max", "Pointwise", "Elementwise", "row_sum", "Elementwise", "row_scale",
    ]  # fmt: skip


def test_hand_written_normalization_lowers_like_the_built_in_one():
    def by_hand(x):
        e = np.exp(x)
        return e / e.sum(-1, keepdims=True)

    made = [innermost(lowered(by_hand, x="M N"), i) for i in range(4)]

    built_in = lowered(bb.softmax, x="M N")
    assert made == [innermost(built_in, i) for i in range(4)]


@pytest.mark.parametrize(
    ("fn", "op"),
    [
        (lambda x, c, g: x - c[:, None], "row_shift"),
        (lambda x, c, g: c[:, None] + x, "row_shift"),
        (lambda x, c, g: x / c[:, None], "row_scale"),
        (lambda x, c, g: c[:, None] * x, "row_scale"),
        (lambda x, c, g: x * g, "col_scale"),
        (lambda x, c, g: x / g, "col_scale"),
        (lambda x, c, g: g + x, "col_shift"),
        (lambda x, c, g: x + x, "add"),
        (lambda x, c, g: x * x, "mul"),
        (lambda x, c, g: x - x, "sub"),
        (lambda x, c, g: x / x, "div"),
        (lambda x, c, g: c[:, None] * g, "outer"),
        (lambda x, c, g: g - x, "Pointwise"),
        (lambda x, c, g: x * 3, "Elementwise"),
    ],
)
def test_named_operators(fn, op):
    graph = lowered(fn, x="M N", c="M", g="N")

    assert innermost(graph, len(graph.nodes) - 1) == [op]


def test_a_repeated_dim_is_relabeled_in_the_view():
    graph = lowered(lambda x: x @ x.T, x="M D")

    assert [i.view.axes for i in graph.inputs] == [("M", "D"), ("M'", "D")]
    assert kinds(graph) == [Map]


def test_a_repeated_dim_of_a_computed_value_is_a_relabel():
    graph = lowered(lambda x: (lambda h: h @ h.T)(bb.exp(x)), x="M D")

    assert kinds(graph) == [Map, Relabel, Map]


def test_index_vectors_are_inputs():
    graph = lowered(
        lambda x: bb.where(bb.arange(x.shape[0])[:, None] >= bb.arange(x.shape[0]), x, 0), x="M M"
    )

    assert [i.view for i in graph.inputs if isinstance(i.view, Index)] == [Index("M"), Index("M'")]


def test_transposes_travel_to_inputs():
    graph = lowered(lambda a, b: (bb.exp(a @ b).T * 2).T.T @ a, a="M K", b="K N")

    assert not [op for _, op in graph.of_type(Transpose)]


def test_a_value_wanted_in_two_orders_is_transposed_once():
    graph = lowered(lambda x: bb.softmax(bb.softmax(x, axis=0), axis=1), x="M N")

    assert kinds(graph).count(Transpose) == 1


def test_softmax_over_columns_needs_no_transpose():
    assert kinds(lowered(lambda x: bb.softmax(x, axis=0) * 2, x="M N")) == [Map] * 5


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.max_pool2d(x, 2), lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.avg_pool2d(x, 3, 1, 1), lambda x: F.max_pool2d(x * 2, (1, 3), (1, 2)),
    ],
)  # fmt: skip
def test_windows_are_computed_in_the_order_of_the_result(pool):
    """The last two axes of images are blocks, and no loop runs over single columns."""
    graph = lowered(pool, x="C H=127 W=129")

    (output,) = graph.outputs
    (made,) = graph.types_of([output.value])
    assert output.axes is None  # the lists are in the order of the result's axes
    assert made.axes == made.lists[1:]
    assert Transpose not in kinds(graph)


def test_leading_dims_are_list_only():
    graph = lowered(bb.matmul, a="B H M K", b="H K N")

    assert [str(i.type) for i in graph.inputs] == ["B,H,M,K[M,K]", "H,N,K[N,K]"]
    assert str(graph.nodes[-1].types[0]) == "B,H,M,N[M,N]"


def test_scalars_need_no_maps():
    graph = lowered(lambda x, y: bb.exp(x) * y, x="", y="")

    assert [node.op for node in graph.nodes][1] == Functional("mul")
    assert isinstance(graph.nodes[0].op, Elementwise)


def test_an_example_axis_of_extent_1_lowers_to_a_unit_axis():
    def shifted(x, y):
        positions = bb.arange(x.shape[0])[:, None] + bb.arange(x.shape[1])
        return x / x.shape[0] + y - positions * x.sum(0) + bb.softmax(x, axis=0)

    arrays = {"x": np.full((1, 4), 2.0), "y": np.ones((3, 4))}
    program = bb.trace(shifted, **arrays)
    graph = bb.lower(program)

    verify(graph)
    wanted = shifted(**arrays)
    np.testing.assert_allclose(program.numpy(arrays)["out"], wanted)
    np.testing.assert_allclose(evaluate(graph, arrays, block_sizes={"A": 3})["out"], wanted)


def test_outputs_remember_unit_axes():
    graph = lowered(lambda x: {"s": x.sum(0, keepdims=True), "x": x[:, None]}, x="M N")

    assert [(o.name, o.axes) for o in graph.outputs] == [
        ("s", (None, "N")),
        ("x", ("M", None, "N")),
    ]
    assert graph.outputs[1].value == Value(-1)


def test_origins_name_the_users_line():
    graph = bb.lower(bb.trace(attention, q="M D", k="N D", v="N L"))

    assert {line.file.rsplit("/", 1)[-1] for n in graph.nodes for line in n.origin.lines()} == {
        "programs.py"
    }


def test_long_chains_do_not_recurse():
    def chain(x):
        for _ in range(2000):
            x = bb.tanh(x)
        return x

    assert len(bb.lower(bb.trace(chain, x="M N")).nodes) == 2000


def test_a_replaced_program_is_lowered_as_what_it_is():
    one = bb.trace(lambda X: np.exp(X), X="M K")
    other = bb.trace(lambda X: np.tanh(X) + 1, X="M K")

    mixed = replace(one, equations=other.equations, outputs=other.outputs)

    assert bb.lower(mixed) == bb.lower(other) != bb.lower(one)
