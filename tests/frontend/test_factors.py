"""Products along axes of few elements, recorded factor by factor."""

import numpy as np
import pytest

import blockbuster as bb


@pytest.mark.parametrize(("dims", "folds"), [("M N=2", 0), ("M N=4", 0), ("M N=5", 1), ("M N", 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_short_axes_are_multiplied_one_by_one(dims, folds, keepdims):
    program = bb.trace(lambda x: np.prod(x + 1, axis=1, keepdims=keepdims), x=dims)
    x = np.arange(3 * 4, dtype=float).reshape(3, 4)
    x = {"M N=2": x[:, :2], "M N=5": np.c_[x, x[:, :1]]}.get(dims, x)

    assert [one.op for one in program.equations].count("prod") == folds
    (made,) = program.numpy({"x": x}).values()
    np.testing.assert_array_equal(made, np.prod(x + 1, axis=1, keepdims=keepdims))


def test_an_axis_without_elements_is_one():
    made = bb.jit(lambda x: np.prod(x, axis=1))(np.ones((3, 0)))

    np.testing.assert_array_equal(made, np.ones(3))


def test_integers_stay_integers():
    x = np.arange(6).reshape(3, 2)
    made = bb.jit(lambda x: np.prod(x, axis=1))(x)

    assert made.dtype == x.dtype
    np.testing.assert_array_equal(made, x.prod(1))
