"""Schedules of products: tiles of split ones, sums before a loop."""

from functools import cache

import pytest

import blockbuster as bb

PRODUCT = dict(x="M K", w="K N")


@cache
def product():
    return bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, **PRODUCT))).final


@pytest.mark.parametrize(
    ("sizes", "tall"),
    [(dict(M=1024, K=1024, N=1024), True), (dict(M=256, K=1024, N=256), False)],
)
def test_split_products_have_tall_tiles_where_these_are_enough(sizes, tall):
    text = bb.emit(product(), sizes, "float32").schedule
    assert "split-float" in text
    assert ("block M 128, K 32, N 32\n" in text) == tall


def gated(x, w, v, u):
    n = bb.rms_norm(x)
    return (bb.silu(n @ w) * (n @ v)) @ u


@cache
def network():
    graph = bb.fuse(bb.lower(bb.trace(gated, x="M D", w="D K", v="D K", u="K D"))).snapshots[0]
    return bb.emit(graph, dict(M=128, D=256, K=512), "float16", chunks={}).derivation.final


def test_what_is_summed_before_the_loop_is_not_made_in_every_program():
    assert "sink" not in network().schedule
