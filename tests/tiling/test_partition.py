"""Memory-bound chains of array programs, and what the source says about its criterion."""

from dataclasses import replace

import pytest

import blockbuster as bb
from blockbuster import examples
from blockbuster.machines import Tier
from blockbuster.tiling import gemm_chain, self_attention
from blockbuster.tiling.partition import TILE, chains, intensity
from tests.tiling.chains import SMALL

BALANCED_AT_200 = replace(SMALL, tiers=(Tier("hbm", 1 << 30, 5e9, 1e-6), *SMALL.tiers[1:]))


def found(fn, sizes, **inputs):
    heard = []
    program = bb.trace(fn, **inputs)
    return chains(program, sizes, BALANCED_AT_200, note=heard.append), heard


def test_the_ratio_of_section_2a():
    assert intensity(TILE, TILE, 1024) == pytest.approx(204.8)
    once = 2 * TILE * TILE * 1024 / (TILE * TILE + 2 * TILE * 1024)
    assert once == pytest.approx(227.6, abs=0.1)  # "227" in section I counts the result once
    assert pytest.approx(2, abs=0.02) == 2 * TILE * TILE / (TILE * TILE + 2 * TILE)


@pytest.mark.parametrize("example", examples.GEMM_CHAINS, ids=lambda e: e.name)
def test_gemm_chains(example):
    (chain,) = chains(example.program(), example.sizes, SMALL)  # balanced at 1000
    sizes = example.sizes
    expected = gemm_chain(sizes["M"], sizes["N"], sizes["K"], sizes["H"], batch=sizes["B"])
    assert chain == expected
    assert chain.sizes == expected.sizes


@pytest.mark.parametrize("example", examples.SELF_ATTENTIONS, ids=lambda e: e.name)
def test_attention_modules(example):
    (chain,) = chains(example.program(), example.sizes, SMALL)
    sizes = example.sizes
    expected = self_attention(sizes["M"], sizes["N"], sizes["K"], sizes["H"], batch=sizes["B"])
    assert chain.operators[1].first == "mul, softmax"
    assert chain.loops == expected.loops
    assert (chain.sizes, chain.batch) == (expected.sizes, expected.batch)


def test_a_product_with_a_long_sum_is_compute_bound():
    g6 = examples.GEMM_CHAINS[5]
    heard = []
    assert chains(g6.program(), g6.sizes, BALANCED_AT_200, note=heard.append) == ()
    assert heard == [
        "product 0 (M x K x N): 204.8 operations an element, and small is balanced at 200.0",
        "product 1 (M x N x H): no memory-bound neighbour",
    ]


def mlp(x, w, b, u, z):
    return (bb.silu(x @ w + b) @ u) @ z


def test_three_products_with_operators_between():
    inputs = dict(x="M D", w="D F", b="F", u="F E", z="E K")
    (chain,), heard = found(mlp, dict(M=512, D=64, F=128, E=32, K=48), **inputs)

    assert [str(op.result) for op in chain.operators] == ["C[m, f]", "E[m, e]", "G[m, k]"]
    assert [op.first for op in chain.operators] == ["", "add, silu", ""]
    assert chain.dims == {"m": "M", "f": "F", "d": "D", "e": "E", "k": "K"}
    assert heard == []


def two(x, w, v, u):
    y, z = x @ w, x @ v
    return (y @ u) + (bb.relu(z) @ u)


def test_two_chains_side_by_side():
    both, _ = found(two, dict(M=64, K=64, N=64, H=64), x="M K", w="K N", v="K N", u="N H")
    assert [chain.operators[1].first for chain in both] == ["", "relu"]


def shared(x, w, u):
    y = x @ w
    return y @ u + bb.sum(y)


def second_operand(x, w, u):
    return u @ (x @ w)


def summed(x, w, u):
    return bb.sum(x @ w, axis=0)[None] @ u


def gated(x, w, v, u):
    return ((x @ w) * (x @ v)) @ u


@pytest.mark.parametrize(
    ("fn", "inputs"),
    [
        (shared, dict(x="M K", w="K N", u="N H")),
        (second_operand, dict(x="M K", w="K N", u="H M")),
        (summed, dict(x="M K", w="K N", u="N H")),
        (gated, dict(x="M K", w="K N", v="K N", u="N H")),
    ],
)
def test_products_that_are_no_chain(fn, inputs):
    sizes = dict(M=64, K=64, N=64, H=64)
    assert found(fn, sizes, **inputs)[0] == ()


def test_a_residual_uses_a_dim_twice():
    def block(x, w, u):
        return x + bb.relu(x @ w) @ u

    (chain,), _ = found(block, dict(M=64, D=64, F=64), x="M D", w="D F", u="F D")
    assert chain.loops == ("m", "f", "d", "a")
    assert chain.dims == {"m": "M", "f": "F"}


def test_sizes_that_are_missing():
    with pytest.raises(ValueError, match="dim K needs a size of at least 1"):
        found(mlp, dict(M=1, D=1, F=1, E=1), x="M D", w="D F", b="F", u="F E", z="E K")
