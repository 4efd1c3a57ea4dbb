"""The interpreter agrees with a second reading of programs; arrays of list-only dims."""


import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.interp.layout import Layout
from blockbuster.interp.ordered import Ordered
from blockbuster.interp.residues import ZeroDenominator
from blockbuster.interp.semantics import Float32, Float64, Refused
from blockbuster.ir.types import Type
from tests.interp.plain import plain
from tests.random_programs.strategies import block_graphs, inputs_for, sizes_and_blocks


def lowered(function, **dims):
    return bb.lower(bb.trace(function, **dims))


DIMS = {"x": "K M", "y": "B N K"}
JOINED = lowered(lambda x, y: bb.sum(bb.concat([y, y], axis=0) @ x, axis=0), **DIMS)
TWICE = lowered(lambda x, y: 2 * bb.sum(y @ x, axis=0), **DIMS)
THRICE = lowered(lambda x, y: 3 * bb.sum(y @ x, axis=0), **DIMS)


@given(data=st.data())
def test_the_plain_reading_agrees_with_the_interpreter(data):
    graph = data.draw(block_graphs(), label="program")
    at = data.draw(sizes_and_blocks(graph), label="sizes")
    inputs = data.draw(inputs_for(graph, at), label="inputs")
    semantics = data.draw(st.sampled_from((Float64, Float32, Ordered())), label="semantics")
    try:
        expected = at.run(graph, inputs, semantics)
    except (Refused, ZeroDenominator):
        return

    again = plain(graph, inputs, at.sizes, at.block_sizes, semantics)

    for name, array in expected.items():
        np.testing.assert_array_equal(again[name], array)


def test_a_dim_that_concat_makes_is_list_only():
    inputs = {"x": np.ones((7, 2)), "y": np.ones((2, 3, 7))}

    assert (bb.evaluate(JOINED, inputs)["out"] == 28).all()
    with pytest.raises(ValueError, match="A is list-only"):
        bb.evaluate(JOINED, inputs, blocks={"A": 2})


def test_a_true_pair_is_not_refuted():
    assert bb.prove_equal(JOINED, TWICE).equal is not False


def test_a_false_pair_is_refuted():
    proof = bb.prove_equal(JOINED, THRICE)

    assert proof.equal is False
    assert proof.counterexample is not None


def test_cutting_loses_no_element():
    layout = Layout({"B": 4}, {"B": (range(2), range(2, 4))})

    with pytest.raises(ValueError, match="one item per block of B"):
        layout.cut(np.arange(4.0), Type(("B",), ()))
