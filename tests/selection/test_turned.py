"""Transposes of what a product reads element by element are units: they may be arrays."""

import pytest

import blockbuster as bb
from blockbuster.selection.parts.operand_views import turned_for_products
from blockbuster.selection.parts.units import units_of


def conv(x, w):
    return bb.einsum("nc(h+r)(v+s), kcrs -> nkhv", x, w)


def heads(q, k):
    return q.transpose(0, 2, 1, 3) @ k.transpose(0, 2, 3, 1)




def rows(x, w):
    return x @ w.T


def scaled(x, w):
    return x.transpose(2, 0, 1) * w


CASES = [
    (conv, dict(x="N C H V", w="K C R S"), 1),
    (heads, dict(q="B S H D", k="B T H D"), 0),
    (rows, dict(x="M K", w="N K"), 0),
    (scaled, dict(x="M K N", w="N M K"), 0),
]


@pytest.mark.parametrize(("function", "dims", "count"), CASES)
def test_what_is_turned_element_by_element(function, dims, count):
    program = bb.trace(function, **dims)
    turned = turned_for_products(program)

    assert len(turned) == count
    units = units_of(program, dict.fromkeys(program.dims, 64))
    assert all(at in units.of for at in turned)


def test_the_filters_of_a_convolution_are_turned_once():
    """They have the taps last: a product would read each channel for itself."""
    program = bb.trace(conv, x="N C H V", w="K C R S")
    sizes = dict(N=8, C=64, H=32, V=32, K=64, R=3, S=3)
    sizes |= {dim: 30 for dim in program.dims if dim not in sizes}
    plan = bb.select(program, sizes, "h100", "float16")

    first, second = plan.explain().split("  2. ")
    assert "transpose" in first
    assert "reads w" in first
    assert "matmul" in second
    assert "float16" in second.partition("stores")[2]

