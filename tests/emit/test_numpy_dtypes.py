"""NumPy text computes each tile in the tile's own dtype, whatever the dtypes of its operands."""

import contextlib
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.print.numpy.text import Text
from blockbuster.emit.tile.dataflow import defined, folded
from blockbuster.errors import TraceError
from blockbuster.ir.dtypes import INTEGERS
from tests.random_programs.broad_arrays import broad_example

DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float32", "float64")


def held_as(text, tile):
    """The dtype of a tile's array, as text: positions are integers beside others."""
    if tile.dtype in (*INTEGERS, "float64"):
        return f"np.{tile.dtype}"
    return "np.int64" if tile.dtype == "int" and text._integers else "dtype"


def checked(text, stmt, scope, plain=Text.written):
    """The lines of a statement, then a comparison of what they made with the tile's dtype."""
    lines, made = plain(text, stmt, scope), defined(stmt)
    for tile in [made] if made else folded(stmt):
        right = f"{tile.name}.dtype == {held_as(text, tile)}, {lines[0]!r}"
        lines = [*lines, f"assert type({tile.name}) is int or {right}"]
    return lines


def in_dtype(array, dtype):
    """An example's array in a dtype, with some elements of each sign where there are signs."""
    if dtype == "bool":
        return array > 0
    wide = np.abs(array) if dtype == "uint8" else array
    return (wide * 2 if np.dtype(dtype).kind in "iu" else wide).astype(dtype)


@given(seed=st.integers(0, 2**32))
def test_every_tile_has_its_dtype(seed):
    random = Random(seed)
    example = broad_example(random, empty=random.random() < 0.3)
    arrays = {name: in_dtype(a, random.choice(DTYPES)) for name, a in example.arrays.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "written", checked)
        with contextlib.suppress(TraceError):  # NumPy neither negates nor subtracts masks
            bb.jit(example.function)(**arrays)


OF_INTEGERS_ALONE = [
    lambda x: np.exp(x.astype("int64")) * x,
    lambda x: np.tanh(x.astype("int32")) + x,
    lambda x: bb.sigmoid(x.astype("int8")) * bb.silu(x.astype("int8")) * bb.gelu(x.astype("int8")),
    lambda x: bb.erf(x.astype("int64")) * x,
    lambda x: (bb.abs(x).astype("int64") + 2) ** 0.5 * x,
    lambda x: 2.5 ** x.astype("int64"),
    lambda x: bb.softmax(x.astype("int64") * 2),
    lambda x: np.mean(x.astype("int64"), -1),
    lambda x: (x.astype("int64") - np.mean(x.astype("int64"))) * 0.5,
    lambda x: np.sqrt(x.astype("int64") * x.astype("int64") + 2) / x,
]
BESIDE_FLOATS = [
    lambda x: bb.log(bb.arange(x.shape[-1]) // 2 + 1) * x,
    lambda x: np.argmin(x, -1) @ x[:, 0],
    lambda x: bb.logsumexp(x.astype("int64") + 0 * x),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [*OF_INTEGERS_ALONE, *BESIDE_FLOATS])
def test_computed_integers_are_not_what_their_functions_give(function, dtype):
    x = np.array([[1.5, 2.25, -3.5], [3.0, 1.0, 2.5]], dtype)
    exact = bb.trace(function, x="M N=3").numpy({"x": x})["out"]

    found = bb.jit(function)(x)

    assert found.dtype == (dtype if function in BESIDE_FLOATS else "float64")
    np.testing.assert_allclose(found, exact, rtol=1e-6)
