"""Why two parts of a plan are not one kernel: each reason, on plans with made-up prices."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.ir.graph import Value
from blockbuster.machines import machine
from blockbuster.selection.parts.bounds import Bounds
from blockbuster.selection.parts.estimates import Estimates
from blockbuster.selection.parts.partition import Best, Price
from blockbuster.selection.parts.units import units_of
from blockbuster.selection.plans.why_apart import Found
from blockbuster.selection.priors import PRIORS


def three_products(x, w, u):
    a = x @ w
    b = a @ u
    return a @ u.T + b @ w.T


def two_products(x, w, u):
    a = x @ w
    return a @ u


def product_and_sums(x, w):
    a = x @ w
    b = a.sum(-1)
    return b


def three_in_a_row(x, w, u):
    return x @ w @ u @ w


def sorted_rows(x, w):
    return np.sort(x @ w, axis=-1)


def found(program, parts, prices, *, refused=None, cap=12):
    """What a search found that priced parts as given, each otherwise a microsecond."""
    sizes = dict.fromkeys(program.dims, 4096)
    units = units_of(program, sizes)
    values = [Value(-1, port) for port in range(len(program.inputs))]
    values += [Value(at) for at in range(len(program.equations))]
    bounds = Bounds(units, sizes, dict.fromkeys(values, "float16"), machine("h200"))
    known = {part: Price(1.0) for part in parts} | prices
    best = Best(parts, float(len(parts)), 1.0, 1.0, cap, known)
    return Found(units, sizes, Estimates(bounds), best, refused or {}, bounds)


@pytest.fixture
def products():
    """A program in which b needs a, and what is computed last needs both."""
    return bb.trace(three_products, x="M K", w="K K", u="K K")


def parts_of(program):
    units = units_of(program, dict.fromkeys(program.dims, 4096))
    return tuple(1 << at for at in range(len(units)))


NAMES = ["a", "b", "c", "d"]


def test_a_price_is_told_beside_that_of_both(products):
    search = found(products, parts_of(products), {3: Price(1234.5)})

    told = "one kernel for a and b would take 1,234 us instead of 2.0 us"
    assert search.why_apart(0, 1, NAMES) == told


def test_a_part_that_was_not_priced_has_an_estimate_and_what_is_computed_again():
    program = bb.trace(two_products, x="M K", w="K K", u="K K")
    parts = parts_of(program)
    text = found(program, parts, dict.fromkeys(parts, Price(300.0))).why_apart(0, 1, NAMES)

    assert text.startswith("one kernel for a and b would take about ")
    assert text.endswith(" us instead of 600 us; a would be computed 16 times")


def test_where_an_estimate_is_less_too_many_were_priced():
    program = bb.trace(product_and_sums, x="M K", w="K K")
    parts = parts_of(program)
    text = found(program, parts, dict.fromkeys(parts, Price(300.0))).why_apart(0, 1, NAMES)

    most = PRIORS.priced_parts
    assert text == f"one kernel for a and b was not priced: {most} parts are, at most"


def test_a_part_that_can_overflow_makes_no_kernel_worth_a_price():
    program = bb.trace(three_in_a_row, x="M K", w="K K", u="K K")
    search = found(program, (1, 6), {3: Price(1.0, 1)})

    assert search.why_apart(0, 1, NAMES) == (
        "one kernel for a and b would hold a part in which exponentials could overflow"
    )


def test_an_overflow_a_refusal_and_a_limit_are_reasons(products):
    parts = parts_of(products)

    unsafe = found(products, parts, {3: Price(1.0, 2)})
    assert unsafe.why_apart(0, 1, NAMES) == (
        "in one kernel for a and b, 2 more exponentials could overflow"
    )
    refused = found(products, parts, {3: Price(inf)}, refused={3: "no tiles fit"})
    assert refused.why_apart(0, 1, NAMES) == (
        "one kernel for a and b cannot be written: no tiles fit"
    )
    capped = found(products, parts, {}, cap=1)
    assert capped.why_apart(0, 1, NAMES) == (
        "one kernel for a and b would be 2 groups of operators; more than 1 were not tried"
    )


def test_what_lies_between_is_named(products):
    parts = parts_of(products)
    last = len(parts) - 1

    assert found(products, parts, {}).why_apart(0, last, NAMES) == (
        f"a and {NAMES[last]} cannot be one kernel without b"
    )


def test_a_function_of_whole_arrays_is_in_no_kernel():
    program = bb.trace(sorted_rows, x="M K", w="K K")
    search = found(program, parts_of(program), {})

    assert search.why_apart(0, 1, ["t", "y"]) == (
        "np.sort[-1] runs on whole arrays: no kernel can contain it"
    )
