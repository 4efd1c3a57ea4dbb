"""Arrays beside scalars, arrays of one element and tensors without axes: the library's dtypes."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb

torch = pytest.importorskip("torch")

DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")
OPERATORS = {
    "+": operator.add, "*": operator.mul, "/": operator.truediv, ">": operator.gt,
    "where": lambda x, y: bb.where(x > 0, x, y), "maximum": lambda x, y: bb.maximum(x, y),
}  # fmt: skip
SHAPES = ((), (1,), (3,))
"""Of tensors: one without axes counts less beside one with axes."""


def in_torch(x, y, name):
    """The operator without us; our where takes tensors of one dtype alone."""
    if name == "where":
        return torch.where(x > 0, x, y)
    return torch.maximum(x, y) if name == "maximum" else OPERATORS[name](x, y)


def tensor(dtype, shape):
    numbers = torch.tensor([1.5, 2.25, 3.0])[: max(1, sum(shape))].reshape(shape)
    return numbers.to(getattr(torch, dtype))


def same(found, right, where):
    assert found.dtype == right.dtype, where
    tolerance = 1e-2 if "16" in str(right.dtype) else 1e-6
    ours, theirs = np.asarray(found, float), np.asarray(right, float)
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, err_msg=str(where))


@given(
    name=st.sampled_from(sorted(OPERATORS)),
    dtypes=st.tuples(*[st.sampled_from((*DTYPES, "bfloat16"))] * 2),
    shapes=st.tuples(*[st.sampled_from(SHAPES)] * 2),
    read=st.sampled_from(["both", "first", "second"]),
)
def test_tensors_meet_as_in_torch(name, dtypes, shapes, read):
    """``read``: which of the two is an argument; the other one, the function reads by itself."""
    x, y = (tensor(*one) for one in zip(dtypes, shapes, strict=True))
    fn = OPERATORS[name]
    right = in_torch(x, y, name)

    if read == "both":
        found = bb.jit(fn)(x, y)
    elif read == "first":
        found = bb.jit(lambda x: fn(x, y))(x)
    else:
        found = bb.jit(lambda y: fn(x, y))(y)

    if found.dtype == torch.bfloat16:
        found, right = found.float(), right.float()
    same(found, right, (name, dtypes, shapes, read))


def test_a_number_of_float64_over_a_minimum():
    x = torch.tensor([1.0, 2.0])
    large = torch.tensor(800.0, dtype=torch.float64)

    assert bb.jit(lambda x: large / x.min())(x).dtype == torch.float64
    assert bb.jit(lambda x: large / x)(x).dtype == torch.float32
    assert bb.jit(lambda x: x.half() / x.sum())(x).dtype == torch.float16


@given(
    name=st.sampled_from(sorted(OPERATORS)),
    dtypes=st.tuples(*[st.sampled_from(DTYPES)] * 2),
    shape=st.sampled_from([None, (), (1,)]),
    turned=st.booleans(),
)
def test_arrays_meet_numbers_as_in_numpy(name, dtypes, shape, turned):
    """``shape`` of None: one of NumPy's scalars. Integers beside floats take the floats' dtype."""
    x = np.array([1, 2, 3]).astype(dtypes[0])
    number = np.dtype(dtypes[1]).type(2)
    y = number if shape is None else np.full(shape, number)
    fn = OPERATORS[name]

    def called(x):
        return fn(y, x) if turned else fn(x, y)

    right = np.asarray(called(x))
    found = np.asarray(bb.jit(called)(x))

    kinds = {np.dtype(dtype).kind == "f" for dtype in dtypes}
    if right.dtype.kind == "f" and len(kinds) == 2 and np.dtype(dtypes[0]).kind == "f":
        right = right.astype(dtypes[0])
    if right.dtype.kind == "f" and kinds == {False}:
        right = right.astype(np.float64)
    same(found, right, (name, dtypes, shape, turned))


@pytest.mark.parametrize("number", [300, -1, 2**40])
def test_python_ints_that_integers_do_not_hold(number):
    x = np.array([1, 2, 255], np.uint8)

    with pytest.raises(OverflowError):
        x + number
    with pytest.raises(bb.TraceError, match=f"add: {number} is no uint8"):
        bb.jit(lambda x: x + number)(x)
    for fn in (lambda x: x + number, lambda x: x * number, lambda x: number - x):
        same(bb.jit(fn)(torch.tensor(x)), fn(torch.tensor(x)), number)
    np.testing.assert_array_equal(bb.jit(lambda x: x * 1.0 + number)(x), x * 1.0 + number)
    np.testing.assert_array_equal(bb.jit(lambda x: x < number)(x), x < number)
