"""The three examples of the paper lower to its counts of top-level nodes."""

import numpy as np
import pytest

import blockbuster.frontend as bb
from blockbuster.examples import ALL
from blockbuster.interp.evaluate import evaluate
from tests.frontend.programs import inputs_for

COUNTS = {"attention": 7, "layernorm-matmul": 8, "rmsnorm-swiglu": 9}


@pytest.mark.parametrize("example", ALL, ids=lambda e: e.name)
def test_lowers_to_the_papers_program(example):
    program = example.program()
    graph = bb.lower(program)
    arrays = inputs_for(program, example.sizes)

    assert len(graph.nodes) == COUNTS[example.name]
    got = evaluate(graph, arrays, block_sizes=dict.fromkeys(program.dims, 48))
    np.testing.assert_allclose(got["out"], program.numpy(arrays)["out"], rtol=1e-9)
    np.testing.assert_allclose(example.fn(**arrays), got["out"], rtol=1e-9)
