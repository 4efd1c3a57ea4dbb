"""Random array programs: lowered and interpreted, they are what NumPy computes."""

from collections import Counter
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.frontend import lower, trace
from blockbuster.interp.semantics import Float64
from blockbuster.ir.verify import verify
from blockbuster.testing.arrays import OPERATORS, random_array_function
from tests.random_programs.strategies import array_functions, inputs_for, sizes_and_blocks


@given(st.data())
def test_lowered_programs_compute_what_numpy_does(data):
    function = data.draw(array_functions(), label="function")
    program = trace(function, **function.inputs)
    graph = lower(program)
    verify(graph)
    setting = data.draw(sizes_and_blocks(graph), label="setting")
    inputs = data.draw(inputs_for(graph, setting, whole=False), label="inputs")

    expected = program.numpy(inputs)

    for name, array in setting.run(graph, inputs, Float64).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-9, atol=1e-9)


def test_every_operator_occurs():
    functions = (random_array_function(Random(seed)) for seed in range(300))
    count = Counter(name for function in functions for name, _ in function.steps)

    assert all(count[name] >= 10 for name in OPERATORS), count
