"""Differences of doubles that are none of real numbers, and answers that end."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from blockbuster.frontend import abs, arange, exp, log, relu, sigmoid, softmax, sum, where
from blockbuster.interp import cases
from blockbuster.interp.decimals import Decimals, in_decimals
from blockbuster.interp.equal import prove_equal
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.setting import Setting
from blockbuster.interp.terms import TooLarge
from blockbuster.interp.work import Work
from blockbuster.ir.parse import parse
from blockbuster.rules import safe
from tests.interp.corners import program

BIG = 5000.0  # exp of it overflows, and exp of its negative underflows


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x, y: exp(x * BIG) / exp(x * BIG) + y, lambda x, y: 1 + y + 0 * x),
        (lambda x, y: exp(x * BIG) * exp(-x * BIG) + y, lambda x, y: 1 + y + 0 * x),
        (lambda x, y: log(exp(x * BIG)) + y, lambda x, y: x * BIG + y),
        (
            lambda x, y: where(y > BIG, x, sigmoid(y)),
            lambda x, y: where(y > BIG, x, 1 / (1 + exp(-y))),
        ),
        (
            lambda x, y: softmax(where(x > BIG, x, -BIG)) @ y.T,
            lambda x, y: exp(where(x > BIG, x, -BIG)) @ y.T
            / sum(exp(where(x > BIG, x, -BIG)), axis=-1, keepdims=True),
        ),
    ],
)  # fmt: skip
def test_what_overflows_is_no_difference(one, other):
    assert prove_equal(program(one), program(other)).equal is not False


@pytest.mark.parametrize("start", [0, 700.0, 1e6, -1e6])
def test_a_shifted_softmax_is_one(start):
    def unsafe(x, y):
        weights = exp(x + start)
        return weights / sum(weights, axis=-1, keepdims=True) + y

    assert prove_equal(program(unsafe), program(lambda x, y: softmax(x) + y)).equal is True


def test_differences_beside_large_numbers_are_found():
    one = program(lambda x, y: softmax(where(x > BIG, x, y)) + y)
    other = program(lambda x, y: softmax(where(x > BIG, x + 1, y)) + 2 * y)

    found = prove_equal(one, other).counterexample

    left, right = (
        evaluate(g, found.inputs, sizes=found.sizes, block_sizes=found.block_sizes)["out"]
        for g in (one, other)
    )
    assert not np.allclose(left, right, rtol=1e-9, atol=0, equal_nan=True)


@pytest.mark.parametrize("width", [4096, 10_000, 2**20])
def test_safe_attention_of_any_window(width):
    def attention(x, y):
        i, j = arange(x.shape[0])[:, None], arange(x.shape[0])
        return softmax(where((i >= j) & (i - j < width), x @ y.T, -np.inf)) @ x

    graph = program(attention)

    proof = prove_equal(graph, safe(graph))
    assert proof.equal is not False, proof
    assert width > 4096 or (proof.equal, proof.tier) == (True, "B")


def decimals(function, x, y):
    """The output of a function of two matrices in decimal numbers, or None."""
    graph = program(function)
    sizes = {"M": len(x), "N": len(x[0])}
    inputs = {"x": np.array(x), "y": np.array(y)}
    made = in_decimals([graph], Setting(sizes, sizes), inputs)
    return made and made[0]["out"].astype(float)


def test_decimals_agree_with_doubles():
    x, y = [[0.5, -1.25], [3.0, 0.0]], [[2.0, 0.25], [-0.5, 1.0]]

    def everything(x, y):
        return (
            np.tanh(x) + sigmoid(y) * np.sqrt(abs(x)) - relu(x - y) ** 3
            + np.exp(x) @ np.exp(y).T @ x
            + where((x > y) | ~(x <= 1), np.log(abs(y)), x / (1 + y * y)).astype("float16")
            + softmax(where(arange(x.shape[1]) < 1, x, -np.inf))
        )  # fmt: skip

    graph, sizes = program(everything), {"M": 2, "N": 2}
    inputs = {"x": np.array(x), "y": np.array(y)}
    wanted = evaluate(graph, inputs, sizes=sizes, block_sizes=sizes)["out"]
    np.testing.assert_allclose(decimals(everything, x, y), wanted, rtol=1e-12)


def test_comparisons_that_rounding_may_decide_are_refused():
    def root(x, y):
        return where(np.sqrt(x) * np.sqrt(x) == x, y, 0.0)

    assert decimals(root, [[4.0]], [[7.0]]) == 7
    assert decimals(root, [[7.0]], [[7.0]]) is None
    assert decimals(lambda x, y: exp(exp(x)) + y, [[1000.0]], [[7.0]]) is None


def test_what_takes_too_much_work_ends(monkeypatch):
    monkeypatch.setattr(cases, "MOST_WORK", 2e4)

    def network(activation):
        def forward(x, y):
            h = x
            for _ in range(4):
                h = activation(h @ y.T) @ y
            return h + x

        return program(forward)

    proof = prove_equal(network(relu), network(lambda z: (z + abs(z)) / 2))

    assert proof.equal is None
    assert "take too much work" in proof.reason


def test_work_is_counted():
    work = Work(3)
    work.spend(3)

    with pytest.raises(TooLarge, match="too much work"):
        work.spend(1)


def test_items_of_one_number_stay_arrays():
    """Items without axes: in arrays of objects they would be plain objects."""
    x = np.arange(6.0).reshape(2, 3)
    graph = parse(
        """
        graph(X: M,N[] = X(M,N)) {
          Y = map M (row in !X) {
            y = map N (x in !row) {
              z = x * 2 + 1
              yield z
            }
            yield y
          }
          return Y
        }
        """
    )
    (made,) = evaluate(graph, {"X": x}, semantics=Decimals()).values()
    assert made.tolist() == (2 * x + 1).tolist()
    assert {type(y) for y in made.ravel()} == {Decimal}
