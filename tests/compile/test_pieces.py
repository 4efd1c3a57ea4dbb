"""Cutting at functions of whole arrays: what each piece holds, and what crosses."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.ir.verify import verify
from blockbuster.selection.plans.pieces import Call, Piece, in_pieces
from tests.compile.functions import several
from tests.frontend.programs import PROGRAMS
from tests.parameters import one_in


def cut(function, **inputs):
    graph = bb.lower(bb.trace(function, **inputs))
    return graph, in_pieces(graph)


def test_without_a_function_the_graph_is_the_piece():
    graph, pieces = cut(lambda x: bb.softmax(x), x="M N")

    (piece,) = pieces.steps
    assert piece.graph is graph
    assert piece.writes == ("out",)


def test_pieces_and_calls_alternate():
    _, pieces = cut(several, x="M K", w="K N")

    first, call, last = pieces.steps
    assert isinstance(call, Call)
    assert call.operands[0].order == (1, 0)  # y.T is y, seen with its axes exchanged
    assert call.operands[0].array in first.writes
    assert [seen.array for seen in pieces.results] == [
        *last.writes, "soft", *call.operands[0].array.split(), call.operands[0].array, *call.writes,
    ]  # fmt: skip


def test_a_node_waits_for_what_reads_it():
    def function(x, y):
        return np.sort(x + 1, axis=-1) + bb.exp(y)

    _, pieces = cut(function, x="M N", y="M N")

    first, _, last = pieces.steps
    assert [len(piece.graph.nodes) for piece in (first, last)] == [1, 2]


def test_inputs_and_indices_reach_functions():
    def function(x):
        return np.sort(x, axis=-1), np.sort(3 - bb.arange(x.shape[-1]) * 1.0, axis=0)

    _, pieces = cut(function, x="M N")
    x = np.random.default_rng(0).standard_normal((3, 4))

    assert [type(step) for step in pieces.steps].count(Call) == 2
    first, second = bb.jit(function)(x)
    np.testing.assert_array_equal(first, np.sort(x, axis=-1))
    np.testing.assert_array_equal(second, [0, 1, 2, 3])


def test_functions_in_a_row():
    def function(x):
        return np.sort(np.sort(np.sort(x, axis=0), axis=-1), axis=0) * 2 + x

    x = np.random.default_rng(0).standard_normal((3, 4))
    _, pieces = cut(function, x="M N")

    assert [type(step) for step in pieces.steps] == [Call, Call, Call, Piece]
    np.testing.assert_allclose(bb.jit(function)(x), function(x))


@pytest.mark.parametrize("name", one_in(4, PROGRAMS))
def test_every_piece_is_a_block_program(name):
    function, inputs = PROGRAMS[name][:2]
    pieces = in_pieces(bb.lower(bb.trace(function, **inputs)))

    for step in pieces.steps:
        if isinstance(step, Piece):
            verify(step.graph)
