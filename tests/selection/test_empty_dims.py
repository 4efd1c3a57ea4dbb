"""Kernels are chosen for arrays without elements, too."""

import pytest

import blockbuster as bb
from blockbuster import examples
from blockbuster.selection.choice import Fused


def stable(x):
    return bb.softmax(x, axis=-1)


def causal(q, k, v):
    seen = bb.arange(q.shape[0])[:, None] >= bb.arange(k.shape[0])
    return bb.softmax(bb.where(seen, q @ k.T, float("-inf")), axis=-1) @ v


def windowed(q, k, v):
    row, column = bb.arange(q.shape[0])[:, None], bb.arange(k.shape[0])
    seen = (row >= column) & (row - column < 256)
    return bb.softmax(bb.where(seen, q @ k.T, float("-inf")), axis=-1) @ v


ATTENTION = dict(q="M D", k="N D", v="N D")
PROGRAMS = (
    (examples.attention, ATTENTION, dict(M=128, N=96, D=64)),
    (causal, ATTENTION, dict(M=2048, N=2048, D=64)),
    (windowed, ATTENTION, dict(M=2048, N=2048, D=64)),
    (examples.layernorm_matmul, dict(x="M K", y="K N"), dict(M=96, K=128, N=64)),
    (stable, dict(x="M N"), dict(M=64, N=128)),
    (lambda x, y: x @ y, dict(x="M K", y="K N"), dict(M=4096, K=4096, N=4096)),
    (lambda x: bb.sum(x, axis=0), dict(x="M N"), dict(M=512, N=4096)),
)
CASES = [(*program, dim) for program in PROGRAMS for dim in program[2]]


@pytest.mark.parametrize(("fn", "inputs", "sizes", "empty"), CASES)
def test_a_dim_without_elements_is_chosen_for(fn, inputs, sizes, empty):
    fused = Fused(bb.lower(bb.trace(fn, **inputs)))

    found = fused.consider({**sizes, empty: 0}, "float16", "sm_90")

    scheduled = found.best.scheduled
    assert scheduled is not None
    assert scheduled.known[empty] == 0, "kernels are made for the sizes that were asked for"
    assert not any(nest.group for nest in scheduled.program.nests), "there is no order of programs"
