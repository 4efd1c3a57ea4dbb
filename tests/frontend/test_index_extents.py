"""Index vectors over dims whose size follows from others, where nothing else says that size."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.rules import PAPER_RULES, RULES


def joined(x):
    return bb.arange(bb.concat([x, x]).shape[1]) * x[0, 0]


def joined_twice(x):
    n = bb.concat([x, x, x[1:]], axis=0).shape[0]
    return bb.where(bb.arange(n)[:, None] < bb.arange(n), 1.0, x[0, 0])


def heads(x):
    return bb.arange(bb.split_heads(x @ x.T, 2).shape[-1]) * x[0, 0]


def cut(x):
    n = bb.concat([x.T, x.T], axis=0)[1:].shape[0]
    return bb.where(bb.arange(n) > 2, bb.sum(x), 1.0)


def joined_and_sorted(x):
    n = bb.concat([np.sort(x, axis=0), x], axis=0).shape[0]
    return bb.arange(n) * 1.0 + bb.max(x)


PROGRAMS = (joined, joined_twice, heads, cut, joined_and_sorted)


@pytest.mark.parametrize("function", PROGRAMS)
def test_no_size_is_asked_for_that_follows(function):
    graph = bb.lower(bb.trace(function, x="M N"))
    x = np.random.default_rng(0).normal(size=(4, 6))
    forms = [graph, *(s for r in (PAPER_RULES, RULES) for s in bb.fuse(graph, r).snapshots)]

    for form in (*forms, *map(bb.safe, forms)):
        functions = {op.name: op.fn for op in form.mentions.miscs}
        assert bb.parse(str(form), functions) == form
        for blocks in ({}, {"M": 3, "N": 2}):
            np.testing.assert_allclose(
                bb.evaluate(form, {"x": x}, block_sizes=blocks)["out"], function(x), rtol=1e-12
            )
    np.testing.assert_allclose(bb.jit(function)(x), function(x), rtol=1e-12)


@pytest.mark.parametrize("function", PROGRAMS[:2])
def test_emit_needs_the_sizes_of_named_dims_only(function):
    kernel = bb.emit(bb.fuse(bb.lower(bb.trace(function, x="M N"))).final, {"M": 4, "N": 6})

    assert set(kernel.sizes.values()) == {4, 6, 12 if function is joined else 11}


def test_a_size_that_breaks_the_rule_is_refused():
    graph = bb.lower(bb.trace(joined, x="M N"))

    with pytest.raises(ValueError, match=r"dim A has size 11, but \|A\| is 2 \* \|N\|"):
        bb.evaluate(graph, {"x": np.ones((4, 6))}, sizes={"A": 11})


@pytest.mark.parametrize("function", PROGRAMS)
def test_one_element_of_an_array_beside_index_vectors_is_proved(function):
    graph = bb.lower(bb.trace(function, x="M N"))

    assert bb.prove_equal(graph, bb.fuse(graph).final).equal


def test_one_element_under_a_mask_is_proved():
    def masked(x):
        return bb.where(bb.arange(x.shape[0]) > 2, x[0, 0], 1.0)

    def other(x):
        return bb.where(bb.arange(x.shape[0]) > 3, x[0, 0], 1.0)

    one, two = (bb.lower(bb.trace(f, x="M N")) for f in (masked, other))

    assert bb.prove_equal(one, bb.fuse(one).final).equal
    assert bb.prove_equal(one, two).equal is False


@pytest.mark.parametrize("rest", [lambda s, z: bb.softmax(s) @ z, lambda s, z: bb.relu(s) @ z])
def test_every_snapshot_knows_the_sizes_that_follow(rest):
    """Of a join under a mask, of which later snapshots read the parts alone."""

    def joined(w, z):
        s = bb.concat([w, w], axis=0) @ z.swapaxes(-1, -2)
        causal = bb.arange(s.shape[0])[:, None] >= bb.arange(s.shape[1])
        return rest(bb.where(causal, s, 0.0), z)

    derivation = bb.fuse(bb.lower(bb.trace(joined, w="N D", z="K D")))

    assert len(derivation.snapshots) > 1
    for graph in derivation.snapshots:
        assert {*graph.size_rules} == {*derivation.start.size_rules}
