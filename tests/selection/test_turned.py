"""Transposes of what a product reads element by element are units: they may be arrays."""

import re

import pytest

import blockbuster as bb
from blockbuster.selection.parts.units import turned_for_products, units_of


def conv(x, w):
    return bb.einsum("nc(h+r)(v+s), kcrs -> nkhv", x, w)


def heads(q, k):
    return q.transpose(0, 2, 1, 3) @ k.transpose(0, 2, 3, 1)


def turned_filters(x, w):
    return bb.einsum("n(h+r)(v+s)c, kcrs -> nkhv", x, w)


def channels_last(x, w):
    return bb.einsum("n(h+r)(v+s)c, rsck -> nkhv", x, w)


def rows(x, w):
    return x @ w.T


def scaled(x, w):
    return x.transpose(2, 0, 1) * w


CASES = [
    (conv, dict(x="N C H V", w="K C R S"), 2),
    (channels_last, dict(x="N H V C", w="R S C K"), 0),
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
    first, second = parts_of(turned_filters, dict(N=8, C=64, H=32, V=32, K=64, R=3, S=3), 30)

    assert "transpose" in first
    assert "reads w" in first
    assert "matmul" in second
    assert "float16" in second.partition("stores")[2]


def test_large_images_are_turned_too():
    """Windows along their last axis begin at odd elements, where no wide load can."""
    sizes = dict(N=32, C=128, H=58, V=58, K=128, R=3, S=3)
    images, filters, product = parts_of(conv, sizes, 56)

    assert "reads x" in images
    assert "reads w" in filters
    assert "matmul" in product


def parts_of(function, sizes, places):
    """What each part of a plan does, in words."""
    axes = "N H V C" if function is turned_filters else "N C H V"
    program = bb.trace(function, x=axes, w="K C R S")
    sizes = dict.fromkeys(program.dims, places) | sizes
    text = bb.select(program, sizes, "h100", "float16").explain()
    return re.split(r"\n  \d\. ", text)[1:]


def test_the_sum_over_taps_is_part_of_the_product():
    """Stored apart, products for each tap would be nine times the result."""
    program = bb.trace(channels_last, x="N H V C", w="R S C K")
    units = units_of(program, dict.fromkeys(program.dims, 8))
    ops = [[program.equations[at].op for at in unit.equations] for unit in units.units]

    assert ops == [["matmul", "sum", "sum"]]


def test_a_sum_over_rows_is_not():
    program = bb.trace(lambda x, w: bb.sum(x @ w, axis=-2), x="B M K", w="K N")
    units = units_of(program, dict.fromkeys(program.dims, 8))

    assert len(units) == 2


def test_axes_of_one_element_are_not_turned():
    """Filters of one tap are matrices."""

    def pointwise(x, w):
        return x.transpose(0, 2, 1) @ w[:, :, 0].T

    program = bb.trace(pointwise, x="N C H", w="K C 1")

    assert turned_for_products(program) == set()
