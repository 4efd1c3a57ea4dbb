"""Jitted functions that change arrays in place: eager results, and arguments as they were."""

from random import Random

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import TraceError
from tests.frontend.in_place_programs import LIBRARIES, drawn

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("library", LIBRARIES)
def test_random_programs(library):
    accepted = 0
    for seed in range(200, 212):
        program = drawn(Random(seed), library)
        given, fresh = program.arguments(), program.arguments()
        try:
            found = bb.jit(program.function)(*given)
        except TraceError:
            found = None
        for one, other in zip(given, fresh, strict=True):
            np.testing.assert_array_equal(one, other)
        if found is not None:
            accepted += 1
            for one, wanted in zip(found, program.function(*fresh), strict=True):
                np.testing.assert_allclose(one, wanted, rtol=1e-6, err_msg=program.source)
    assert accepted >= 8


def test_a_function_of_arrays_and_of_tensors_has_a_trace_of_each():
    def function(x):
        y = x * 1
        s = y[0]
        s += 1
        return y

    jitted, array = bb.jit(function), np.arange(3.0)
    for _ in range(2):
        np.testing.assert_array_equal(jitted(array), [0, 1, 2])
        np.testing.assert_array_equal(jitted(torch.from_numpy(array)), [1, 1, 2])


def test_a_buffer_that_the_function_changes_itself_counts_calls():
    count = np.zeros(3)

    def function(x):
        nonlocal count
        count += 1
        return x + count

    jitted = bb.jit(function)
    found = [jitted(np.zeros(3))[0] for _ in range(3)]
    assert found == [1, 2, 3]


def test_an_array_that_the_function_stores_is_refused_in_the_next_call():
    class Model:
        mean = 0.0

        def __call__(self, x):
            self.mean = self.mean + x
            return self.mean * 2

    jitted = bb.jit(Model())
    jitted(np.ones(3))
    with pytest.raises(TraceError, match=r"another trace(.|\n)*has to return them instead"):
        jitted(np.ones(3))
