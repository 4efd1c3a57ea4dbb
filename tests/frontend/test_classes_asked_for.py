"""isinstance of traced arrays: functions that take arrays and numbers choose as they do by eager
execution.
"""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.array import TracedArray

torch = pytest.importorskip("torch")


def on_several_lines(x):
    return isinstance(
        x * 2,
        torch.Tensor,
    )


QUESTIONS = {
    "a tensor": lambda x: isinstance(x, torch.Tensor),
    "torch's question": torch.is_tensor,
    "an array": lambda x: isinstance(x, np.ndarray),
    "one of two": lambda x: isinstance(x, float | torch.Tensor),
    "a number": lambda x: isinstance(x, float | int),
    "a parameter": lambda x: isinstance(x, torch.nn.Parameter),
    "a result": lambda x: isinstance(x.sum(), torch.Tensor),
    "on several lines": on_several_lines,
    "of several": lambda x: [isinstance(one, torch.Tensor) for one in (x, 1)] == [True, False],
    "all": lambda x: all(isinstance(one, torch.Tensor) for one in (x, x)),
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("x", [torch.ones(2, 3), np.ones((2, 3), np.float32)], ids=["torch", "np"])
def test_the_branch_is_that_of_eager_execution(name, x):
    asked = QUESTIONS[name]

    def branch(x):
        return x + 1 if asked(x) else x * 5

    assert (bb.jit(branch)(x) == branch(x)).all()


def test_an_array_of_a_dim_string_is_of_no_library():
    def branch(x):
        assert not isinstance(x, torch.Tensor | np.ndarray)
        assert isinstance(x, TracedArray)
        return x

    bb.trace(branch, x="M N")


def test_functions_in_c_take_no_stand_in_for_a_tensor():
    def stored(x):
        assert isinstance(x, torch.Tensor)
        assert x.__class__ is TracedArray
        return torch.tensor([x])

    with pytest.raises(bb.TraceError, match="not known while tracing"):
        bb.jit(stored)(torch.ones(2, 3))
