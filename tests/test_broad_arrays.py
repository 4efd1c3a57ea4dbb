"""Random array programs of every kind: all paths through the compiler compute what NumPy does."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from tests.broad import Broad, check
from tests.random_programs.broad_arrays import broad_example
from tests.random_programs.broad_operators import OPERATORS

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=settings().max_examples // 3)
@given(seed=SEEDS)
def test_every_path_computes_what_numpy_does(seed):
    check(broad_example(Random(seed), empty=seed % 8 == 0, opaque=seed % 4 == 0), Random(seed))


@settings(max_examples=settings().max_examples // 8)
@given(seed=SEEDS)
def test_every_path_of_longer_programs(seed):
    check(broad_example(Random(seed), most_steps=16, opaque=False), Random(seed))


def test_every_operator_occurs():
    examples = [broad_example(Random(seed)) for seed in range(700)]
    count = Counter(name for example in examples for name, _, _ in example.function.steps)
    rank = Counter(array.ndim for example in examples for array in example.arrays.values())

    assert all(count[name] for name in OPERATORS), count
    assert set(rank) == {1, 2, 3, 4}
    assert sum(len(example.function.outputs) > 1 for example in examples) > 50


def attends_to_itself(x):
    e = bb.softmax(bb.softmax(x))
    e = bb.where(bb.arange(x.shape[0])[:, None] >= bb.arange(x.shape[1]), e, 0.0)
    return e @ e.T


def rows_and_columns(v, c):
    return bb.softmax(bb.where((c > 0)[None, :], bb.softmax(v)[:, None], -1.0))


def heads_of_masked_rows(x):
    e = bb.softmax(bb.where(bb.arange(x.shape[-1]) >= 30, x, -np.inf))
    return bb.split_heads(bb.mean(e, axis=1, keepdims=True), 1)


def masked_joined_rows(w, z):
    s = bb.concat([w, w], axis=0) @ z.swapaxes(-1, -2)
    return bb.sum(bb.where(bb.arange(s.shape[0])[:, None] >= 1, s, -1.0), axis=0)


VALID = {
    "a mask at one position": (
        lambda x: bb.where(bb.arange(x.shape[-1]) >= 2, x, -1.0)[:, 0],
        {"x": "M N"},
    ),
    "no mask at one position": (
        lambda x: bb.where(~(bb.arange(x.shape[0]) >= 1)[1:2, None], x, -1.0) * 2,
        {"x": "M N"},
    ),
    "numbers at one position": (
        lambda x: (
            x * bb.where(bb.arange(x.shape[0]) >= 2, 5.0, -1.0)[0]
            + 1 / (bb.arange(x.shape[0])[2:3, None] - 1.5)
        ),
        {"x": "M N"},
    ),
    "a mask over one element": (
        lambda x: bb.where(bb.arange(x.shape[1]) >= 1, x, -1.0),
        {"x": "M 1"},
    ),
    "a mask that always holds": (lambda x: bb.where(True, x, -1.0), {"x": "M N"}),
    "a norm of one element": (
        lambda x: bb.layer_norm(bb.exp(bb.sum(x, -1, keepdims=True))),
        {"x": "M N"},
    ),
    "a mean of one row": (lambda x: bb.mean(bb.softmax(x), axis=0), {"x": "1 N"}),
    "softmax of softmax": (attends_to_itself, {"x": "M N"}),
    "softmax of rows and columns": (rows_and_columns, {"v": "M", "c": "N"}),
    "heads of masked rows": (heads_of_masked_rows, {"x": "N K N"}),
    "joined rows under a mask": (masked_joined_rows, {"w": "M K", "z": "N K"}),
    "joined matrices": (
        lambda x, y: bb.sum(bb.concat([y, y], axis=0) @ x, axis=0),
        {"x": "K M", "y": "B N K"},
    ),
    "joined matrices of four axes": (
        lambda x, y: bb.softmax(bb.concat([y, y], axis=1) @ x).sum(axis=(0, 1)),
        {"x": "K M", "y": "L B N K"},
    ),
    "joined matrices, sorted": (
        lambda y: np.sort(bb.concat([y, y], axis=0), axis=-1) @ y[0].T,
        {"y": "B N K"},
    ),
}


@pytest.mark.parametrize("name", VALID)
def test_valid_programs(name):
    function, dims = VALID[name]
    sizes = {"1": 1, "B": 2, "K": 4, "L": 3, "M": 3, "N": 5}
    numbers = np.random.default_rng(0)
    arrays = {
        key: numbers.uniform(-2, 2, [sizes[d] for d in text.split()]) for key, text in dims.items()
    }
    for seed in range(2):
        Broad(function, dims, arrays, Random(seed)).check()
