"""Blocks of what follows a product: along the axes of the product."""

import numpy as np
import pytest
import torch.nn.functional as F

import blockbuster as bb


def heads(y):
    return y.reshape(y.shape[0], y.shape[1] // 4, 4)


def normed(x, w):
    y = heads(x @ w)
    return (y / (y * y).mean(-1, keepdims=True) ** 0.5).reshape(y.shape[0], -1)


def kept_heads(x, w):
    y = heads(x @ w)
    return y - y.max(-1, keepdims=True)


def across_heads(x, w):
    return heads(x @ w).sum(1)


def of_both(x, w):
    y = heads(x @ w)
    return y.max(-1), y.sum(-1) * 2


@pytest.mark.parametrize("fn", [normed, kept_heads, of_both])
def test_what_follows_a_product_joins_its_loops(fn):
    final = bb.fuse(bb.lower(bb.trace(fn, x="M K", w="K N"))).final
    assert len(final.nodes) == 1
    assert " over [A,B]" not in str(final)


@pytest.mark.parametrize("fn", [normed, kept_heads, of_both, across_heads])
def test_values_are_right(fn):
    program = bb.trace(fn, x="M K", w="K N")
    random = np.random.default_rng(0)
    inputs = {"x": random.standard_normal((5, 6)), "w": random.standard_normal((6, 12))}
    derivation = bb.fuse(bb.lower(program))
    made = bb.evaluate(derivation.final, inputs)
    for name, wanted in program.numpy(inputs).items():
        np.testing.assert_allclose(made[name], wanted, rtol=1e-9)


def test_group_norms_of_columns_join_their_product():
    program = bb.trace(lambda x, w: F.group_norm(x @ w, 3), x="M K", w="K 12")
    assert len(bb.fuse(bb.lower(program)).final.nodes) == 1
