"""Loops in Python over pieces of arrays: one operation, and when they stay as they are written."""

import numpy as np
import pytest

import blockbuster as bb

SIZES = {"B": 3, "H": 4, "S": 5, "D": 2, "M": 6, "N": 8, "K": 4}


def heads(q, k, v):
    scores = (bb.softmax(q[:, i] @ bb.swapaxes(k[:, i], 1, 2) * 0.5, axis=-1) for i in range(4))
    return bb.stack([s @ v[:, i] for i, s in enumerate(scores)], axis=1)


def first_heads(q, k, v):
    k = bb.swapaxes(k, 2, 3)
    return bb.concat([q[:, i : i + 1] @ k[:, i : i + 1] for i in (1, 2)], axis=1)


def groups(x, w):
    pieces = [x[:, 2 * i : 2 * i + 2] @ w[2 * i : 2 * i + 2] for i in range(4)]
    return bb.concat([bb.relu(p) + 1.0 for p in pieces], axis=1)


def in_turn(x, w):
    return bb.concat([x[:, i::2] @ w[i::2] for i in range(2)], axis=0)


def shared(x, w):
    return bb.concat([x @ w[:, :2], x @ w[:, 2:]], axis=1)


def reshaped(x, w):
    return bb.stack([(x[:, :4] @ w[:4]).reshape(3, 8), (x[:, 4:] @ w[4:]).reshape(3, 8)], axis=-1)


def reduced(x, w):
    parts = [x[:, :4] @ w[:4], x[:, 4:] @ w[4:]]
    return bb.stack([bb.sum(p - bb.max(p, axis=-1, keepdims=True), axis=0) for p in parts], axis=0)


HEADS = {"q": "B H=4 S D", "k": "B H=4 S D", "v": "B H=4 S D"}
ROWS = {"x": "M=6 N=8", "w": "N=8 K=4"}
LOOPS = [
    (heads, HEADS, 2), (first_heads, HEADS, 1), (groups, ROWS, 1), (in_turn, ROWS, 1),
    (shared, ROWS, 1), (reshaped, ROWS, 1), (reduced, ROWS, 1),
]  # fmt: skip


def ops(program):
    return [one.op for one in program.equations]


def drawn(inputs):
    rng = np.random.default_rng(0)
    named = {
        name: [axis.partition("=")[0] for axis in text.split()] for name, text in inputs.items()
    }
    return {name: rng.standard_normal([SIZES[a] for a in axes]) for name, axes in named.items()}


@pytest.mark.parametrize(("function", "inputs", "products"), LOOPS)
def test_a_loop_of_products_is_one_product(function, inputs, products):
    program, arrays = bb.trace(function, **inputs), drawn(inputs)

    assert ops(program).count("matmul") == products
    assert "concat" not in ops(program)
    np.testing.assert_allclose(
        program.numpy(arrays)["out"], function(**arrays), rtol=1e-12, atol=1e-12
    )


def of_unlike_weights(x, w):
    return bb.concat([bb.relu(x[:, :4] @ w[:4]), bb.tanh(x[:, 4:] @ w[4:])], axis=1)


def of_unlike_lengths(x, w):
    return bb.concat([x[:, :2] @ w[:2], x[:, 2:] @ w[2:]], axis=1)


def of_overlapping_pieces(x, w):
    return bb.concat([x[:, :4] @ w[:4], x[:, 2:6] @ w[2:6]], axis=1)


def backwards(x, w):
    return bb.concat([x[:, 4:] @ w[4:], x[:, :4] @ w[:4]], axis=1)


def of_other_arrays(x, w):
    return bb.concat([x[:, :4] @ w[:4], (x + 1.0)[:, 4:] @ w[4:]], axis=1)


def each_after_the_other(x, w):
    first = bb.tanh(x[:, :4] @ w[:4])
    return bb.concat([first, bb.tanh(first @ w[4:])], axis=1)


def with_other_numbers(x, w):
    return bb.concat([x[:, :4] @ w[:4] * 2.0, x[:, 4:] @ w[4:] * 3.0], axis=1)


def some_of_the_strided_pieces(x, w):
    return bb.concat([x[:, i::4] @ w[i::4] for i in range(2)], axis=0)


def without_products(x, w):
    return bb.concat([bb.exp(x[:, :4]), bb.exp(x[:, 4:])], axis=1)


@pytest.mark.parametrize("function", [
    of_unlike_weights, of_unlike_lengths, of_overlapping_pieces, backwards, of_other_arrays,
    each_after_the_other, with_other_numbers, some_of_the_strided_pieces, without_products,
])  # fmt: skip
def test_joins_of_anything_else_stay(function):
    program, arrays = bb.trace(function, **ROWS), drawn(ROWS)

    assert "concat" in ops(program)
    np.testing.assert_allclose(program.numpy(arrays)["out"], function(**arrays), rtol=1e-12)


def test_a_piece_that_is_a_result_too_is_computed_by_itself_as_well():
    def fn(x, w):
        pieces = [x[:, :4] @ w[:4], x[:, 4:] @ w[4:]]
        return bb.concat(pieces, axis=1), pieces[1]

    program, arrays = bb.trace(fn, **ROWS), drawn(ROWS)
    assert ops(program).count("matmul") == 2
    for found, wanted in zip(program.numpy(arrays).values(), fn(**arrays), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


IN_TURN = {
    "rows": lambda x: bb.concat([x[i::2] for i in range(2)], axis=1),
    "columns": lambda x: bb.concat([bb.exp(x[:, i::2]) for i in range(2)], axis=0),
    "squares": lambda x: bb.concat([x[i::2, j::4] for j in range(4) for i in range(2)], axis=0),
    "squares by rows": lambda x: bb.concat([x[i::2, j::2] for i in (0, 1) for j in (0, 1)], axis=1),
}


@pytest.mark.parametrize("function", IN_TURN.values(), ids=IN_TURN)
def test_a_result_of_pieces_in_turn_is_one_view(function):
    x = drawn({"x": "N=8 K=4"})["x"]
    program = bb.trace(function, x="N=8 K=4")

    assert "concat" not in ops(program)
    np.testing.assert_array_equal(program.numpy({"x": x})["out"], function(x))


ANOTHER_ORDER = (0, 0), (1, 1), (0, 1), (1, 0)
OTHERS = {
    "in another order": lambda x: bb.concat([x[i::2, j::2] for i, j in ANOTHER_ORDER], axis=1),
    "two of four": lambda x: bb.concat([x[i::2, i::2] for i in range(2)], axis=1),
    "shifted": lambda x: bb.concat([x[1:-1][i::2] for i in range(2)], axis=1),
    "read again": lambda x: bb.concat([x[i::2] for i in range(2)], axis=1) - x[:1, :1],
}  # fmt: skip


@pytest.mark.parametrize("function", OTHERS.values(), ids=OTHERS)
def test_other_pieces_in_turn_stay(function):
    x = drawn({"x": "N=8 K=4"})["x"]
    program = bb.trace(function, x="N=8 K=4")

    assert "concat" in ops(program)
    np.testing.assert_array_equal(program.numpy({"x": x})["out"], function(x))
