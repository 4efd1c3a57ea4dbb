"""Small NumPy arrays: float64 throughout, and no shift of exponents that are in range."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.closing.wide_sums import wide_sums
from blockbuster.emit.closing.wide_tiles import wide_tiles
from blockbuster.emit.tile.array_dtypes import typed_for_cpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.interp.evaluate import evaluate
from tests.emit.cases import FOLDER
from tests.emit.numpy_runs import run_numpy
from tests.random_programs.strategies import block_graphs, inputs_for, sizes_and_blocks


def attention(q, k, v):
    return bb.softmax(q @ k.T / math.sqrt(8)) @ v


def exact(q, k, v):
    scores = q.astype(np.float64) @ k.astype(np.float64).T / math.sqrt(8)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v.astype(np.float64)


def text(function, **sizes):
    inputs = {"x": " ".join(sizes)}
    return bb.compile(bb.trace(function, **inputs), sizes, "float32", "cpu").source


ATTENTION = bb.jit(attention)
SOFTMAX = bb.jit(lambda x: bb.softmax(x))


@given(st.floats(-3, 20), st.integers(0, 2**32 - 1))
def test_attention_of_any_scale_is_rounded_once(power, seed):
    random = np.random.default_rng(seed)
    arrays = [(random.normal(size=(5, 8)) * 10**power).astype(np.float32) for _ in range(3)]
    wanted = exact(*arrays)

    assert ATTENTION(*arrays).dtype == np.float32
    np.testing.assert_allclose(ATTENTION(*arrays), wanted, rtol=1e-6, atol=1e-7 * 10**power)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e3, 99, -1e3, 0.0])
def test_rows_beside_one_that_is_out_of_range_stay_right(value):
    x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    usual = SOFTMAX(x)
    x[1, 2] = value
    found = SOFTMAX(x)

    np.testing.assert_array_max_ulp(found[[0, 2, 3]], usual[[0, 2, 3]], 1)
    if value != np.inf:  # beside which all else counts 0
        weights = np.exp(x[1] - x[1].max(), dtype=np.float64)
        np.testing.assert_allclose(found[1], weights / weights.sum(), rtol=1e-6, atol=1e-44)
    x[1] = -np.inf
    np.testing.assert_array_equal(SOFTMAX(x)[1], np.zeros(6))


def test_the_shift_is_left_out_of_small_programs_alone():
    small, large = (text(lambda x: bb.softmax(x), M=m, N=n) for m, n in ((8, 8), (4096, 1024)))
    begin = small.index("def run(")

    assert "np.maximum.reduce" in small[:begin]
    assert "np.maximum.reduce" not in small[begin:]
    assert "def safe(" not in large


@pytest.mark.parametrize(
    "function",
    [
        lambda x: bb.exp(x),  # nothing is shifted
        lambda x: bb.softmax(bb.where(x > 0, x, -1e9)),  # a mask is never in range
        lambda x: bb.sum(bb.exp(x) * x) / bb.sum(bb.exp(x) * x * x),  # a sum that may be 0
        lambda x: bb.square(bb.square(bb.square(bb.softmax(x)))),  # powers of exp
    ],
)
def test_other_programs_are_as_safe_as_they_were(function):
    assert "return safe(" not in text(function, M=8, N=8)


@pytest.mark.parametrize(
    ("function", "wide"),
    [
        (lambda x: bb.softmax(x), True),
        (lambda x: bb.exp(bb.log(bb.exp(x))), True),
        (lambda x: x * 2 + 1, False),  # nothing to convert
        (lambda x: bb.floor(bb.exp(x) + bb.log(x)), False),  # of a rounded number, another floor
        (lambda x: bb.where(bb.exp(x) > bb.log(x), 1.0, 0.0), False),
        (lambda x: bb.exp(bb.where(bb.sum(x, axis=-1, keepdims=True) > 1, x, bb.exp(x))), False),
        (lambda x: bb.where(x > 0.5, bb.exp(x), bb.log(x)), True),  # x is the same in both
        (lambda x: bb.where(x > 0.1, bb.exp(x), bb.log(x)), False),  # 0.1 is not
    ],
)
def test_programs_are_computed_in_float64_where_no_result_jumps(function, wide):
    assert (".astype(np.float64)" in text(function, M=8, N=8)) is wide


@given(data=st.data())
def test_wide_programs_give_the_same_whole_numbers(data):
    graph = data.draw(block_graphs(), label="program")
    setting = data.draw(sizes_and_blocks(graph), label="sizes")
    inputs = data.draw(inputs_for(graph, setting), label="inputs")
    sizes, blocks = setting.sizes, setting.block_sizes
    program = wide_tiles(wide_sums(typed_for_cpu(lower_to_tiles(graph), "float32")))
    results = run_numpy(program, inputs, sizes, blocks, dtype=np.float32, folder=FOLDER)

    for name, array in evaluate(graph, inputs, sizes=sizes, block_sizes=blocks).items():
        np.testing.assert_array_equal(results[name], array.astype(np.float32), err_msg=name)


def test_arrays_of_float64_and_large_ones_are_converted_nowhere():
    double = bb.compile(bb.trace(SOFTMAX._fn, x="M N"), {"M": 8, "N": 8}, "float64", "cpu")

    assert ".astype(np.float64)" not in double.source
    assert "def safe(" not in double.source
    assert ".astype(np.float64)" not in text(lambda x: bb.softmax(x), M=4096, N=64)
