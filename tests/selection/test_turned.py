"""Views that products read: which are units, and which belong to the kernel that makes them."""

import re

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.runtime.given import family_of
from blockbuster.selection.parts.operand_views import (
    copied_for_products,
    joined_for_products,
    turned_for_products,
    with_shared_copies,
)
from blockbuster.selection.parts.units import units_of
from tests.selection.given_parts import plan_of_parts


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


def two_filters(x, w, u):
    return conv(x, w) + conv(x, u)


def test_one_copy_of_an_image_serves_all_filters():
    program = bb.trace(two_filters, x="N C H V", w="K C R S", u="K C R S")
    shared = with_shared_copies(program)

    assert len(turned_for_products(program)) == 4
    assert len(turned_for_products(shared)) == 3
    arrays = {name: np.random.default_rng(0).standard_normal(shape) for name, shape in (
        ("x", (2, 3, 5, 6)), ("w", (4, 3, 3, 2)), ("u", (4, 3, 3, 2)),
    )}  # fmt: skip
    for one, other in zip(
        program.numpy(arrays).values(), shared.numpy(arrays).values(), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("function", "dims"), [
    (lambda x, w, y: conv(x, w) + conv(y, w.transpose(0, 1, 3, 2)), dict(y="N C H V")),
    (lambda x, w, u: conv(x, w) + conv(x.transpose(0, 1, 3, 2), u), dict(u="K C R S")),
])  # fmt: skip
def test_other_arrays_and_other_orders_have_copies_of_their_own(function, dims):
    program = bb.trace(function, x="N C H H", w="K C R R", **{
        name: text.replace("V", "H").replace("S", "R") for name, text in dims.items()
    })  # fmt: skip
    assert with_shared_copies(program) is program


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


def joined(x):
    """(B, H, S, D) as (B, S, H D)."""
    b, _, s, _ = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, s, -1)


def of_heads(p, v, w):
    return joined(p @ v) @ w


def of_an_input(v, w):
    return joined(v) @ w


def of_heads_read_twice(p, v, w):
    y = p @ v
    return joined(y) @ w, y


def of_patches(x, w):
    n, c, height, width = x.shape
    cut = x.reshape(n, c, height // 16, 16, width // 16, 16).transpose(0, 2, 4, 1, 3, 5)
    return cut.reshape(n, -1, c * 256) @ w


def of_shuffled(x, w):
    """A filter for each of some channels in another order: it is multiplied with windows."""
    n, c, length = x.shape
    y = bb.relu(x).reshape(n, 2, c // 2, length).transpose(0, 2, 1, 3)
    return bb.einsum("nc(h+r), cr -> nch", y.reshape(n, c, length), w)


HEADS = dict(p="B=2 H=8 S=64 T=64", v="B=2 H=8 T=64 D=64", w="E=512 F=512")
ONE = dict(v=HEADS["v"], w=HEADS["w"])
SHUFFLED = dict(x="N=16 C=64 L=1024", w="C=64 R=3")
PATCHES = dict(x="N=64 C=3 H=224 W=224", w="K=768 E=768")


@pytest.mark.parametrize(
    ("function", "dims", "in_the_maker", "copied"),
    [(of_heads, HEADS, 2, 0), (of_an_input, ONE, 0, 0), (of_heads_read_twice, HEADS, 0, 0),
     (of_patches, PATCHES, 0, 1), (of_shuffled, SHUFFLED, 3, 0)],
)  # fmt: skip
def test_what_is_joined_for_a_product(function, dims, in_the_maker, copied):
    program = bb.trace(function, **dims)
    sizes = bb.select(program, {}, "h100", "float16").sizes

    views, units = joined_for_products(program, sizes), units_of(program, sizes)
    assert len(views) == in_the_maker
    assert len(copied_for_products(program, sizes)) == copied
    assert len({units.of[at] for at in views}) == min(in_the_maker, 1)
    assert len(units) == 1 + copied + (function is not of_an_input and function is not of_patches)


def test_heads_are_stored_as_the_product_behind_them_reads_them():
    """Otherwise it would sum over the elements of each head by itself."""
    program = bb.trace(of_heads, **HEADS)
    sizes = bb.select(program, {}, "h100", "float16").sizes
    plan = plan_of_parts(family_of(program, "float16", "h100"), sizes, lambda units: (1, 2))

    (stored,) = plan.steps[0].axes
    assert [sizes[axis] for axis in stored] == [2, 64, 512]


def test_patches_of_an_image_may_be_copied_once():
    program = bb.trace(of_patches, **PATCHES)
    sizes = bb.select(program, {}, "h100", "float16").sizes
    plan = plan_of_parts(family_of(program, "float16", "h100"), sizes, lambda units: (1, 2))

    assert plan.kernels == 2
    (stored,) = plan.steps[0].axes
    assert [sizes[axis] for axis in stored] == [64, 196, 768]


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
    text = bb.select(program, sizes, "h100", "float16", library=False).explain()
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
