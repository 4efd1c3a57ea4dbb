"""What `jit` does with a function's own defaults, and arguments that fix what sizes leave open."""

import numpy as np
import pytest

import blockbuster as bb


@pytest.mark.parametrize(("ufunc", "count"), [(np.exp, 1), (np.maximum, 2)])
def test_functions_of_numpy_themselves(ufunc, count):
    arrays = [np.linspace(-1, n, 12, dtype=np.float32).reshape(3, 4) for n in range(count)]

    np.testing.assert_allclose(bb.jit(ufunc)(*arrays), ufunc(*arrays), rtol=1e-6)


def test_defaults_of_keywords_are_left_to_the_function():
    def scaled(x, *, by=2.0, shift=np.full(4, 3, np.float32)):  # noqa: B008
        return x * by + shift

    x = np.ones((3, 4), np.float32)
    function = bb.jit(scaled)
    np.testing.assert_array_equal(function(x), np.full((3, 4), 5))
    np.testing.assert_array_equal(function(x, by=1.0), np.full((3, 4), 4))
    np.testing.assert_array_equal(function(x, shift=x), np.full((3, 4), 3))


def test_a_slice_of_a_join_by_sizes_says_what_can_be_sliced():
    def last(a, b):
        return bb.concat([a, b], 0)[a.shape[0] - b.shape[0] :]

    def parts(a, b):
        return bb.concat([a[a.shape[0] - b.shape[0] :], b], 0) * 2

    a, b = np.ones((4, 3), np.float32), np.ones((2, 3), np.float32)
    with pytest.raises(bb.TraceError, match=r"at numbers(.|\n)*before they are joined") as error:
        bb.trace(last, a="A N", b="B N")
    assert "|A| - |B| elements, out of |A| + |B|" in str(error.value)
    # what it says can be done, and with arrays the sizes are known
    assert bb.jit(last)(a, b).shape == (4, 3)
    assert bb.jit(lambda a, b, n: bb.concat([a, b], 0)[n:])(a, b, 2).shape == (4, 3)
    assert bb.jit(parts)(a, b).shape == (4, 3)


def test_tuples_in_tuples_are_fixed_arguments_up_to_a_depth():
    def nested(depth):
        value = (1,)
        for _ in range(depth):
            value = (value,)
        return value

    function = bb.jit(lambda x, fixed: x * 2.0)
    x = np.ones(3)

    np.testing.assert_array_equal(function(x, nested(150)), x * 2.0)
    with pytest.raises(TypeError, match="the argument fixed is a deeply nested tuple"):
        function(x, nested(5000))


@pytest.mark.parametrize("shape", [(1, 1), (1,)])
def test_an_array_of_one_element_is_an_operand_of_a_product(shape):
    one = np.ones(shape)

    product = bb.jit(lambda x: x @ one)
    np.testing.assert_array_equal(product(np.ones((3, 1))), np.ones((3, 1)) @ one)
    assert product.compiled_for(np.ones((3, 1))).plan.inputs.keys() == {"x", "one"}
    np.testing.assert_array_equal(bb.jit(lambda x: x * one)(np.ones((3, 1))), np.ones((3, 1)))
