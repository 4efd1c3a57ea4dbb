"""Estimates of parts: what one kernel computes again, by how many programs, and what adds up."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import blockbuster as bb
from bench.outside.spellings import drawn, planned
from blockbuster.ir.graph import Value
from blockbuster.machines import machine
from blockbuster.selection.parts.bounds import Bounds
from blockbuster.selection.parts.estimates import Estimates
from blockbuster.selection.parts.units import units_of
from blockbuster.selection.priors import PRIORS

ROWS, COLUMNS = PRIORS.part_rows, PRIORS.part_columns


def normed(x, w):
    return bb.rms_norm(x @ w)


def beside(x, w, u):
    return x @ w, x @ u


def meeting(x, w, u):
    return bb.silu(x @ w) * (x @ u)


def network(x, w, u):
    return bb.tanh(x @ w) @ u


def weighted(x, w, c):
    return bb.tanh(x @ w) @ c


def grouped(q, k, w):
    return q @ (k @ w)[:, None].transpose(0, 1, 3, 2)


def estimates(fn, sizes, **axes):
    program = bb.trace(fn, **axes)
    units = units_of(program, sizes)
    values = [Value(-1, port) for port in range(len(program.inputs))]
    values += [Value(at) for at in range(len(program.equations))]
    return Estimates(Bounds(units, sizes, dict.fromkeys(values, "float16"), machine("h100")))


def apart(found):
    """What the units take as kernels of their own."""
    return sum(found.of(1 << unit, {}) for unit in range(len(found.units)))


def whole(found):
    return (1 << len(found.units)) - 1


@pytest.mark.parametrize(("columns", "one_kernel"), [(256, True), (4096, False)])
def test_rows_behind_a_product_are_one_kernel_if_a_program_can_hold_them(columns, one_kernel):
    found = estimates(normed, dict(M=4096, K=1024, N=columns), x="M K", w="K N")

    assert (found.of(whole(found), {}) < apart(found)) is one_kernel


def test_few_programs_hold_the_rows_behind_a_product_of_few_rows():
    found = estimates(normed, dict(M=64, K=4096, N=512), x="M K", w="K N")

    assert set(found.programs(whole(found)).values()) == {4, inf}  # of 16 rows each
    assert found.of(whole(found), {}) > apart(found)


def joined(x, w, u):
    return np.concatenate((bb.tanh(x @ w), x @ u), axis=1)


def joined_with_another(x, w):
    return np.concatenate((bb.tanh(x @ w), x), axis=1)


def folded(x, w, u):
    return joined(x, w, u).sum(axis=1)


def test_kernels_store_the_pieces_of_a_joined_array():
    """Two products are estimated as two kernels, and no copy; a piece that others have stored, or
    an input, is one kernel more.
    """
    sizes = dict(M=4096, K=1024, N=1024, L=512, A=1536)
    found = estimates(joined, sizes, x="M K", w="K N", u="K L")
    first, second, join = (1 << at for at in range(3))
    assert found.kernels(whole(found)) == (first, second)
    assert found.of(whole(found), {}) < apart(found)
    assert found.kernels(second | join) == (second, join)

    other = estimates(joined_with_another, sizes | {"A": 2048}, x="M K", w="K N")
    assert other.kernels(whole(other)) == (0b01, 0b10)
    one = estimates(folded, sizes, x="M K", w="K N", u="K L")
    assert len(one.kernels(whole(one))) == 1, "a fold needs all pieces"


def test_products_that_do_not_meet_are_kernels_of_their_own():
    sizes, axes = dict(M=512, K=512, N=512, L=512), dict(x="M K", w="K N", u="K L")
    found = estimates(beside, sizes, **axes)

    assert found.kernels(0b11) == (0b01, 0b10)
    assert found.of(0b11, {}) > apart(found)

    together = estimates(meeting, sizes | dict(L=512), x="M K", w="K N", u="K N")
    assert together.kernels(0b11) == (0b11,)
    assert together.of(0b11, {}) < apart(together)


def test_a_product_is_computed_again_for_each_block_of_columns_of_the_next():
    found = estimates(network, dict(M=512, K=64, N=256, L=1024), x="M K", w="K N", u="N L")

    times = found.again(whole(found))
    assert sorted(times.values()) == [1, 1024 // COLUMNS, 1024 // COLUMNS]
    assert min(found.programs(whole(found)).values()) == 512 // ROWS * 1024 // COLUMNS * 256 // ROWS


def test_a_product_with_a_vector_has_no_columns():
    found = estimates(weighted, dict(B=64, M=256, K=64, N=1024), x="B M K", w="K N", c="N")

    assert set(found.again(whole(found)).values()) == {1}
    assert min(found.programs(whole(found)).values()) == 64 * 256 // ROWS * 1024 // ROWS


def test_each_head_of_queries_computes_the_keys_that_it_shares():
    sizes = dict(H=2, G=4, M=128, D=64, T=128, K=512)
    found = estimates(grouped, sizes, q="H G M D", k="H T K", w="K D")

    assert max(found.again(whole(found)).values()) == 4


def test_what_units_take_beyond_their_bounds_adds_up():
    sizes = dict(M=512, K=512, N=512)
    found = estimates(meeting, sizes, x="M K", w="K N", u="K N")
    least = found.bounds.least
    priced = {1: least(1) + 3.0, 2: least(2) + 4.0}

    assert found.of(0b11, priced) == pytest.approx(least(0b11) + 7.0)


def test_a_part_takes_as_much_longer_as_a_part_in_it_did():
    sizes = dict(M=512, K=512, N=512)
    found = estimates(lambda x, w, u: meeting(x, w, u) @ w, sizes | dict(K=512), x="M K", w="K K",
                      u="K K")  # fmt: skip
    usual = found.of(0b11, {})

    assert found.of(0b111, {0b11: usual + 5.0}) == pytest.approx(found.of(0b111, {}) + 5.0)


def test_a_part_takes_as_much_longer_as_one_that_differs_in_sizes_alone():
    """A norm before three products, one of which was priced with it."""

    def normed_twice(x, w, u):
        x = bb.rms_norm(x)
        return x @ w, bb.tanh(x @ u), bb.tanh(x @ w)

    sizes = dict(M=512, K=512, N=512, L=64)
    found = estimates(normed_twice, sizes, x="M K", w="K N", u="K L")
    norm, wide, narrow, other = (1 << at for at in range(4))
    longer = {norm | narrow: found.of(norm | narrow, {}) + 5.0}

    def excess(part):
        return found.of(part, longer) - found.of(part, {})

    assert excess(norm | other) == pytest.approx(5.0)
    assert excess(norm | wide) == 0.0  # no tanh
    assert excess(norm | other | wide) == pytest.approx(5.0)
    assert excess(other) == excess(norm) == 0.0

    quick = {norm | narrow: found.of(norm | narrow, {}) - 5.0}
    assert found.of(norm | other, quick) == found.of(norm | other, {})


BOUNDED = ["three_factors-0", "several_axes-0"]


@pytest.mark.parametrize("key", BOUNDED)
def test_what_a_part_takes_at_least_is_no_more_than_its_price(key):
    """Of programs of ``bench/outside`` that are divided, in each of their spellings."""
    program, priced = drawn(key), 0
    for way in program.ways:
        found = planned(program, way, f"<{key}>", "h100", library=False).divided.found
        for part, price in found.best.prices.items() if found else ():
            assert found.bounds.least(part) <= price.us * (1 + 1e-9)
            priced += price.us < inf
    assert priced
