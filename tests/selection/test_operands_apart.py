"""Programs that store operands of dots: which there are, that they mean the same, their names."""

import pytest

import blockbuster as bb
from blockbuster.selection.candidates.operands_apart import operands_apart
from blockbuster.selection.priors import PRIORS


def normed(x, w):
    return bb.layer_norm(x) @ w


def gated(x, w, v):
    y = bb.layer_norm(x)
    return bb.silu(y @ w) * (y @ v)


def attention(q, k, v):
    return bb.softmax(q @ k.T, axis=-1) @ v


def matmul(x, w):
    return x @ w


def fused(fn, **inputs):
    return bb.fuse(bb.lower(bb.trace(fn, **inputs)))


@pytest.mark.parametrize("fn", [normed, gated])
def test_a_normalized_row_is_stored_for_plain_dots(fn):
    inputs = {"x": "M K", "w": "K N"} | ({"v": "K N"} if fn is gated else {})
    derivation = fused(fn, **inputs)
    found = operands_apart(derivation)

    assert 1 <= len(found) <= PRIORS.operands_apart_forms
    for one in found:
        number, words = one.name.removeprefix("snapshot ").split(" ", 1)
        assert words == "with operands of dots stored"
        assert bb.prove_equal(bb.safe(derivation.snapshots[int(number) - 1]), one.graph).equal
        assert one.derivation.replay() == one.graph
    stored = [str(edge.type) for edge in bb.explain(found[0].graph)]
    assert any("M" in type and "K" in type for type in stored), stored


@pytest.mark.parametrize(
    ("fn", "inputs"),
    [
        (matmul, {"x": "M K", "w": "K N"}),  # an operand that is loaded is stored already
        (attention, {"q": "M D", "k": "N D", "v": "N L"}),  # each score is computed once
    ],
)
def test_what_is_computed_once_is_not_stored(fn, inputs):
    assert operands_apart(fused(fn, **inputs)) == ()
